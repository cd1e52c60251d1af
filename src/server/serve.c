/* serve.c - the service from its start to its end */
#include "server/serve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/service/service.h"
#include "base/log.h"
#include "server/directory.h"
#include "server/engine.h"
#include "server/kubernetes/kubernetes.h"
#include "server/signals.h"
#include "server/supervisor.h"
#include "server/wiring.h"
#include "wire/wire.h"

/* How long a loop may run after its grace period to stop. */
enum { FAILED_GRACE_MS = 500, OVERTIME_MS = 500 };
/* Open files beside connections. */
enum { OTHER_FILES = 256 };

/* Something that was kept, until the service can have it in the loop's thread. */
struct remembered {
	struct remembered *next;
	struct kept keep;
};

/* All of it. `wanted` is read in the core's thread, so the mutex guards it; `kept` is
 * filled there before the loop's thread is told that the engine leads. The rest
 * belongs to the loop's thread. The first config and wiring live until the end: the engine
 * holds on to them. */
struct server {
	const struct options *options;
	char *const *environment;
	struct config *config, *first;
	struct wiring *wiring, *first_wiring;
	struct loop *loop;
	struct engine *engine;
	struct service *service;
	struct kubernetes *kubernetes; /* NULL: not wanted */
	struct tls *tls;
	struct signals *signals;
	struct listener *http, *grpc, *metrics;
	const struct proxies *proxies;
	struct timer watchdog, deadline;
	bool ready, stopping;
	pthread_mutex_t mutex;
	struct config_record wanted;
	struct remembered *kept;
	struct arena kept_arena;
	atomic_int status;
	struct post failure;
	atomic_flag has_failed;
};

static void serve_note(void *context, const char *sentence)
{
	(void)context;
	log_at(LOG_WARNING, sentence);
}

/* Called by the engine with what is stored: what is configured goes before that. */
static void serve_configure(void *context, struct config_record *record)
{
	struct server *server = context;
	pthread_mutex_lock(&server->mutex);
	struct config_record wanted = server->wanted;
	pthread_mutex_unlock(&server->mutex);
	wanted.id = record->id;
	*record = wanted;
}

static void set_wanted(struct server *server, const struct config *config)
{
	pthread_mutex_lock(&server->mutex);
	server->wanted = config_default();
	config_to_record(config, &server->wanted);
	pthread_mutex_unlock(&server->mutex);
}

static void serve_remember(void *context, const struct kept *kept)
{
	struct server *server = context;
	struct arena *arena = &server->kept_arena;
	struct remembered *one = arena_alloc(arena, sizeof(*one));
	*one = (struct remembered){ .next = server->kept,
		                    .keep = { .kind = arena_string(arena, kept->kind),
		                              .key = arena_string(arena, kept->key),
		                              .value = arena_string(arena, kept->value) } };
	server->kept = one;
}

/* "127.0.0.1:8080", or with brackets around an address that has colons itself. */
static void put_address(struct buffer *text, const char *address, uint16_t port)
{
	bool colons = strchr(address, ':');
	buffer_print(text, "%s%s%s:%u", colons ? "[" : "", address, colons ? "]" : "", port);
}

static void tell_addresses(const struct server *server)
{
	const struct config *config = server->config;
	const char *scheme = server->tls ? "https" : "http";
	struct buffer text = { 0 };
	buffer_print(&text, "gpu-scheduler serves at %s://", scheme);
	put_address(&text, config->api.listen, listener_port(server->http));
	buffer_text(&text, "\n  gRPC      ");
	put_address(&text, config->api.listen, listener_port(server->grpc));
	if (server->metrics) {
		buffer_print(&text, "\n  metrics   %s://", scheme);
		put_address(&text, config->api.listen, listener_port(server->metrics));
		buffer_text(&text, config->metrics.path);
	}
	puts(text.data);
	fflush(stdout);
	buffer_free(&text);
}

