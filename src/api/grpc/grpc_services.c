/* grpc_services.c - all that can be called by gRPC: which call goes where */
#include "api/grpc/grpc_services.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent.pb-c.h"
#include "api/gateway/gateways.h"
#include "api/grpc/grpc_local.h"
#include "health.pb-c.h"
#include "scheduler.pb-c.h"

const char *const grpc_service_names[] = {
	"grpc.health.v1.Health",
	"grpc.reflection.v1.ServerReflection",
	"grpc.reflection.v1alpha.ServerReflection",
	"scheduler.SchedulerService",
	"agent.AgentService",
	"gateway.GatewayService",
	NULL,
};

static void agent_register(struct request *request)
{
	agents_register(request->service->agents, request);
}

static void agent_report(struct request *request)
{
	agents_report(request->service->agents, request);
}

static void agent_connect(struct request *request)
{
	agents_connect(request->service->agents, request);
}

static void agent_heartbeat(struct request *request)
{
	agents_heartbeat(request->service->agents, request);
}

static void agent_assignments(struct request *request)
{
	agents_assignments(request->service->agents, request);
}

static void gateway_connect(struct request *request)
{
	gateways_connect(request);
}

/* Path, who may call it, what handles it, and the one message that it takes; NULL: messages come
 * one by one. The first is the one that is called most. */
