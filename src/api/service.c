/* service.c - the service: what is behind the ports */
#include "api/service/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "api/auth/failure_audit.h"
#include "api/auth/jwt.h"
#include "api/engine/audit.h"
#include "api/gateway/gateways.h"
#include "api/grpc/grpc_services.h"
#include "api/live/hub.h"
#include "api/live/recorder.h"
#include "api/login/login.h"
#include "api/metrics.h"
#include "api/model/leases.h"
#include "api/node/node_calls.h"
#include "api/notify/notify.h"
#include "api/request/parameters.h"
#include "api/request/route.h"
#include "api/request/traffic.h"
#include "api/service/misreports.h"
#include "api/service/pages.h"
#include "api/service/service_state.h"
#include "api/service/token_use.h"
#include "api/service/tokens.h"
#include "api/tenant/billing.h"
#include "base/clock.h"
#include "base/hash.h"

enum { NODE_GPUS_FOR_MS = 1000, PUBLIC_BODY_BYTES = 4 << 10 };

static const char not_leading[] = "this scheduler is not the active one: it is starting, or "
				  "another one is";

int64_t service_time_ms(const struct service *service)
{
	return service->port->time_ms ? service->port->time_ms(service->port) : clock_unix_ms();
}

int64_t service_node_gpus(struct service *service)
{
	int64_t now_ms = loop_now_ms(service->port->loop);
	if (now_ms < service->node_gpus_until_ms)
		return service->node_gpus;
	struct catalogue *catalogue = service_catalogue(service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct gpu_record *const *gpus;
	const struct node_record *node;

	service->node_gpus = 0;
	catalogue_lock(catalogue);
	while ((node = catalogue_next(catalogue, &cursor)) != NULL)
		service->node_gpus = max64(
		    service->node_gpus, (int64_t)catalogue_node_gpus(catalogue, node->id, &gpus));
	catalogue_unlock(catalogue);
	service->node_gpus_until_ms = now_ms + NODE_GPUS_FOR_MS;
	return service->node_gpus;
}

/* What becomes durable. */

static void on_order(void *context, const struct effect *effect)
{
	struct service *service = context;
	if (!gateways_hold(service->gateways, effect))
		agents_order(service->agents, effect);
}

static void on_route(void *context, const struct route_effect *route)
{
	struct service *service = context;
	leases_route(service->leases, route);
	gateways_route(service->gateways, route);
}

static void on_slots_changed(void *context)
{
	struct service *service = context;

	gateways_slots_changed(service->gateways);
}

static void on_lease_taken(void *context, int64_t lease_id, const char *reason)
{
	struct service *service = context;

	leases_taken(service->leases, lease_id, reason);
}

static void service_on_changed(void *context)
{
	struct service *service = context;
	grpc_services_health_changed(service->services);
}

static void on_event(void *context, const struct event *event)
{
	struct service *service = context;
	if (event->kind == EVENT_TENANT_CHANGED) {
		roster_changed(&service->roster, service_catalogue(service), event->tenant_id);
		gate_forget(service->gate);
	}
	if (event->kind == EVENT_NODE_MISREPORTED)
		agents_misreported(service->agents, event);
	meters_event(&service->meters, event, service_catalogue(service), &service->roster);
	gateways_event(service->gateways, event);
	if (service->notify)
		notify_event(service->notify, event);
	hub_event(service->hub, event);
}

static void on_misreport(void *context, const char *node, const char *sentence)
{
	struct service *service = context;
	misreports_note(service->misreports, node, sentence);
}

/* Requests. */

static void arriving_gone(struct exchange *exchange)
{
	struct request *request = exchange->context;
	if (!request || request->phase != REQUEST_ARRIVING)
		return;
	if (exchange->refused_status > 0)
		request_count(request, exchange->refused_status);
	exchange->context = NULL;
	request_drop(request);
}

static const struct exchange_events waiting_events = { .gone = arriving_gone };

/* A browser asks whether a page of another origin may send what it is about to send. */
static void answer_options(struct request *request, const char *allowed)
{
	if (headers_get(&request->exchange->headers, "access-control-request-method").data) {
		request_header(request, "access-control-allow-methods",
		               TEXT("GET, HEAD, POST, PUT, DELETE"));
		request_header(request, "access-control-allow-headers",
		               TEXT("authorization, content-type, idempotency-key, if-none-match, "
		                    "traceparent, x-request-id"));
		request_header(request, "access-control-max-age", TEXT("600"));
	}
	request_header(request, "allow", text_of(allowed));
	request_answer(request, 204, NULL);
}

static void refuse_route(struct request *request, const char *allowed)
{
	const struct exchange *exchange = request->exchange;
	if (!*allowed) {
		request_refuse(request, 404, "not_found",
		               "there is nothing at %.*s; /openapi.json describes what there is",
		               (int)min64((int64_t)exchange->path.size, 200), exchange->path.data);
		return;
	}
	request_header(request, "allow", text_of(allowed));
	request_refuse(request, 405, "method_not_allowed", "%.*s is not possible here, only %s",
	               (int)min64((int64_t)exchange->method_name.size, 32),
	               exchange->method_name.data, allowed);
}

static void refuse_at_gate(struct request *request, const struct gate_refusal *refusal)
{
	char seconds[24];
	if (refusal->status == 401)
		request_header(request, "www-authenticate", TEXT("Bearer"));
	if (refusal->retry_after_s > 0) {
		struct buffer text = { 0 };
		buffer_print(&text, "%lld", (long long)refusal->retry_after_s);
		size_t size = text.size < sizeof(seconds) ? text.size : sizeof(seconds);
		memcpy(seconds, text.data, size);
		buffer_free(&text);
		request_header(request, "retry-after", (struct text){ seconds, size });
	}
	request_refuse(request, refusal->status, refusal->code, "%s", refusal->text);
}

static bool has_access(const struct identity *identity, enum access access)
{
	switch (access) {
	case ACCESS_ANYONE:
		return true;
	case ACCESS_READ:
		return identity_may_change(identity) || identity->role == ROLE_VIEWER;
	case ACCESS_CHANGE:
		return identity_may_change(identity);
	case ACCESS_MANAGE:
		return identity_may_manage(identity);
	case ACCESS_AGENT:
		return identity->role == ROLE_AGENT || identity->role == ROLE_ADMIN;
	case ACCESS_GATEWAY:
		return identity->role == ROLE_GATEWAY || identity->role == ROLE_ADMIN;
	case ACCESS_SIGNED_IN:
		return true;
	default:
		return identity->role == ROLE_ADMIN;
	}
}

static const char *needed_role(enum access access)
{
	switch (access) {
	case ACCESS_ADMIN:
		return "an administrator";
	case ACCESS_CHANGE:
		return "an administrator or a tenant";
	case ACCESS_MANAGE:
		return "an administrator, or one of a tenant";
	case ACCESS_AGENT:
		return "a token with the role 'agent'";
	case ACCESS_GATEWAY:
		return "a token with the role 'gateway'";
	default:
		return "an administrator, a tenant or a viewer";
	}
}

static bool service_check(struct service *service, const struct exchange *exchange,
                          struct identity *identity, struct gate_refusal *refusal)
{
	if (gate_check(service->gate, exchange, clock_unix_ms(), identity, refusal))
		return true;
	failure_audit_wake(service->failure_audit);
	return false;
}

/* A body may take minutes to come, and meanwhile the token may be revoked. */
static bool check_again(const struct service *service, const struct identity *identity,
                        struct gate_refusal *refusal)
{
	bool is_jwt = identity->credential.kind == CREDENTIAL_JWT;
	int64_t leeway_ms = is_jwt ? JWT_CLOCK_SKEW_MS : 0;
	const char *reason;
	if (gate_admits(service->gate, identity, clock_unix_ms() - leeway_ms, &reason))
		return true;
	*refusal = (struct gate_refusal){ .status = 401, .code = "unauthenticated" };
	snprintf(refusal->text, sizeof(refusal->text), "%s", reason);
	return false;
}

/* Lets it in, or answers why not. */
static bool let_in(struct request *request, enum access access)
{
	struct gate_refusal refusal;
	if (access == ACCESS_ANYONE)
		return true;
	if (!request->service->leading) {
		request_refuse(request, 503, "unavailable", "%s", not_leading);
		return false;
	}
	if (!service_check(request->service, request->exchange, &request->identity, &refusal)) {
		refuse_at_gate(request, &refusal);
		return false;
	}
	exchange_trust(request->exchange);
	if (has_access(&request->identity, access))
		return true;
	request_refuse(request, 403, "forbidden", "this takes %s", needed_role(access));
	return false;
}

/* True, or it is answered. */
static bool has_known_parameters(struct request *request)
{
	struct error error = { 0 };
	if (parameters_check(request->route, &request->exchange->query, &error))
		return true;
	request_fail(request, &error);
	return false;
}

static void on_grpc_head(struct request *request)
{
	struct exchange *exchange = request->exchange;
	request->route = grpc_route_of(exchange);
	if (!let_in(request, request->route ? request->route->access : ACCESS_SIGNED_IN))
		return;
	if (!request->route) {
		grpc_refuse_unknown(request);
		return;
	}
	/* Nobody has signed in, and nothing that is asked here is long. */
	if (request->route->access == ACCESS_ANYONE)
		exchange->body_limit = PUBLIC_BODY_BYTES;
	if (!grpc_route_is_stream(request->route))
		return;
	request_stream(request);
	request->route->handle(request);
}

static void service_on_head(struct exchange *exchange)
{
	struct service *service = exchange->handler->context;
	char allowed[ROUTE_ALLOWED_MAX];
	struct request *request = request_take(&service->requests, exchange);

	exchange->events = &waiting_events;
	if (exchange->is_grpc) {
		on_grpc_head(request);
		return;
	}
	request->route = router_find(service->router, exchange, allowed);
	if (!request->route) {
		if (exchange->method == METHOD_OPTIONS && *allowed)
			answer_options(request, allowed);
		else
			refuse_route(request, allowed);
		return;
	}
	if (!let_in(request, request->route->access) || !has_known_parameters(request))
		return;
	if (request->route->body_bytes > 0)
		exchange->body_limit = request->route->body_bytes;
}

static void service_on_request(struct exchange *exchange)
{
	struct request *request = exchange->context;
	struct gate_refusal refusal;
	request->phase = REQUEST_OPEN;
	if (request->route->access != ACCESS_ANYONE &&
	    !check_again(request->service, &request->identity, &refusal)) {
		refuse_at_gate(request, &refusal);
		return;
	}
	if (exchange->is_grpc)
		grpc_handle(request);
	else
		request->route->handle(request);
}

static const struct route *route_of(void (*handle)(struct request *request))
{
	const struct route *route = routes;
	while (route->path && route->handle != handle)
		route++;
	return route;
}

/* The port for metrics has those and health, under the path that is configured. */
static void on_metrics_head(struct exchange *exchange)
{
	struct service *service = exchange->handler->context;
	bool is_read = exchange->method == METHOD_GET || exchange->method == METHOD_HEAD;
	bool is_health = text_is(exchange->path, "/health");
	struct request *request = request_take(&service->requests, exchange);
	exchange->events = &waiting_events;
	if (!is_read || (!is_health && !text_is(exchange->path, service->settings.metrics_path))) {
		request_refuse(request, 404, "not_found", "only %s and /health are here",
		               service->settings.metrics_path);
		return;
	}
	request->route = route_of(is_health ? cluster_health : metrics_get);
	if (let_in(request, request->route->access))
		has_known_parameters(request);
}

/* The settings' text lasts until they are read again. */
static void set_recipients(struct service *service, const struct service_settings *settings)
{
	free(service->job_recipients_only);
	service->job_recipients_only =
	    memory_text(settings->job_recipients_only ? settings->job_recipients_only : "");
}

struct service *service_new(struct engine_port *port, const struct service_settings *settings,
                            struct error *error)
{
	struct gate *gate = gate_new(&settings->gate, error);
	if (!gate)
		return NULL;
	struct notify *notify = NULL;
	if (settings->notify && !(notify = notify_new(port, settings->notify, error))) {
		gate_free(gate);
		return NULL;
	}
	struct service *service = NEW(struct service);

	service->port = port;
	service->gate = gate;
	service->notify = notify;
	service->settings = *settings;
	set_recipients(service, settings);
	service->billing = billing_new(service);
	service->settings.version = memory_text(settings->version ? settings->version : "");
	service->settings.metrics_path =
	    memory_text(settings->metrics_path ? settings->metrics_path : "/metrics");
	if (service->settings.default_limit <= 0)
		service->settings.default_limit = 50;
	if (service->settings.limit_max <= 0)
		service->settings.limit_max = 1000;
	service->began_ms = clock_unix_ms();
	service->router = router_new();
	service->pages = pages_new();
	service->hub = hub_new(service);
	service->recorder = recorder_new(service);
	service->streams = streams_new(port->loop, gate);
	service->agents = agents_new(port, &(struct agents_settings){
					       .streams = service->streams,
					       .policy = settings->sessions,
					       .advice = settings->advice,
					       .task_payload = order_task_payload,
					       .model_payload = order_model_payload,
					       .slot_addresses = settings->slot_addresses,
					       .misreport = on_misreport,
					       .lease_taken = on_lease_taken,
					       .slots_changed = on_slots_changed,
					       .context = service,
					   });
	service->http = (struct handler){ .context = service,
		                          .head = service_on_head,
		                          .request = service_on_request };
	service->grpc = service->http;
	service->metrics = (struct handler){ .context = service,
		                             .head = on_metrics_head,
		                             .request = service_on_request };
	service->audit = audit_new(0);
	service->misreports = misreports_new(port, service->audit);
	service->failure_audit = failure_audit_new(port, gate_failures(gate), service->audit);
	service->requests = (struct requests){
		.pool = { .size = sizeof(struct request) },
		.port = port,
		.gate = gate,
		.audit = service->audit,
		.traffic = traffic_new(routes, grpc_routes),
		.service = service,
		.id_seed = hash_combine((uint64_t)clock_unix_us(), (uint64_t)getpid()),
	};
	service->leases = leases_new(service);
	service->token_uses = token_uses_new();
	service->gateways = gateways_new(service);
	service->services = grpc_services_new(service);
	gate_use_roster(gate, &service->roster);
	if (settings->login && !(service->login = login_new(service, settings->login, error))) {
		service_free(service);
		return NULL;
	}
	port->listener = (struct engine_listener){ .order = on_order,
		                                   .route = on_route,
		                                   .event = on_event,
		                                   .changed = service_on_changed,
		                                   .context = service };
	return service;
}

void service_load_kept(struct service *service, const struct kept *keep)
{
	struct error error;
	if (!keep->value)
		return;
	if (strcmp(keep->kind, "token") == 0)
		tokens_load(service->gate, keep->value, &error);
	else if (strcmp(keep->kind, "audit") == 0)
		audit_load(service->audit, keep->key, keep->value);
	else if (strcmp(keep->kind, "gateway") == 0)
		gateways_load(service->gateways, keep);
	else if (strcmp(keep->kind, TOKEN_USE_KIND) == 0)
		token_uses_load(service->token_uses, keep);
	else if (strcmp(keep->kind, "notify") == 0 && service->notify)
		notify_load(service->notify, keep->key, keep->value);
	else if (strcmp(keep->kind, "billing") == 0)
		billing_load(service->billing, keep->value);
	else if (strcmp(keep->kind, "history") == 0)
		recorder_load(service->recorder, keep->key, keep->value);
}

static int64_t last_event(struct catalogue *catalogue)
{
	catalogue_lock(catalogue);
	const struct meta_record *meta = catalogue_get(catalogue, RECORD_META, 1, 0);
	int64_t number = meta ? meta->last_event : 0;
	catalogue_unlock(catalogue);
	return number;
}

void service_begin(struct service *service)
{
	service->leading = true;
	roster_fill(&service->roster, service_catalogue(service));
	hub_begin(service->hub, last_event(service_catalogue(service)));
	agents_begin(service->agents);
	leases_begin(service->leases);
	recorder_begin(service->recorder);
	gateways_begin(service->gateways);
	if (service->notify)
		notify_begin(service->notify);
	billing_begin(service->billing);
}

bool service_reload(struct service *service, const struct service_settings *settings,
                    struct error *error)
{
	if (service->notify && settings->notify &&
	    !notify_reload(service->notify, settings->notify, error))
		return false;
	if (!gate_reload(service->gate, &settings->gate, error))
		return false;
	streams_check(service->streams);
	service->settings.secret_keys = settings->secret_keys;
	service->settings.check_possible = settings->check_possible;
	service->settings.allow_unix_user = settings->allow_unix_user;
	service->settings.allow_private_webhooks = settings->allow_private_webhooks;
	service->settings.session_idle_ms = settings->session_idle_ms;
	service->settings.job_recipients = settings->job_recipients;
	service->settings.owners_only = settings->owners_only;
	set_recipients(service, settings);
	agents_advise(service->agents, &settings->advice);
	return true;
}

void service_stop(struct service *service)
{
	agents_stop(service->agents);
	gateways_stop(service->gateways);
	grpc_services_stop(service->services);
}

void service_free(struct service *service)
{
	if (!service)
		return;
	login_free(service->login);
	free(service->job_recipients_only);
	billing_free(service->billing);
	notify_free(service->notify);
	hub_free(service->hub);
	recorder_free(service->recorder);
	grpc_services_free(service->services);
	gateways_free(service->gateways);
	token_uses_free(service->token_uses);
	leases_free(service->leases);
	agents_free(service->agents);
	requests_free(&service->requests);
	misreports_free(service->misreports);
	failure_audit_free(service->failure_audit);
	audit_free(service->audit);
	streams_free(service->streams);
	gate_free(service->gate);
	router_free(service->router);
	pages_free(service->pages);
	traffic_free(service->requests.traffic);
	roster_free(&service->roster);
	meters_free(&service->meters);
	buffer_free(&service->scratch);
	free((char *)service->settings.version);
	free((char *)service->settings.metrics_path);
	free(service);
}

const struct handler *service_http(struct service *service)
{
	return &service->http;
}

const struct handler *service_grpc(struct service *service)
{
	return &service->grpc;
}

const struct handler *service_metrics(struct service *service)
{
	return &service->metrics;
}
