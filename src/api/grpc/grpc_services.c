/* grpc_services.c - all that can be called by gRPC: which call goes where */
#include "api/grpc/grpc_services.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/grpc/grpc_local.h"
#include "scheduler.pb-c.h"

enum { HEALTH_V1, REFLECTION_V1, REFLECTION_V1ALPHA, SCHEDULER, AGENT };
const char *const grpc_service_names[] = {
	[HEALTH_V1] = "grpc.health.v1.Health",
	[REFLECTION_V1] = "grpc.reflection.v1.ServerReflection",
	[REFLECTION_V1ALPHA] = "grpc.reflection.v1alpha.ServerReflection",
	[SCHEDULER] = "scheduler.SchedulerService",
	[AGENT] = "agent.AgentService",
	NULL,
};

static const struct scheduler_method {
	const char *name;
	const ProtobufCMessageDescriptor *request;
	void (*call)(struct grpc_call *call);
} methods[] = {
	{ "SubmitJob", &scheduler__submit_job_request__descriptor, grpc_submit_job },
	{ "CancelJob", &scheduler__cancel_job_request__descriptor, grpc_cancel_job },
	{ "GetJobStatus", &scheduler__get_job_status_request__descriptor, grpc_job_status },
	{ "ListJobs", &scheduler__list_jobs_request__descriptor, grpc_list_jobs },
	{ "UpdateTenantQuota", &scheduler__update_tenant_quota_request__descriptor,
	  grpc_update_quota },
	{ "GetMetrics", &scheduler__get_metrics_request__descriptor, grpc_metrics },
	{ "GetClusterStatus", &scheduler__get_cluster_status_request__descriptor,
	  grpc_cluster_status },
	{ NULL, NULL, NULL },
};

struct grpc_services *grpc_services_new(const struct grpc_services_settings *settings)
{
	struct grpc_services *services = NEW(struct grpc_services);

	services->settings = *settings;
	return services;
}

void grpc_services_free(struct grpc_services *services)
{
	if (!services)
		return;
	grpc_health_free(services);
	grpc_reflection_free(services);
	while (services->all) {
		struct grpc_call *call = services->all;
		memory_unpoison(call, sizeof(*call));
		services->all = call->next_of_all;
		ask_free(&call->ask);
		free(call);
	}
	buffer_free(&services->scratch);
	buffer_free(&services->payload);
	free(services);
}

/* Which service a call is for; -1: none that is here. */
static int service_of(const struct exchange *exchange)
{
	if (exchange->segments.count != 2)
		return -1;
	for (int i = 0; grpc_service_names[i]; i++)
		if (text_is(exchange->segments.of[0], grpc_service_names[i]))
			return i;
	return -1;
}

bool grpc_services_has(const char *name)
{
	for (int i = 0; grpc_service_names[i]; i++)
		if (strcmp(name, grpc_service_names[i]) == 0)
			return true;
	return false;
}

bool grpc_services_is_stream(const struct exchange *exchange)
{
	int service = service_of(exchange);

	return service == REFLECTION_V1 || service == REFLECTION_V1ALPHA ||
	       (service == AGENT && agents_is_stream(exchange));
}

bool grpc_services_is_public(const struct exchange *exchange)
{
	int service = service_of(exchange);

	return service == HEALTH_V1 || service == REFLECTION_V1 || service == REFLECTION_V1ALPHA;
}

enum grpc_status grpc_status_of_error(enum error_code code)
{
	switch (code) {
	case ERROR_NONE:
		return GRPC_OK;
	case ERROR_INVALID:
		return GRPC_INVALID_ARGUMENT;
	case ERROR_FORBIDDEN:
		return GRPC_PERMISSION_DENIED;
	case ERROR_NOT_FOUND:
		return GRPC_NOT_FOUND;
	case ERROR_CONFLICT:
	case ERROR_IMPOSSIBLE:
		return GRPC_FAILED_PRECONDITION;
	case ERROR_FULL:
	case ERROR_NO_ROOM:
		return GRPC_RESOURCE_EXHAUSTED;
	case ERROR_UNAVAILABLE:
		return GRPC_UNAVAILABLE;
	case ERROR_CORRUPT:
	default:
		return GRPC_INTERNAL;
	}
}