/* clang-format off */
#define METHODS(M)                                                                                 \
	M("/scheduler.SchedulerService/SubmitJob", ACCESS_CHANGE, grpc_submit_job,                 \
	  &scheduler__submit_job_request__descriptor)                                              \
	M("/scheduler.SchedulerService/CancelJob", ACCESS_CHANGE, grpc_cancel_job,                 \
	  &scheduler__cancel_job_request__descriptor)                                              \
	M("/scheduler.SchedulerService/GetJobStatus", ACCESS_READ, grpc_job_status,                \
	  &scheduler__get_job_status_request__descriptor)                                          \
	M("/scheduler.SchedulerService/ListJobs", ACCESS_READ, grpc_list_jobs,                     \
	  &scheduler__list_jobs_request__descriptor)                                               \
	M("/scheduler.SchedulerService/UpdateTenantQuota", ACCESS_ADMIN, grpc_update_quota,        \
	  &scheduler__update_tenant_quota_request__descriptor)                                     \
	M("/scheduler.SchedulerService/GetMetrics", ACCESS_READ, grpc_metrics,                     \
	  &scheduler__get_metrics_request__descriptor)                                             \
	M("/scheduler.SchedulerService/GetClusterStatus", ACCESS_READ, grpc_cluster_status,        \
	  &scheduler__get_cluster_status_request__descriptor)                                      \
	M("/scheduler.SchedulerService/CreateWindow", ACCESS_ADMIN, grpc_create_window,            \
	  &scheduler__create_window_request__descriptor)                                           \
	M("/scheduler.SchedulerService/GetWindow", ACCESS_READ, grpc_get_window,                   \
	  &scheduler__get_window_request__descriptor)                                              \
	M("/scheduler.SchedulerService/ListWindows", ACCESS_READ, grpc_list_windows,               \
	  &scheduler__list_windows_request__descriptor)                                            \
	M("/scheduler.SchedulerService/DeleteWindow", ACCESS_ADMIN, grpc_delete_window,            \
	  &scheduler__delete_window_request__descriptor)                                           \
	M("/scheduler.SchedulerService/EvictModel", ACCESS_CHANGE, grpc_evict_model,               \
	  &scheduler__evict_model_request__descriptor)                                             \
	M("/agent.AgentService/RegisterAgent", ACCESS_AGENT, agent_register,                       \
	  &agent__register_agent_request__descriptor)                                              \
	M("/agent.AgentService/ReportMetrics", ACCESS_AGENT, agent_report,                         \
	  &agent__report_metrics_request__descriptor)                                              \
	M("/agent.AgentService/Connect", ACCESS_AGENT, agent_connect, NULL)                        \
	M("/agent.AgentService/Heartbeat", ACCESS_AGENT, agent_heartbeat, NULL)                    \
	M("/agent.AgentService/ReceiveJobAssignment", ACCESS_AGENT, agent_assignments, NULL)       \
	M("/gateway.GatewayService/Connect", ACCESS_GATEWAY, gateway_connect, NULL)                \
	M("/grpc.health.v1.Health/Check", ACCESS_ANYONE, grpc_health_check,                        \
	  &grpc__health__v1__health_check_request__descriptor)                                     \
	M("/grpc.health.v1.Health/Watch", ACCESS_ANYONE, grpc_health_watch,                        \
	  &grpc__health__v1__health_check_request__descriptor)                                     \
	M("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ACCESS_ANYONE,              \
	  grpc_reflection_open, NULL)                                                              \
	M("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", ACCESS_ANYONE,         \
	  grpc_reflection_open, NULL)
/* clang-format on */

#define METHOD_ROUTE(path_, access_, handle_, message_)                                            \
	{ .method = METHOD_POST, .path = (path_), .access = (access_), .handle = (handle_) },
const struct route grpc_routes[] = { METHODS(METHOD_ROUTE){ .path = NULL } };

#define METHOD_MESSAGE(path_, access_, handle_, message_) message_,
static const ProtobufCMessageDescriptor *const messages[] = { METHODS(METHOD_MESSAGE) };

struct grpc_services *grpc_services_new(struct service *service)
{
	struct grpc_services *services = NEW(struct grpc_services);

	services->service = service;
	return services;
}

void grpc_services_stop(struct grpc_services *services)
{
	grpc_health_free(services);
}

void grpc_services_free(struct grpc_services *services)
{
	if (!services)
		return;
	grpc_health_free(services);
	grpc_reflection_free(services);
	buffer_free(&services->scratch);
	free(services);
}

bool grpc_services_has(const char *name)
{
	for (int i = 0; grpc_service_names[i]; i++)
		if (strcmp(name, grpc_service_names[i]) == 0)
			return true;
	return false;
}

const struct route *grpc_route_of(const struct exchange *exchange)
{
	const struct route *route = grpc_routes;

	while (route->path && !text_is(exchange->path, route->path))
		route++;
	return route->path ? route : NULL;
}

bool grpc_route_is_stream(const struct route *route)
{
	return messages[route - grpc_routes] == NULL;
}

void grpc_handle(struct request *request)
{
	const ProtobufCMessageDescriptor *kind = messages[request->route - grpc_routes];

	request->message = protobuf_read(kind, request->exchange->body, &request->engine.arena);
	if (request->message)
		request->route->handle(request);
	else
		request_reject(request, ERROR_INVALID, "this is not a %s, or its text is not UTF-8",
		               kind->name);
}

void grpc_refuse_unknown(struct request *request)
{
	const struct url_segments *segments = &request->exchange->segments;
	const char *service = segments->count == 2 ? segments->of[0].data : "";
	char text[128];

	if (grpc_services_has(service))
		snprintf(text, sizeof(text), "%s has no such method", service);
	else
		snprintf(text, sizeof(text), "there is no such service here");
	request_finish(request, GRPC_UNIMPLEMENTED, text);
}

void grpc_answer(struct request *request, const void *message)
{
	request_reply(request, protobuf_write(message, &request->engine.arena));
}

void grpc_command(struct request *request, const char *collection, const char *name,
                  void (*done)(struct engine_request *engine))
{
	size_t size = strlen(collection) + strlen(name) + 1;
	char *object = arena_alloc(&request->engine.arena, size);

	snprintf(object, size, "%s%s", collection, name);
	request_command_on(request, object, done);
}

bool grpc_tenant(struct request *request, const char *name, int64_t *tenant_id)
{
	const struct roster *roster = &request->service->roster;

	*tenant_id = request->identity.tenant_id;
	if (!name[0])
		return true;
	const struct roster_tenant *tenant = roster_named(roster, text_of(name));
	if (tenant && roster_may_see(roster, &request->identity, tenant->id)) {
		*tenant_id = tenant->id;
		return true;
	}
	request_reject(request, ERROR_NOT_FOUND, "there is no tenant %.100s", name);
	return false;
}
