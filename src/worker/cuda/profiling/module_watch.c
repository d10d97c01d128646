#include "worker/cuda/profiling/module_watch.h"

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const void *data)
{
    struct module_watch *watch = user;
    (void)data;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
        __atomic_store_n(&watch->unloaded, true, __ATOMIC_SEQ_CST);
}

void module_watch_begin(struct module_watch *watch)
{
    __atomic_store_n(&watch->unloaded, false, __ATOMIC_SEQ_CST);
    if (cuptiSubscribe(&watch->subscriber, called, watch) != CUPTI_SUCCESS)
        return;
    watch->watching =
        cuptiEnableCallback(1, watch->subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                            CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) == CUPTI_SUCCESS;
    if (!watch->watching)
        cuptiUnsubscribe(watch->subscriber);
}

void module_watch_end(struct module_watch *watch)
{
    if (watch->watching)
        cuptiUnsubscribe(watch->subscriber);
    watch->watching = false;
}

bool module_watch_saw_unload(const struct module_watch *watch)
{
    return __atomic_load_n(&watch->unloaded, __ATOMIC_SEQ_CST);
}

bool module_watch_is_clean(const struct module_watch *watch)
{
    return watch->watching && !module_watch_saw_unload(watch);
}
