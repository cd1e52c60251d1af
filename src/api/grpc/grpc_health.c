/* grpc_health.c - grpc.health.v1: whether what is asked of the service can be done */
#include <stdlib.h>

#include "api/grpc/grpc_local.h"
#include "health.pb-c.h"

enum { WATCHES_MAX = 1000 };

struct health_watch {
	struct request *request;
	Grpc__Health__V1__HealthCheckResponse__ServingStatus told;
	bool unknown; /* no such service */
	struct health_watch *next, **link;
};

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus serving_status;
#define SERVING(status) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##status

static serving_status status_now(const struct service *service)
{
	struct engine_port *port = service->port;
	struct engine_health health = { 0 };

	port->health(port, &health);
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
static bool is_unknown(const struct request *request)
{
	const Grpc__Health__V1__HealthCheckRequest *message = request->message;

	return message->service[0] && !grpc_services_has(message->service);
}

void grpc_health_check(struct request *request)
{
	uint8_t bytes[16];

	if (is_unknown(request))
		request_reject(request, ERROR_NOT_FOUND, "there is no such service here");
	else
		request_reply(request, pack(status_now(request->service), bytes));
}

static struct request *grpc_health_drop(struct health_watch *watch)
{
	struct request *request = watch->request;

	*watch->link = watch->next;
	if (watch->next)
		watch->next->link = watch->link;
	free(watch);
	request->state = NULL;
	return request;
}

static void grpc_health_on_gone(struct exchange *exchange)
{
	const struct request *request = exchange->context;

	request_finish(grpc_health_drop(request->state), GRPC_CANCELLED, NULL);
}

/* Only the last status counts: what was not taken is made up for when there is room. */
static void grpc_health_tell(struct health_watch *watch)
{
	uint8_t bytes[16];
	serving_status status =
	    watch->unknown ? SERVING(SERVICE_UNKNOWN) : status_now(watch->request->service);

	if (status != watch->told && grpc_send(watch->request->exchange, pack(status, bytes)))
		watch->told = status;
}

static void grpc_health_on_writable(struct exchange *exchange)
{
	grpc_health_tell(((const struct request *)exchange->context)->state);
}

static const struct exchange_events events = { .writable = grpc_health_on_writable,
	                                       .gone = grpc_health_on_gone };

void grpc_health_watch(struct request *request)
{
	struct grpc_services *services = request->service->services;
	size_t count = 0;

	for (const struct health_watch *at = services->watches; at; at = at->next)
		count++;
	if (count >= WATCHES_MAX) {
		request_finish(request, GRPC_RESOURCE_EXHAUSTED,
		               "too many watch the health already");
		return;
	}
	struct health_watch *watch = NEW(struct health_watch);
	watch->request = request;
	watch->unknown = is_unknown(request);
	watch->told = SERVING(UNKNOWN);
	watch->next = services->watches;
	watch->link = &services->watches;
	if (watch->next)
		watch->next->link = &watch->next;
	services->watches = watch;
	request->state = watch;
	request->exchange->events = &events;
	request_stream(request);
	grpc_health_tell(watch);
}

void grpc_services_health_changed(struct grpc_services *services)
{
	for (struct health_watch *at = services->watches; at; at = at->next)
		grpc_health_tell(at);
}

void grpc_health_free(struct grpc_services *services)
{
	struct health_watch *next;

	for (struct health_watch *at = services->watches; at; at = next) {
		next = at->next;
		request_finish(grpc_health_drop(at), GRPC_UNAVAILABLE, "the scheduler is stopping");
	}
}