/* In the loop's thread: the engine leads, and all is loaded. */
static void leading(void *context)
{
	struct server *server = context;
	struct engine_health health;
	struct engine_port *port = engine_port(server->engine);
	if (!server->ready)
		return;
	for (const struct remembered *at = server->kept; at; at = at->next)
		service_load_kept(server->service, &at->keep);
	server->kept = NULL;
	arena_free(&server->kept_arena);
	service_begin(server->service);
	if (server->kubernetes)
		kubernetes_begin(server->kubernetes);
	port->health(port, &health);
	log_at(LOG_INFO, "this scheduler leads, and serves", LOG_NUMBER("term", health.term),
	       LOG_NUMBER("http_port", listener_port(server->http)),
	       LOG_NUMBER("grpc_port", listener_port(server->grpc)));
	supervisor_tell("STATUS=serving\n");
	if (!server->stopping)
		tell_addresses(server);
}

static void serve_stop(struct server *server, int64_t grace_ms)
{
	/* A second signal hurries. */
	int64_t left_ms = server->stopping ? 0 : grace_ms;
	if (!server->stopping)
		supervisor_tell("STOPPING=1\nSTATUS=finishing what is in flight\n");
	server->stopping = true;
	loop_timer_clear(server->loop, &server->watchdog);
	loop_timer_set(server->loop, &server->deadline, left_ms + OVERTIME_MS);
	loop_stop(server->loop, left_ms);
	kubernetes_stop(server->kubernetes);
	if (server->service)
		service_stop(server->service);
}

/* Requests whose answer will never come, because the store cannot commit or is lost, keep
 * the loop from ending. What is durable is, so the process ends without them. */
static void abandon(struct timer *timer)
{
	struct server *server =
	    (struct server *)((char *)timer - offsetof(struct server, deadline));
	uint64_t count = loop_counters(server->loop).exchanges;
	log_at(LOG_WARNING, "requests are left without an answer",
	       LOG_NUMBER("requests", (int64_t)count));
	engine_stop(server->engine);
	int status = atomic_load(&server->status);
	log_at(LOG_INFO, "gpu-scheduler has ended", LOG_NUMBER("status", status));
	_exit(status);
}

static void end_after_failure(struct post *post)
{
	struct server *server = (struct server *)((char *)post - offsetof(struct server, failure));
	serve_stop(server, FAILED_GRACE_MS);
}

/* In any thread: nothing more will be answered. */
static void failed(void *context, const struct error *error)
{
	struct server *server = context;
	bool corrupt = error->code == ERROR_CORRUPT;
	log_at(LOG_ERROR, error->text, LOG_TEXT("code", error_code_name(error->code)),
	       LOG_TEXT("remedy", corrupt ? "'gpu-scheduler check' says all that is wrong"
	                                  : "start it again"));
	atomic_store(&server->status, corrupt ? 1 : EXIT_RESTART);
	if (!atomic_flag_test_and_set(&server->has_failed)) {
		server->failure.run = end_after_failure;
		loop_post(server->loop, &server->failure);
	}
}

static bool use(struct server *server, struct config *config, struct error *error)
{
	struct wiring *wiring = wiring_new(config, error);
	if (!wiring)
		return false;
	/* The addresses that it listens on were checked with this at the start. */
	wiring->service.gate.open = server->first_wiring->service.gate.open;
	if (!service_reload(server->service, &wiring->service, error)) {
		wiring_free(wiring);
		return false;
	}
	/* The service holds the keys of the last one that it was given. */
	if (server->wiring != server->first_wiring)
		wiring_free(server->wiring);
	server->wiring = wiring;
	return true;
}

