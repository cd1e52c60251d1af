/* grpc_health.c - grpc.health.v1: whether what is asked of the service can be done */
#include <stdlib.h>

#include "api/grpc/grpc_local.h"
#include "health.pb-c.h"

enum { WATCHES_MAX = 1000 };

struct health_watch {
	struct grpc_services *services;
	struct exchange *exchange;
	Grpc__Health__V1__HealthCheckResponse__ServingStatus told;
	bool unknown; /* no such service */
	struct health_watch *next, **link;
};

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus serving_status;
#define SERVING(status) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##status

static serving_status status_now(const struct grpc_services *services)
{
	struct desk *desk = services->settings.desk;
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

static void check(struct grpc_services *services, struct exchange *exchange, bool unknown)
{
	uint8_t bytes[16];

	if (unknown)
		grpc_finish(exchange, GRPC_NOT_FOUND, "there is no such service here");
	else
		grpc_reply(exchange, pack(status_now(services), bytes));
}

static void drop(struct health_watch *watch)
{
	*watch->link = watch->next;
	if (watch->next)
		watch->next->link = watch->link;
	watch->exchange->events = NULL;
	free(watch);
}

static void on_gone(struct exchange *exchange)
{
	drop(exchange->context);
	grpc_finish(exchange, GRPC_CANCELLED, NULL);
}

/* Only the last status counts: what was not taken is made up for when there is room. */
static void tell(struct health_watch *watch)
{
	uint8_t bytes[16];
	serving_status status =
	    watch->unknown ? SERVING(SERVICE_UNKNOWN) : status_now(watch->services);

	if (status != watch->told && grpc_send(watch->exchange, pack(status, bytes)))
		watch->told = status;
}

static void on_writable(struct exchange *exchange)
{
	tell(exchange->context);
}

static const struct exchange_events events = { .writable = on_writable, .gone = on_gone };

static void add_watch(struct grpc_services *services, struct exchange *exchange, bool unknown)
{
	size_t count = 0;

	for (const struct health_watch *at = services->watches; at; at = at->next)
		count++;
	if (count >= WATCHES_MAX) {
		grpc_finish(exchange, GRPC_RESOURCE_EXHAUSTED, "too many watch the health already");
		return;
	}
	struct health_watch *watch = NEW(struct health_watch);
	watch->services = services;
	watch->exchange = exchange;
	watch->unknown = unknown;
	watch->told = SERVING(UNKNOWN);
	watch->next = services->watches;
	watch->link = &services->watches;
	if (watch->next)
		watch->next->link = &watch->next;
	services->watches = watch;
	exchange->context = watch;
	exchange->events = &events;
	tell(watch);
}

void grpc_health_call(struct grpc_services *services, struct exchange *exchange)
{
	struct arena arena = { 0 };
	const Grpc__Health__V1__HealthCheckRequest *request = protobuf_read(
	    &grpc__health__v1__health_check_request__descriptor, exchange->body, &arena);
	bool unknown = request && request->service[0] && !grpc_services_has(request->service);
	struct text method = exchange->segments.of[1];

	if (!request)
		grpc_finish(exchange, GRPC_INVALID_ARGUMENT, "this is not a HealthCheckRequest");
	else if (text_is(method, "Check"))
		check(services, exchange, unknown);
	else if (text_is(method, "Watch"))
		add_watch(services, exchange, unknown);
	else
		grpc_finish(exchange, GRPC_UNIMPLEMENTED, "Health has no such method");
	arena_free(&arena);
}

void grpc_services_health_changed(struct grpc_services *services)
{
	for (struct health_watch *at = services->watches; at; at = at->next)
		tell(at);
}

void grpc_health_free(struct grpc_services *services)
{
	struct health_watch *watch = services->watches, *next;

	services->watches = NULL;
	for (; watch; watch = next) {
		struct exchange *exchange = watch->exchange;
		next = watch->next;
		exchange->events = NULL;
		free(watch);
		grpc_finish(exchange, GRPC_UNAVAILABLE, "the scheduler is stopping");
	}
}
