/* Which kernels a piece of work runs. Libraries offer the same kernels under several names, and other
 * kernels under the same name, so an algorithm is known by these. */
#ifndef ROOFSWEEP_IDENTITY_H
#define ROOFSWEEP_IDENTITY_H

#include <stdint.h>

#include "worker/gpu/work.h"
#include "worker/gpu/kernel_list.h"

struct identity {
    uint64_t kernels;  /* of the kernels' names, whatever their order and grids; 0: not known */
    uint64_t launches; /* the same with grids, blocks and shared memory; 0: not known */
};

/* Of what is bound: one iteration is captured, not run. It stays unknown where the library cannot be
 * captured or the driver does not tell: that is STATUS_OK. */
enum status identity_find(struct gpu *gpu, struct work *work, struct identity *identity,
                          struct error *error);

/* The same, and adds the kernels to *list, which is empty; NULL: not wanted. */
enum status identity_list(struct gpu *gpu, struct work *work, struct identity *identity,
                          struct kernel_list *list, struct error *error);

enum { IDENTITY_TEXT = 17 };
/* 16 hexadecimal digits of `kernels`, or of `launches`; "" if it is not known. */
void identity_format(const struct identity *identity, char text[IDENTITY_TEXT]);
void identity_format_launches(const struct identity *identity, char text[IDENTITY_TEXT]);

#endif
