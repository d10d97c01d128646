/* The entry that NVTX looks for; see inject.h for what it calls. */
#ifndef ROOFSWEEP_INJECT_RANGES_H
#define ROOFSWEEP_INJECT_RANGES_H

#include <nvtx3/nvToolsExt.h>

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

#endif