/* SIGHUP: what can change does, and the rest is named. */
static void reload(struct server *server)
{
	struct error error;
	struct buffer later = { 0 };
	struct config *config = options_config(server->options, server->environment, &error);
	if (!config || !use(server, config, &error)) {
		log_at(LOG_ERROR, "the settings stay as they were", LOG_TEXT("reason", error.text));
		config_free(config);
		return;
	}
	log_set_verbosity((int)config->logging.verbosity);
	set_wanted(server, config);
	engine_reconfigure(server->engine);
	if (server->tls && !tls_reload(server->tls, &error))
		log_at(LOG_ERROR, "the certificate stays as it was",
		       LOG_TEXT("reason", error.text));
	config_differences(server->first, config, &later);
	log_at(LOG_INFO, "the settings were read again", LOG_TEXT("next_start", later.data));
	buffer_free(&later);
	if (server->config != server->first)
		config_free(server->config);
	server->config = config;
}

static void on_signal(void *context, int number)
{
	struct server *server = context;
	if (number == SIGHUP)
		reload(server);
	else
		serve_stop(server, server->config->api.stop_grace_ms);
}

static void on_certificate(void *context, const struct error *error)
{
	(void)context;
	if (error)
		log_at(LOG_ERROR, "the changed certificate cannot be used: the old one stays",
		       LOG_TEXT("reason", error->text));
	else
		log_at(LOG_INFO, "the certificate was read again");
}

static bool open_tls(struct server *server, struct error *error)
{
	const struct config *config = server->config;
	if (!config->api.enable_tls)
		return true;
	server->tls = tls_new(
	    server->loop,
	    &(struct tls_options){
		.certificate_path = config->api.tls_cert_path,
		.key_path = config->api.tls_key_path,
		.ca_path = *config->api.tls_client_ca_path ? config->api.tls_client_ca_path : NULL,
		.reloaded = on_certificate,
	    },
	    error);
	return server->tls != NULL;
}

static struct listener *open_port(struct server *server, int64_t port,
                                  const struct handler *handler, bool for_agents,
                                  struct error *error)
{
	return listener_open(server->loop,
	                     &(struct listener_options){ .address = server->config->api.listen,
	                                                 .port = (uint16_t)port,
	                                                 .tls = server->tls,
	                                                 .handler = handler,
	                                                 .proxies = server->proxies,
	                                                 .for_agents = for_agents },
	                     error);
}

static bool open_ports(struct server *server, struct error *error)
{
	const struct config *config = server->config;
	struct service *service = server->service;
	server->http =
	    open_port(server, config->api.http_port, service_http(service), false, error);
	if (!server->http)
		return false;
	server->grpc = open_port(server, config->api.grpc_port, service_grpc(service), true, error);
	if (!server->grpc)
		return false;
	if (config->metrics.enable)
		server->metrics =
		    open_port(server, config->metrics.port, service_metrics(service), false, error);
	return server->metrics || !config->metrics.enable;
}

static void beat(struct timer *timer)
{
	struct server *server =
	    (struct server *)((char *)timer - offsetof(struct server, watchdog));
	supervisor_tell("WATCHDOG=1\n");
	loop_timer_set(server->loop, timer, supervisor_watchdog_ms());
}

static struct engine *start_engine(struct server *server)
{
	struct engine_options options = server->wiring->engine;
	options.loop = server->loop;
	options.configure = serve_configure;
	options.kept = serve_remember;
	options.leading = leading;
	options.failed = failed;
	options.note = serve_note;
	options.context = server;
	return engine_start(&options);
}

/* As many open files as the connections need, or fewer connections. Leaves some for the
 * store, logs and the rest. */
static void fit_descriptors(struct limits *limits)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	rlim_t wanted = limits->connections + OTHER_FILES;
	if (files.rlim_cur < wanted && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = wanted < files.rlim_max ? wanted : files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted)
		return;
	size_t most = (size_t)files.rlim_cur;
	size_t others = most / 4 < OTHER_FILES ? most / 4 : OTHER_FILES;
	limits->connections = most > others + 1 ? most - others : 1;
	log_at(LOG_WARNING, "the limit of open files allows fewer connections than configured",
	       LOG_NUMBER("open_files", (int64_t)most),
	       LOG_NUMBER("connections", (int64_t)limits->connections));
}