static struct grpc_call *take_call(struct grpc_services *services, struct exchange *exchange,
                                   const struct identity *identity)
{
	struct grpc_call *call = services->spare;

	if (call) {
		memory_unpoison(call, sizeof(*call));
		services->spare = call->next;
	} else {
		call = NEW(struct grpc_call);
		call->next_of_all = services->all;
		services->all = call;
	}
	call->services = services;
	call->exchange = exchange;
	call->identity = *identity;
	call->request = call->state = NULL;
	return call;
}

static void give_back(struct grpc_call *call)
{
	struct grpc_services *services = call->services;

	if (services->settings.audit)
		audit_settle(services->settings.audit, &call->ask);
	ask_reset(&call->ask);
	call->next = services->spare;
	services->spare = call;
	memory_poison(call, sizeof(*call));
}

void grpc_call_reply(struct grpc_call *call, const void *message)
{
	grpc_reply(call->exchange, protobuf_write(message, &call->ask.arena));
	give_back(call);
}

void grpc_call_fail(struct grpc_call *call, const struct error *error)
{
	grpc_finish(call->exchange, grpc_status_of_error(error->code), error->text);
	give_back(call);
}

void grpc_call_refuse(struct grpc_call *call, enum error_code code, const char *format, ...)
{
	struct error error;
	char text[ERROR_TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	error_set(&error, code, "%s", text);
	grpc_call_fail(call, &error);
}

void grpc_call_ask(struct grpc_call *call, void (*done)(struct ask *ask))
{
	call->ask.done = done;
	desk_ask(call->services->settings.desk, &call->ask);
}

bool grpc_call_may_change(struct grpc_call *call)
{
	if (identity_may_change(&call->identity))
		return true;
	grpc_call_refuse(call, ERROR_FORBIDDEN,
	                 "a viewer or an agent may not change anything here");
	return false;
}

bool grpc_call_tenant(struct grpc_call *call, const char *name, int64_t *tenant_id)
{
	const struct roster *roster = call->services->settings.roster;

	*tenant_id = call->identity.tenant_id;
	if (!name[0])
		return true;
	const struct roster_tenant *tenant = roster_named(roster, text_of(name));
	if (tenant && roster_may_see(roster, &call->identity, tenant->id)) {
		*tenant_id = tenant->id;
		return true;
	}
	grpc_call_refuse(call, ERROR_NOT_FOUND, "there is no tenant %.100s", name);
	return false;
}

static void call_scheduler(struct grpc_services *services, struct exchange *exchange,
                           const struct identity *identity)
{
	const struct scheduler_method *method = methods;

	while (method->name && !text_is(exchange->segments.of[1], method->name))
		method++;
	if (!method->name) {
		grpc_finish(exchange, GRPC_UNIMPLEMENTED,
		            "scheduler.SchedulerService has no such method");
		return;
	}
	if (identity->role == ROLE_AGENT) {
		grpc_finish(exchange, GRPC_PERMISSION_DENIED,
		            "a token with the role 'agent' is for agent.AgentService alone");
		return;
	}
	struct grpc_call *call = take_call(services, exchange, identity);
	call->request = protobuf_read(method->request, exchange->body, &call->ask.arena);
	if (call->request)
		method->call(call);
	else
		grpc_call_refuse(call, ERROR_INVALID, "this is not a %s, or its text is not UTF-8",
		                 method->request->name);
}

void grpc_services_call(struct grpc_services *services, struct exchange *exchange,
                        const struct identity *identity)
{
	switch (service_of(exchange)) {
	case HEALTH_V1:
		grpc_health_call(services, exchange);
		break;
	case REFLECTION_V1:
	case REFLECTION_V1ALPHA:
		grpc_reflection_call(services, exchange);
		break;
	case SCHEDULER:
		call_scheduler(services, exchange, identity);
		break;
	case AGENT:
		agents_call(services->settings.agents, exchange, identity);
		break;
	default:
		grpc_finish(exchange, GRPC_UNIMPLEMENTED, "there is no such service here");
	}
}
