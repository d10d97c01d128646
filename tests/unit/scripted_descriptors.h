/* The descriptors of the scripted cuDNN backend (scripted_backend.h), and their attributes. For tests only. */
#ifndef ROOFSWEEP_SCRIPTED_DESCRIPTORS_H
#define ROOFSWEEP_SCRIPTED_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <cudnn.h>

enum { ATTRIBUTES = 16, BYTES = 160 };

struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool finalized;
    struct {
        cudnnBackendAttributeName_t name;
        int64_t count;
        unsigned char bytes[BYTES];
    } attributes[ATTRIBUTES];
    int count;
    int64_t engine;
};

struct descriptor *descriptor_own(cudnnBackendDescriptor_t descriptor);

/* The values; NULL if the attribute was not set. */
const void *attribute_get(const struct descriptor *d, cudnnBackendAttributeName_t name);
/* Set, or the test has failed. */
const void *attribute_need(const struct descriptor *d, cudnnBackendAttributeName_t name);
/* A finalized one. */
struct descriptor *descriptor_need(const struct descriptor *d, cudnnBackendAttributeName_t name);

/* The graph that was described last is the one that runs: one at a time is enough. */
const struct descriptor *descriptor_last_graph(void);

#endif
