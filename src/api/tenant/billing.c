/* billing.c - the billing export of each day, posted to the operator's receiver */
#include "api/tenant/billing.h"

#include <stdlib.h>

#include "api/notify/notify.h"
#include "api/request/request.h"
#include "api/service/service_state.h"
#include "api/tenant/report_calls.h"
#include "api/text/times.h"
#include "base/memory.h"
#include "base/number_text.h"

enum { LOOK_MS = 60000, FIRST_LOOK_MS = 1000 };
/* What ends with the day is in the store by then. */
#define SETTLE_MS INT64_C(60000)

struct billing {
	struct service *service;
	struct loop *loop; /* the engine's port goes before this does */
	struct timer timer;
	int64_t sent_day; /* days since 1970; 0: none */
	bool is_asked;    /* a report is being read */
};

static int64_t last_full_day(const struct billing *billing)
{
	return (service_time_ms(billing->service) - SETTLE_MS) / DAY_MS - 1;
}

/* The next day that is to be sent; 0: none. */
static int64_t next_day(const struct billing *billing)
{
	int64_t last = last_full_day(billing);

	if (billing->sent_day >= last)
		return 0;
	return billing->sent_day == 0 ? last
	                              : max64(billing->sent_day + 1, last - BILLING_DAYS_MAX + 1);
}

static void look_again(struct billing *billing, int64_t in_ms)
{
	loop_timer_set(billing->loop, &billing->timer, in_ms);
}

static void billing_on_read(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct billing *billing = request->service->billing;
	int64_t day = next_day(billing);
	bool sent = false;

	if (engine->ok && day > 0) {
		struct buffer body = { 0 };
		report_write_billing(request, &body);
		sent = notify_tell_billing(billing->service->notify, day, body.data);
		buffer_free(&body);
	}
	if (sent)
		billing->sent_day = day;
	billing->is_asked = false;
	look_again(billing, sent && next_day(billing) > 0 ? FIRST_LOOK_MS : LOOK_MS);
	request_drop(request);
}

static void billing_on_timer(struct timer *timer)
{
	struct billing *billing =
	    (struct billing *)(void *)((char *)timer - offsetof(struct billing, timer));
	int64_t day = next_day(billing);

	if (billing->is_asked)
		return;
	if (day == 0 || !notify_has_billing(billing->service->notify)) {
		look_again(billing, LOOK_MS);
		return;
	}
	billing->is_asked = true;
	report_read_billing(request_take_own(&billing->service->requests), day * DAY_MS,
	                    (day + 1) * DAY_MS, billing_on_read);
}

struct billing *billing_new(struct service *service)
{
	struct billing *billing = NEW(struct billing);

	billing->service = service;
	billing->loop = service->port->loop;
	billing->timer = TIMER(billing_on_timer);
	return billing;
}

void billing_free(struct billing *billing)
{
	if (!billing)
		return;
	loop_timer_clear(billing->loop, &billing->timer);
	free(billing);
}

void billing_load(struct billing *billing, const char *value)
{
	number_read(text_of(value), 0, INT64_MAX, &billing->sent_day);
}

void billing_begin(struct billing *billing)
{
	if (billing->service->notify)
		look_again(billing, FIRST_LOOK_MS);
}
