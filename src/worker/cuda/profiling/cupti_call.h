/* Calls of CUPTI in C: its parameters are structs that say their own size, its answers are codes. */
#ifndef ROOFSWEEP_CUPTI_CALL_H
#define ROOFSWEEP_CUPTI_CALL_H

#include <cupti.h>

#define PARAMETERS(name, type) type##_Params name = {.structSize = type##_Params_STRUCT_SIZE}

/* Returns the code from the calling function, unless it is success. */
#define TRY_CUPTI(call)                                                                            \
    do {                                                                                           \
        CUptiResult try_result = (call);                                                           \
        if (try_result != CUPTI_SUCCESS)                                                           \
            return try_result;                                                                     \
    } while (0)

#endif
