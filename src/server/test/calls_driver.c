/* calls_driver.c - the service and its engine on one port, and a little more, for tests by real
 * clients: calls_driver DATABASE [--jwt SECRET] [--key ALGORITHM FILE]
 * [--rate N] [--notify PAYLOAD-OF-LAB] [--webhook URL SECRET] [--smtp PORT]
 * [--smtp-security tls|starttls] [--ca FILE] [--public-only]. Makes the tenants lab
 * and other, and the model tiny. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/notify/notify.h"
#include "api/service/service_state.h"
#include "base/clock.h"
#include "fetch/fetch.h"
#include "server/engine.h"
#include "wire/wire.h"

enum { KEPT_MAX = 2000 };

static struct {
	struct kept kept[KEPT_MAX];
	size_t kept_count;
	int making; /* that is not made yet */
	struct loop *loop;
	struct engine *engine;
	struct engine_port *port;
	struct service *service;
	struct handler handler;
	struct gate_settings gate;
	struct gate_key keys[4];
	struct listener *listener;
	struct notify_settings notify_settings;
	const char *lab_payload;
} driver;

static bool is_path(const struct exchange *exchange, size_t count, const char *first)
{
	return exchange->segments.count == count && text_is(exchange->segments.of[0], first);
}

/* Two things that the service does not have: who signed in, and the output of any
 * reservation. */
static bool is_own(const struct exchange *exchange)
{
	return !exchange->is_grpc &&
	       (is_path(exchange, 1, "who") || is_path(exchange, 3, "output"));
}

static void calls_on_head(struct exchange *exchange)
{
	if (!is_own(exchange))
		service_http(driver.service)->head(exchange);
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
	agents_read_output(driver.service->agents,
	                   &(struct agents_output_options){ .node = node,
	                                                    .reservation_id = reservation_id,
	                                                    .part = on_part,
	                                                    .end = on_output_end,
	                                                    .context = reading });
}

static void calls_on_request(struct exchange *exchange)
{
	struct gate_refusal refusal;
	struct identity who = { 0 };
	const struct url_segments *path = &exchange->segments;

	if (!is_own(exchange))
		service_http(driver.service)->request(exchange);
	else if (!gate_check(driver.service->gate, exchange, clock_unix_ms(), &who, &refusal))
		exchange_refuse(exchange, refusal.status, refusal.code, "%s", refusal.text);
	else if (is_path(exchange, 1, "who"))
		exchange_respond(exchange, &(struct response){ .content_type = "text/plain",
		                                               .body = text_of(who.name) });
	else
		read_output(exchange, path->of[1].data, strtoll(path->of[2].data, NULL, 10));
}

static void listen_to_clients(void)
{
	struct error error = { 0 };
	driver.listener = listener_open(
	    driver.loop,
	    &(struct listener_options){ .address = "127.0.0.1", .handler = &driver.handler },
	    &error);
	if (!driver.listener)
		panic("%s", error.text);
	printf("listening %u\n", listener_port(driver.listener));
	fflush(stdout);
}

static void on_made(struct engine_request *request)
{
	if (!request->ok)
		panic("%s", request->error.text);
	engine_request_free(request);
	free(request);
	if (--driver.making == 0)
		listen_to_clients();
}

static void calls_make(struct command command)
{
	struct engine_request *request = NEW(struct engine_request);
	request->command = command;
	request->has_command = true;
	request->done = on_made;
	driver.making++;
	engine_port_send(driver.port, request);
}

static void make_tenant(const char *name, const char *payload)
{
	calls_make((struct command){ .kind = COMMAND_PUT_TENANT,
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
	calls_make(command);
}

static void on_leading(void *context)
{
	(void)context;
	for (size_t i = 0; i < driver.kept_count; i++)
		service_load_kept(driver.service, &driver.kept[i]);
	service_begin(driver.service);
	if (!roster_named(&driver.service->roster, TEXT("lab"))) {
		make_tenant("lab", driver.lab_payload);
		make_tenant("other", "{}");
		make_model();
	}
	if (driver.making == 0)
		listen_to_clients();
}

static void calls_on_failed(void *context, const struct error *error)
{
	(void)context;
	panic("%s", error->text);
}

/* In the core's thread, before it leads. */
static void calls_on_kept(void *context, const struct kept *kept)
{
	(void)context;
	if (driver.kept_count == KEPT_MAX)
		panic("more is kept than the driver can hold");
	driver.kept[driver.kept_count++] =
	    (struct kept){ memory_text(kept->kind), memory_text(kept->key),
		           memory_text(kept->value) };
}

static void calls_stop(struct post *post)
{
	(void)post;
	loop_stop(driver.loop, 200);
}

static void *watch_signals(void *context)
{
	static struct post post = { .run = calls_stop };
	int signal = 0;
	sigwait(context, &signal);
	loop_post(driver.loop, &post);
	return NULL;
}

static char *calls_read_all(const char *path)
{
	static char text[8192];
	FILE *file = fopen(path, "r");
	if (!file)
		panic("%s cannot be read", path);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static void calls_read_arguments(int argc, char **argv)
{
	struct gate_settings *gate = &driver.gate;

	*gate = (struct gate_settings){ .keys = driver.keys, .audience = "gpu-scheduler" };
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--jwt") == 0)
			driver.keys[gate->key_count++] =
			    (struct gate_key){ "", "HS256", argv[++i] };
		else if (strcmp(argv[i], "--key") == 0) {
			driver.keys[gate->key_count++] =
			    (struct gate_key){ "", argv[i + 1], calls_read_all(argv[i + 2]) };
			i += 2;
		} else if (strcmp(argv[i], "--rate") == 0)
			gate->rate_per_s = strtoll(argv[++i], NULL, 10);
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
	gate->open = gate->key_count == 0;
}

int main(int argc, char **argv)
{
	struct limits limits = limits_default();
	sigset_t set;
	pthread_t thread;
	struct error error = { 0 };

	fetch_outlive_exit();
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
	calls_read_arguments(argc, argv);
	driver.loop = loop_new(&limits);
	driver.engine = engine_start(&(struct engine_options){
	    .loop = driver.loop,
	    .store = { .database = argv[1], .name = "driver" },
	    .kept = calls_on_kept,
	    .leading = on_leading,
	    .failed = calls_on_failed,
	});
	driver.port = engine_port(driver.engine);
	driver.service =
	    service_new(driver.port,
	                &(struct service_settings){
			    .gate = driver.gate,
			    .sessions = session_policy_default(),
			    .job_recipients = true,
			    .allow_private_webhooks = driver.notify_settings.allow_private,
			    .notify = &driver.notify_settings,
			    .direct_leases = true,
			},
	                &error);
	if (!driver.service)
		panic("%s", error.text);
	driver.handler = (struct handler){ .context = driver.service,
		                           .head = calls_on_head,
		                           .request = calls_on_request };
	pthread_create(&thread, NULL, watch_signals, &set);
	loop_run(driver.loop);
	pthread_join(thread, NULL);
	engine_stop(driver.engine);
	service_free(driver.service);
	loop_free(driver.loop);
	for (size_t i = 0; i < driver.kept_count; i++) {
		free((char *)driver.kept[i].kind);
		free((char *)driver.kept[i].key);
		free((char *)driver.kept[i].value);
	}
	return 0;
}
