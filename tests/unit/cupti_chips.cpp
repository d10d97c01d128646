#include "cupti_chips.h"

#include <cupti_profiler_host.h>

void cupti_chips(const char *const **chips, size_t *count)
{
    CUpti_Profiler_Host_GetSupportedChips_Params known = {};
    known.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
    bool listed = cuptiProfilerHostGetSupportedChips(&known) == CUPTI_SUCCESS;
    *chips = known.ppChipNames;
    *count = listed ? known.numChips : 0;
}
