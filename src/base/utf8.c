#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>

size_t utf8_character(const char *characters, size_t left)
{
    const unsigned char *text = (const unsigned char *)characters;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80)
        return (text[0] >= 0x20 && text[0] != 0x7f) || text[0] == '\t';
    size_t bytes = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc0 || text[0] > 0xf7 || bytes > left)
        return 0;
    uint32_t code = text[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; ++i) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[bytes] || code > 0x10ffff || surrogate ? 0 : bytes;
}
