#include "worker/gpu/work.h"

enum status count_check(const char *counter, const char *what, double count, double most,
                        const char *instead, struct error *error)
{
    return count <= most ? STATUS_OK
                         : error_set(error, STATUS_UNSUPPORTED, "%.4g %s: %s to %.0f; %s", count,
                                     what, counter, most, instead);
}