static bool open_kubernetes(struct server *server, struct error *error)
{
	if (!server->config->kubernetes.enable)
		return true;
	server->kubernetes = kubernetes_new(engine_port(server->engine), server->config, error);
	return server->kubernetes != NULL;
}

/* Everything up to where the loop can run. */
static bool serve_begin(struct server *server, struct error *error)
{
	struct limits limits = config_to_limits(server->config);
	fit_descriptors(&limits);
	server->proxies = config_to_proxies(server->config);
	if (!directory_make(server->config->store.data_dir, error))
		return false;
	server->wiring = server->first_wiring = wiring_new(server->config, error);
	if (!server->wiring)
		return false;
	set_wanted(server, server->config);
	server->loop = loop_new(&limits);
	server->engine = start_engine(server);
	server->service = service_new(engine_port(server->engine), &server->wiring->service, error);
	if (!server->service || !open_kubernetes(server, error) || !open_tls(server, error) ||
	    !open_ports(server, error))
		return false;
	server->signals = signals_start(server->loop, on_signal, server);
	server->ready = true;
	if (supervisor_watchdog_ms() > 0)
		loop_timer_set(server->loop, &server->watchdog, supervisor_watchdog_ms());
	supervisor_tell("READY=1\nSTATUS=waiting to lead\n");
	return true;
}

/* Also from half a beginning, where the loop still has to run to close its listeners. */
static void serve_end(struct server *server)
{
	if (server->loop && !server->ready) {
		kubernetes_stop(server->kubernetes);
		loop_stop(server->loop, 0);
		loop_run(server->loop);
	}
	signals_stop(server->signals);
	if (server->engine)
		engine_stop(server->engine);
	kubernetes_free(server->kubernetes);
	service_free(server->service);
	tls_free(server->tls);
	if (server->loop)
		loop_free(server->loop);
	if (server->wiring != server->first_wiring)
		wiring_free(server->wiring);
	wiring_free(server->first_wiring);
	arena_free(&server->kept_arena);
	if (server->config != server->first)
		config_free(server->config);
	config_free(server->first);
	pthread_mutex_destroy(&server->mutex);
}

int serve(const struct options *options, struct config *config, char *const *environment)
{
	struct server server = { .options = options,
		                 .environment = environment,
		                 .config = config,
		                 .first = config,
		                 .watchdog = TIMER(beat),
		                 .deadline = TIMER(abandon),
		                 .has_failed = ATOMIC_FLAG_INIT };
	struct error error;
	struct buffer without_effect = { 0 };
	pthread_mutex_init(&server.mutex, NULL);
	signals_block();
	log_set_verbosity((int)config->logging.verbosity);
	log_at(LOG_INFO, "gpu-scheduler starts", LOG_TEXT("version", GPU_SCHEDULER_VERSION),
	       LOG_TEXT("store", config_is_postgres(config) ? "postgresql" : "sqlite"));
	config_without_effect(config, &without_effect);
	if (without_effect.size > 0)
		log_at(LOG_WARNING, "some settings have no effect",
		       LOG_TEXT("settings", without_effect.data));
	buffer_free(&without_effect);
	struct buffer exposed = { 0 };
	config_exposed_secrets(config, &exposed);
	if (exposed.size > 0)
		log_at(LOG_WARNING,
		       "every user of this machine can read secrets of the settings: chmod 640",
		       LOG_TEXT("settings", exposed.data));
	buffer_free(&exposed);
	if (serve_begin(&server, &error)) {
		loop_run(server.loop);
	} else {
		log_at(LOG_ERROR, error.text, LOG_TEXT("code", error_code_name(error.code)));
		fprintf(stderr, "gpu-scheduler: %s\n", error.text);
		atomic_store(&server.status, 1);
	}
	serve_end(&server);
	log_at(LOG_INFO, "gpu-scheduler has ended",
	       LOG_NUMBER("status", atomic_load(&server.status)));
	return atomic_load(&server.status);
}
