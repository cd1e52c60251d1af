/* calls_driver.c - an engine with sign-in, gRPC, tokens, leases and audit on one port, for
 * tests of those by real clients: calls_driver DATABASE [--jwt SECRET] [--key ALGORITHM FILE]
 * [--rate N] [--notify PAYLOAD-OF-LAB] [--webhook URL SECRET] [--smtp PORT]
 * [--smtp-security tls|starttls] [--ca FILE] [--public-only]. Makes the tenants lab
 * and other, and the model tiny. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/grpc/grpc_services.h"
#include "api/model/leases.h"
#include "api/notify/notify.h"
#include "api/service/tokens.h"
#include "api/text/ids.h"
#include "base/clock.h"
#include "server/engine.h"
#include "wire/wire.h"

enum { KEPT_MAX = 2000 };

static struct {
	struct kept kept[KEPT_MAX];
	size_t kept_count;
	int making; /* that is not made yet */
	struct loop *loop;
	struct engine *engine;
	struct desk *desk;
	struct gate *gate;
	struct agents *agents;
	struct audit *audit;
	struct tokens *tokens;
	struct leases *leases;
	struct roster roster;
	struct streams *streams;
	struct grpc_services *services;
	struct listener *listener;
	struct notify *notify;
	struct notify_settings notify_settings;
	const char *lab_payload;
} driver;

/* Between the head and the request. */
static void on_head(struct exchange *exchange)
{
	struct gate_refusal refusal;
	struct identity who = { 0 };
	bool open = exchange->is_grpc && grpc_services_is_public(exchange);

	if (!open && !gate_check(driver.gate, exchange, clock_unix_ms(), &who, &refusal))
		exchange_refuse(exchange, refusal.status, refusal.code, "%s", refusal.text);
	else if (exchange->is_grpc && grpc_services_is_stream(exchange))
		grpc_services_call(driver.services, exchange, &who);
}

static bool is_path(const struct exchange *exchange, size_t count, const char *first,
                    const char *third)
{
	return exchange->segments.count == count && text_is(exchange->segments.of[0], first) &&
	       (!third || text_is(exchange->segments.of[2], third));
}

/* The output of what runs on a node, all of it at once. */
struct reading {
	struct exchange *exchange;
	struct buffer text;
};

static void on_part(void *context, int64_t offset, const void *data, size_t size)
{
	struct reading *reading = context;
	if ((size_t)offset != reading->text.size)
		panic("output has a gap at %lld", (long long)offset);
	buffer_bytes(&reading->text, data, size);
}

static void on_output_end(void *context, const struct error *error)
{
	struct reading *reading = context;
	if (error)
		exchange_refuse(reading->exchange, error->code == ERROR_NOT_FOUND ? 404 : 503,
		                error_code_name(error->code), "%s", error->text);
	else
		exchange_respond(
		    reading->exchange,
		    &(struct response){ .content_type = "text/plain",
		                        .body = { reading->text.data, reading->text.size } });
	buffer_free(&reading->text);
	free(reading);
}

static void read_output(struct exchange *exchange, const char *node, int64_t reservation_id)
{
	struct reading *reading = NEW(struct reading);
	reading->exchange = exchange;
	agents_read_output(driver.agents,
	                   &(struct agents_output_options){ .node = node,
	                                                    .reservation_id = reservation_id,
	                                                    .part = on_part,
	                                                    .end = on_output_end,
	                                                    .context = reading });
}

