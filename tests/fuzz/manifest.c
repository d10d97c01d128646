/* Reads any bytes as a manifest: the result is a plan, or an error that names its place. */
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest.h"
#include "manifest/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct manifest *manifest = NULL;
    struct plan *plan = NULL;
    struct error error = {""};
    enum status status = manifest_parse("m.ini", (const char *)data, size, &manifest, &error);
    if (status == STATUS_OK && manifest->sweep.max_configurations > 1000)
        manifest->sweep.max_configurations = 1000; /* for speed */
    if (status == STATUS_OK)
        status = plan_create(manifest, &plan, &error);
    if (status && (status != STATUS_USAGE || strncmp(error.text, "m.ini:", strlen("m.ini:")) != 0))
        abort();
    for (size_t i = 0; plan && i < plan->count; ++i) {
        char text[WORKLOAD_TEXT];
        struct config again;
        config_format(&plan->items[i].config, text);
        if (config_parse(text, &again, &error) ||
            memcmp(again.values, plan->items[i].config.values, sizeof again.values) != 0)
            abort();
    }
    plan_destroy(plan);
    manifest_destroy(manifest);
    return 0;
}
