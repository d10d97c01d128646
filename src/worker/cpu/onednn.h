/* Operations of oneDNN, the library of frameworks on CPUs: described in plain numbers, created,
 * bound to memory and run. Only onednn* includes the library's header; onednn_primitive.c knows its
 * versions. A build without the library lacks these files, ROOFSWEEP_ONEDNN and the routines.
 *
 * The library must run in the threads of the calling OpenMP team. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "worker/cpu/onednn_operation.h"
#include "worker/cpu/routine.h"

/* Dense tensors: [count]; [rows][columns]; [count][rows][columns]; images with the extents
 * [n][c][h][w] in either layout. */
struct onednn_tensor onednn_vector(enum precision precision, int64_t count);
struct onednn_tensor onednn_matrix(enum precision precision, enum onednn_place place, int64_t rows,
                                   int64_t columns);
struct onednn_tensor onednn_matrices(enum precision precision, int64_t count, int64_t rows,
                                     int64_t columns);
struct onednn_tensor onednn_image(enum precision precision, enum onednn_place place, bool nhwc,
                                  int64_t n, int64_t c, int64_t h, int64_t w);

/* ", oneDNN 2.6.3". Terminates `text` of `size` bytes. */
void onednn_describe(char *text, size_t size);
/* STATUS_UNSUPPORTED, with the reason, if the library has its own threads, or this CPU has no
 * native instructions for the precision, which the library would emulate. */
enum status onednn_check(enum precision precision, struct error *error);

/* One created operation. */
struct onednn;
/* Compiles the operation's code. `forward`: the ONEDNN_TRAINING operation of an ONEDNN_BACKWARD
 * one, which must outlive it; else NULL. STATUS_UNSUPPORTED: the library lacks the operation. The
 * caller owns *made. */
enum status onednn_create(const struct onednn_operation *operation, const struct onednn *forward,
                          struct onednn **made, struct error *error);
void onednn_destroy(struct onednn *made); /* takes NULL */
/* The library's name of the code, "jit:avx512_core". */
const char *onednn_name(const struct onednn *made);
/* Bytes of memory for onednn_bind: tensors in the library's layout, and its workspace. */
size_t onednn_memory(const struct onednn *made);
/* Binds the operation to the caller's memory: `data` of each tensor, and `memory` of onednn_memory
 * bytes, aligned to 64. Both must live longer. Copies the packed tensors. */
enum status onednn_bind(struct onednn *made, void *const data[ONEDNN_ARGUMENTS], void *memory,
                        struct error *error);
/* Changes the caller's memory of a tensor that is not packed. */
void onednn_move(struct onednn *made, enum onednn_argument argument, void *data);
/* Runs the operation once. If the library fails, the result is unchanged. */
void onednn_run(const struct onednn *made, struct trace *trace);

/* For the plan of a work: creates an operation and reserves its memory in the scratch memory, at
 * the offset *memory in bytes. STATUS_UNSUPPORTED also if the work's implementation is `auto` and
 * the library has only a definition of the operation ("ref"), which is slow. Recurrent layers are
 * exempt: their "ref" makes the products by fast code. */
enum status onednn_create_for(struct work *work, const struct onednn_operation *operation,
                              const struct onednn *forward, struct onednn **made, size_t *memory,
                              struct error *error);

/* A routine of one operation. Its plan holds the operation, and the argument of each tensor of the
 * work, as an input and as a result. */
struct onednn_roles {
    enum onednn_argument inputs[TENSOR_COUNT], results[TENSOR_COUNT];
};
struct onednn_plan {
    struct onednn *made;
    struct onednn_roles roles;
};
enum status onednn_plan_operation(struct work *work, const struct onednn_operation *operation,
                                  const struct onednn_roles *roles, struct error *error);
enum status onednn_plan_ready(struct work *work, struct error *error);
void onednn_plan_run(struct work *work, struct trace *trace);
void onednn_plan_release(struct work *work);
const char *onednn_plan_name(const struct work *work);
#define ONEDNN_ROUTINE(plan_function)                                                              \
    .plan_size = sizeof(struct onednn_plan), .own_regions = true, .check = onednn_check,           \
    .plan = plan_function, .ready = onednn_plan_ready, .run = onednn_plan_run,                     \
    .release = onednn_plan_release, .name = onednn_plan_name