static void on_request(struct exchange *exchange)
{
	struct gate_refusal refusal;
	struct identity who = { 0 };
	const struct url_segments *path = &exchange->segments;
	int64_t id = 0;

	/* A real service keeps who it is from the head on. */
	bool public = exchange->is_grpc && grpc_services_is_public(exchange);
	if (!public && !gate_check(driver.gate, exchange, clock_unix_ms(), &who, &refusal))
		exchange_refuse(exchange, refusal.status, refusal.code, "%s", refusal.text);
	else if (exchange->is_grpc)
		grpc_services_call(driver.services, exchange, &who);
	else if (is_path(exchange, 1, "who", NULL))
		exchange_respond(exchange, &(struct response){ .content_type = "text/plain",
		                                               .body = text_of(who.name) });
	else if (is_path(exchange, 1, "tokens", NULL) && exchange->method == METHOD_POST)
		tokens_create(driver.tokens, exchange, &who);
	else if (is_path(exchange, 1, "tokens", NULL))
		tokens_list(driver.tokens, exchange, &who);
	else if (is_path(exchange, 2, "tokens", NULL))
		tokens_revoke(driver.tokens, exchange, &who, path->of[1].data);
	else if (is_path(exchange, 1, "audit", NULL))
		audit_list(driver.audit, exchange, &who);
	else if (is_path(exchange, 3, "output", NULL))
		read_output(exchange, path->of[1].data, strtoll(path->of[2].data, NULL, 10));
	else if (is_path(exchange, 3, "models", "leases") && id_read(path->of[1], ID_MODEL, &id))
		leases_create(driver.leases, exchange, &who, id);
	else if (is_path(exchange, 3, "leases", "renew") && id_read(path->of[1], ID_LEASE, &id))
		leases_renew(driver.leases, exchange, &who, id);
	else if (is_path(exchange, 2, "leases", NULL) && id_read(path->of[1], ID_LEASE, &id) &&
	         exchange->method == METHOD_DELETE)
		leases_delete(driver.leases, exchange, &who, id);
	else if (is_path(exchange, 2, "leases", NULL) && id > 0)
		leases_show(driver.leases, exchange, &who, id);
	else
		exchange_refuse(exchange, 404, "not_found", "nothing is here");
}

static const struct handler handler = { .head = on_head, .request = on_request };

static void on_order(void *context, const struct effect *effect)
{
	(void)context;
	agents_order(driver.agents, effect);
}

static void on_route(void *context, const struct route_effect *route)
{
	(void)context;
	leases_route(driver.leases, route);
}

static void on_event(void *context, const struct event *event)
{
	(void)context;
	notify_event(driver.notify, event);
	if (event->kind == EVENT_TENANT_CHANGED)
		roster_changed(&driver.roster, driver.desk->catalogue, event->tenant_id);
}

static void on_changed(void *context)
{
	(void)context;
	grpc_services_health_changed(driver.services);
}

static bool task_payload(void *context, int64_t job_id, int64_t task, struct buffer *payload,
                         struct error *error)
{
	struct catalogue_job job;
	(void)context;
	(void)task;
	catalogue_lock(driver.desk->catalogue);
	bool found = catalogue_job(driver.desk->catalogue, job_id, &job);
	buffer_text(payload, found ? job.job->payload : "{}");
	catalogue_unlock(driver.desk->catalogue);
	return found || error_set(error, ERROR_NOT_FOUND, "the job is gone");
}

static bool model_payload(void *context, int64_t model_id, struct buffer *payload,
                          struct error *error)
{
	(void)context;
	(void)model_id;
	(void)error;
	buffer_text(payload, "{}");
	return true;
}

static void listen_to_clients(void)
{
	struct error error = { 0 };
	driver.listener = listener_open(
	    driver.loop, &(struct listener_options){ .address = "127.0.0.1", .handler = &handler },
	    &error);
	if (!driver.listener)
		panic("%s", error.text);
	printf("listening %u\n", listener_port(driver.listener));
	fflush(stdout);
}

static void on_made(struct ask *ask)
{
	if (!ask->ok)
		panic("%s", ask->error.text);
	ask_free(ask);
	free(ask);
	if (--driver.making == 0)
		listen_to_clients();
}

static void make(struct command command)
{
	struct ask *ask = NEW(struct ask);
	ask->command = command;
	ask->has_command = true;
	ask->done = on_made;
	driver.making++;
	desk_ask(driver.desk, ask);
}

