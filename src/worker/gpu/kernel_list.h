/* The kernels that a piece of work runs, by short names, to be told beside the name of an algorithm that
 * leaves the choice of some of them to another library. Plain data. */
#ifndef ROOFSWEEP_KERNEL_LIST_H
#define ROOFSWEEP_KERNEL_LIST_H

#include <stddef.h>

enum { KERNEL_LIST_MAX = 16, KERNEL_LIST_NAME = 96 };
struct kernel_list {
    struct {
        char name[KERNEL_LIST_NAME];
        int launches;
    } kernels[KERNEL_LIST_MAX]; /* more are left out */
    int count;
};

/* `symbol` as the driver has it, mangled or not. Without its template's and its own arguments it is what
 * "RNN_blockPersist_fp_LSTM" or "nvjet_sm90_hsh_64x8_64x16_1x2_h_bz_NNT" is. */
void kernel_list_add(struct kernel_list *list, const char *symbol);

/* Those that multiply, "NAME, NAME", the most launched first, then by name: work on single elements, set-up and
 * sums of parts are left out. As many as fit, "..." for the rest; "" if there is none. `text` of `size` bytes is
 * always ended. */
void kernel_list_format(const struct kernel_list *list, char *text, size_t size);

#endif
