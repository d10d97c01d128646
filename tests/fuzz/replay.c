/* Instead of a fuzzer: each file of the command line, cut off after each of its bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES = 1 << 16 };

int main(int argc, char **argv)
{
    static uint8_t data[BYTES];
    for (int i = 1; i < argc; ++i) {
        FILE *stream = fopen(argv[i], "rb");
        if (!stream) {
            perror(argv[i]);
            return 1;
        }
        size_t size = fread(data, 1, sizeof data, stream);
        fclose(stream);
        for (size_t cut = 0; cut <= size; ++cut) {
            uint8_t *copy = malloc(cut + 1); /* whose end the sanitizers see */
            if (!copy)
                return 1;
            memcpy(copy, data, cut);
            LLVMFuzzerTestOneInput(copy, cut);
            free(copy);
        }
    }
    return argc < 2;
}
