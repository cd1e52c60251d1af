/* grpc_health.c - grpc.health.v1: whether what is asked of the service can be done */
#include <stdlib.h>

#include "api/grpc/grpc_local.h"
#include "health.pb-c.h"

enum { WATCHES_MAX = 1000 };

struct health_watch {
	struct call *call;
	Grpc__Health__V1__HealthCheckResponse__ServingStatus told;
	bool unknown; /* no such service */
	struct health_watch *next, **link;
};

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus serving_status;
#define SERVING(status) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##status

static serving_status status_now(const struct service *service)
{
	struct desk *desk = service->desk;
	struct desk_health health = { 0 };

	desk->health(desk, &health);
	return health.leading && health.writer.ok ? SERVING(SERVING) : SERVING(NOT_SERVING);
}

static struct text pack(serving_status status, uint8_t bytes[16])
{
	Grpc__Health__V1__HealthCheckResponse response =
	    GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

	response.status = status;
	size_t size = grpc__health__v1__health_check_response__pack(&response, bytes);
	return (struct text){ (const char *)bytes, size };
}

/* True if it asks about a service that is not here. */
static bool is_unknown(const struct call *call)
{
	const Grpc__Health__V1__HealthCheckRequest *request = call->message;

	return request->service[0] && !grpc_services_has(request->service);
}

void grpc_health_check(struct call *call)
{
	uint8_t bytes[16];

	if (is_unknown(call))
		call_reject(call, ERROR_NOT_FOUND, "there is no such service here");
	else
		call_reply(call, pack(status_now(call->service), bytes));
}

static struct call *drop(struct health_watch *watch)
{
	struct call *call = watch->call;

	*watch->link = watch->next;
	if (watch->next)
		watch->next->link = watch->link;
	free(watch);
	call->state = NULL;
	return call;
}

static void on_gone(struct exchange *exchange)
{
	const struct call *call = exchange->context;

	call_finish(drop(call->state), GRPC_CANCELLED, NULL);
}

/* Only the last status counts: what was not taken is made up for when there is room. */
static void tell(struct health_watch *watch)
{
	uint8_t bytes[16];
	serving_status status =
	    watch->unknown ? SERVING(SERVICE_UNKNOWN) : status_now(watch->call->service);

	if (status != watch->told && grpc_send(watch->call->exchange, pack(status, bytes)))
		watch->told = status;
}

static void on_writable(struct exchange *exchange)
{
	tell(((const struct call *)exchange->context)->state);
}

static const struct exchange_events events = { .writable = on_writable, .gone = on_gone };

void grpc_health_watch(struct call *call)
{
	struct grpc_services *services = call->service->services;
	size_t count = 0;

	for (const struct health_watch *at = services->watches; at; at = at->next)
		count++;
	if (count >= WATCHES_MAX) {
		call_finish(call, GRPC_RESOURCE_EXHAUSTED, "too many watch the health already");
		return;
	}
	struct health_watch *watch = NEW(struct health_watch);
	watch->call = call;
	watch->unknown = is_unknown(call);
	watch->told = SERVING(UNKNOWN);
	watch->next = services->watches;
	watch->link = &services->watches;
	if (watch->next)
		watch->next->link = &watch->next;
	services->watches = watch;
	call->state = watch;
	call->exchange->events = &events;
	call_stream(call);
	tell(watch);
}

void grpc_services_health_changed(struct grpc_services *services)
{
	for (struct health_watch *at = services->watches; at; at = at->next)
		tell(at);
}

void grpc_health_free(struct grpc_services *services)
{
	while (services->watches)
		call_finish(drop(services->watches), GRPC_UNAVAILABLE, "the scheduler is stopping");
}
