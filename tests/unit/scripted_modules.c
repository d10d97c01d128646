#include "scripted_modules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scripted_cupti.h"

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                           void *user)
{
    if (cupti.subscribe != CUPTI_SUCCESS)
        return cupti.subscribe;
    assert_true(cupti.present);
    assert_null(cupti.called);
    *subscriber = (CUpti_SubscriberHandle)&cupti;
    cupti.called = callback;
    cupti.caller = user;
    ++cupti.subscribed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    assert_ptr_equal(subscriber, &cupti);
    assert_int_equal(enable, 1);
    assert_int_equal(domain, CUPTI_CB_DOMAIN_RESOURCE);
    assert_int_equal(id, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    assert_ptr_equal(subscriber, &cupti);
    assert_non_null(cupti.called);
    cupti.called = NULL;
    return CUPTI_SUCCESS;
}

void cupti_unload(void)
{
    if (cupti.called)
        cupti.called(cupti.caller, CUPTI_CB_DOMAIN_RESOURCE,
                     CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, NULL);
}