static void make_tenant(const char *name, const char *payload)
{
	make((struct command){ .kind = COMMAND_PUT_TENANT,
	                       .tenant = { .name = name,
	                                   .payload = payload,
	                                   .limit_gpu = UNLIMITED,
	                                   .limit_cpu = UNLIMITED,
	                                   .limit_host = UNLIMITED,
	                                   .limit_gpu_memory = UNLIMITED,
	                                   .limit_jobs = UNLIMITED,
	                                   .quota_gpu = QUOTA_UNSET,
	                                   .quota_cpu = QUOTA_UNSET,
	                                   .quota_host = QUOTA_UNSET,
	                                   .weight = 1000,
	                                   .allow_preemption = true,
	                                   .can_preempt_others = true,
	                                   .max_preemptions = UNLIMITED,
	                                   .queue_max = UNLIMITED,
	                                   .budget_per_month = UNLIMITED } });
}

static void make_model(void)
{
	struct command command = { .kind = COMMAND_PUT_MODEL };
	command.model.model = (struct model_record){ .tenant_id = 1,
		                                     .name = "tiny",
		                                     .runtime = RUNTIME_VLLM,
		                                     .command = "",
		                                     .payload = "{}",
		                                     .memory_mib = 1000,
		                                     .kv_cache = "",
		                                     .gpu_models = "",
		                                     .node_labels = "",
		                                     .message = "" };
	command.model.administrator = true;
	make(command);
}

static void load_kept(void)
{
	struct error error = { 0 };
	for (size_t i = 0; i < driver.kept_count; i++) {
		const struct kept *keep = &driver.kept[i];
		if (strcmp(keep->kind, "token") == 0 &&
		    !tokens_load(driver.tokens, keep->value, &error))
			panic("%s", error.text);
		if (strcmp(keep->kind, "audit") == 0)
			audit_load(driver.audit, keep->key, keep->value);
		if (strcmp(keep->kind, "notify") == 0)
			notify_load(driver.notify, keep->key, keep->value);
	}
}

static void on_leading(void *context)
{
	(void)context;
	load_kept();
	roster_fill(&driver.roster, driver.desk->catalogue);
	if (!roster_named(&driver.roster, TEXT("lab"))) {
		make_tenant("lab", driver.lab_payload);
		make_tenant("other", "{}");
		make_model();
	}
	agents_begin(driver.agents);
	leases_begin(driver.leases);
	notify_begin(driver.notify);
	if (driver.making == 0)
		listen_to_clients();
}

static void on_failed(void *context, const struct error *error)
{
	(void)context;
	panic("%s", error->text);
}

/* In the core's thread, before it leads. */
static void on_kept(void *context, const struct kept *kept)
{
	(void)context;
	if (driver.kept_count == KEPT_MAX)
		panic("more is kept than the driver can hold");
	driver.kept[driver.kept_count++] =
	    (struct kept){ memory_text(kept->kind), memory_text(kept->key),
		           memory_text(kept->value) };
}

static void stop(struct post *post)
{
	(void)post;
	loop_stop(driver.loop, 200);
}

static void *watch_signals(void *context)
{
	static struct post post = { .run = stop };
	int signal = 0;
	sigwait(context, &signal);
	loop_post(driver.loop, &post);
	return NULL;
}

static char *read_all(const char *path)
{
	static char text[8192];
	FILE *file = fopen(path, "r");
	if (!file)
		panic("%s cannot be read", path);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static void make_gate(int argc, char **argv)
{
	struct gate_key keys[4];
	struct gate_settings settings = { .open = true, .keys = keys, .audience = "gpu-scheduler" };
	struct error error = { 0 };

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--jwt") == 0)
			keys[settings.key_count++] = (struct gate_key){ "", "HS256", argv[++i] };
		else if (strcmp(argv[i], "--key") == 0) {
			keys[settings.key_count++] =
			    (struct gate_key){ "", argv[i + 1], read_all(argv[i + 2]) };
			i += 2;
		} else if (strcmp(argv[i], "--rate") == 0)
			settings.rate_per_s = strtoll(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--notify") == 0)
			driver.lab_payload = argv[++i];
		else if (strcmp(argv[i], "--webhook") == 0) {
			driver.notify_settings.webhook = argv[++i];
			driver.notify_settings.secret = argv[++i];
		} else if (strcmp(argv[i], "--smtp") == 0) {
			driver.notify_settings.smtp_host = "127.0.0.1";
			driver.notify_settings.smtp_port = strtoll(argv[++i], NULL, 10);
		} else if (strcmp(argv[i], "--smtp-security") == 0) {
			driver.notify_settings.smtp_security =
			    strcmp(argv[++i], "tls") == 0 ? SMTP_TLS : SMTP_STARTTLS;
			driver.notify_settings.smtp_user = "someone";
			driver.notify_settings.smtp_password = "hunter2";
		} else if (strcmp(argv[i], "--ca") == 0)
			driver.notify_settings.ca_path = argv[++i];
		else if (strcmp(argv[i], "--public-only") == 0)
			driver.notify_settings.allow_private = false;
	}
	settings.open = settings.key_count == 0;
	driver.gate = gate_new(&settings, &error);
	if (!driver.gate)
		panic("%s", error.text);
}

int main(int argc, char **argv)
{
	struct limits limits = limits_default();
	sigset_t set;
	pthread_t thread;
	struct error error = { 0 };

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	driver.lab_payload = "{}";
	driver.notify_settings = (struct notify_settings){ .email = "operator@example.org",
		                                           .smtp_security = SMTP_PLAIN,
		                                           .smtp_from = "gpu@example.org",
		                                           .queue_threshold = 20,
		                                           .retry_ms = 50,
		                                           .allow_private = true };
	make_gate(argc, argv);
	driver.loop = loop_new(&limits);
	driver.audit = audit_new(1000);
	driver.engine = engine_start(&(struct engine_options){
	    .loop = driver.loop,
	    .store = { .database = argv[1], .name = "driver" },
	    .kept = on_kept,
	    .leading = on_leading,
	    .failed = on_failed,
	});
	driver.desk = engine_desk(driver.engine);
	driver.streams = streams_new(driver.loop, driver.gate);
	driver.tokens = tokens_new(driver.desk, driver.gate, driver.audit, driver.streams);
	gate_use_roster(driver.gate, &driver.roster);
	driver.agents =
	    agents_new(driver.desk, &(struct agents_settings){ .streams = driver.streams,
	                                                       .policy = session_policy_default(),
	                                                       .task_payload = task_payload,
	                                                       .model_payload = model_payload });
	driver.leases = leases_new(driver.desk, &driver.roster, driver.streams);
	driver.notify = notify_new(driver.desk, &driver.notify_settings, &error);
	if (!driver.notify)
		panic("%s", error.text);
	driver.services =
	    grpc_services_new(&(struct grpc_services_settings){ .desk = driver.desk,
	                                                        .agents = driver.agents,
	                                                        .roster = &driver.roster,
	                                                        .audit = driver.audit });
	driver.desk->listener = (struct desk_listener){
		.order = on_order, .route = on_route, .event = on_event, .changed = on_changed
	};
	pthread_create(&thread, NULL, watch_signals, &set);
	loop_run(driver.loop);
	pthread_join(thread, NULL);
	engine_stop(driver.engine);
	notify_free(driver.notify);
	grpc_services_free(driver.services);
	leases_free(driver.leases);
	agents_free(driver.agents);
	streams_free(driver.streams);
	tokens_free(driver.tokens);
	audit_free(driver.audit);
	gate_free(driver.gate);
	roster_free(&driver.roster);
	loop_free(driver.loop);
	for (size_t i = 0; i < driver.kept_count; i++) {
		free((char *)driver.kept[i].kind);
		free((char *)driver.kept[i].key);
		free((char *)driver.kept[i].value);
	}
	return 0;
}
