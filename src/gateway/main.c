/* main.c - gpu-gateway: one endpoint for all models */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "gateway/options.h"
#include "gateway/routes_file.h"
#include "gateway/session.h"
#include "wire/loop_state.h"

enum { END_LOOK_MS = 20, OTHER_FILES = 256, FILES_OF_PASSAGE = 2 };

/* All of it. `end` looks whether everything has ended, after a signal. */
struct gateway_main {
	struct program program;
	struct tls *tls;
	uv_signal_t signals[2];
	uv_timer_t end;
	bool is_ending;
};

/* Every request that is passed on takes a connection of the client and one to a server. */
static void fit_descriptors(struct limits *limits)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	rlim_t wanted = limits->connections * FILES_OF_PASSAGE + OTHER_FILES, most = files.rlim_max;
	/* Root may have more than it was given. */
	files.rlim_cur = wanted;
	files.rlim_max = wanted < most ? most : wanted;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
		files.rlim_cur = wanted < most ? wanted : most;
		files.rlim_max = most;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted)
		return;
	limits->connections = (files.rlim_cur - OTHER_FILES) / FILES_OF_PASSAGE;
	log_at(LOG_WARNING, "the limit of open files allows fewer connections than configured",
	       LOG_NUMBER("open_files", (int64_t)files.rlim_cur),
	       LOG_NUMBER("connections", (int64_t)limits->connections));
}

static struct limits limits_of(const struct program_settings *settings)
{
	struct limits limits = limits_default();

	limits.body_bytes = (size_t)settings->body_bytes;
	limits.buffered_bytes = (size_t)settings->buffered_bytes;
	limits.connections = (size_t)settings->connections;
	limits.connections_per_address = limits.connections;
	limits.connections_reserved = 0; /* all of its clients are of one kind */
	limits.exchanges = 4 * limits.connections;
	limits.head_bytes = 32 << 10;
	limits.output_bytes = 256 << 10;
	fit_descriptors(&limits);
	return limits;
}

/* When the last answer has been given and told, or there is no more time. */
static void look_for_end(uv_timer_t *timer)
{
	struct gateway_main *main = timer->data;
	struct program *program = &main->program;

	if (loop_counters(program->loop).exchanges > 0)
		return;
	if (program->session)
		session_close(program->session);
	program->session = NULL;
	upstream_stop(program->upstream);
	uv_close((uv_handle_t *)timer, NULL);
}

static void stop(struct gateway_main *main, int64_t grace_ms)
{
	bool was_ending = main->is_ending;

	main->is_ending = true;
	main->program.is_stopping = true;
	loop_stop(main->program.loop, was_ending ? 0 : grace_ms);
	if (was_ending)
		return;
	log_at(LOG_INFO, "the gateway stops when its answers have ended");
	uv_timer_start(&main->end, look_for_end, END_LOOK_MS, END_LOOK_MS);
}

static void on_signal(uv_signal_t *signal, int number)
{
	struct gateway_main *main = signal->data;

	(void)number;
	stop(main, main->program.settings.stop_ms);
	/* A second one hurries. */
}

static bool make_directory(const char *path, struct error *error)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return true;
	return error_set(error, ERROR_UNAVAILABLE, "the state directory %s cannot be made: %s",
	                 path, strerror(errno));
}

static bool open_spool(struct program *program, struct error *error)
{
	struct buffer path = { 0 };

	if (!make_directory(program->settings.state, error))
		return false;
	buffer_print(&path, "%s/usage", program->settings.state);
	program->spool = spool_open(path.data, clock_unix_ms(), error);
	buffer_free(&path);
	return program->spool != NULL;
}

static bool open_port(struct gateway_main *main, struct error *error)
{
	struct program *program = &main->program;
	const struct program_settings *settings = &program->settings;
	struct listener_options options = { .address = settings->listen,
		                            .port = (uint16_t)settings->port,
		                            .handler = &program->handler };

	if (settings->cert_file) {
		main->tls = tls_new(program->loop,
		                    &(struct tls_options){ .certificate_path = settings->cert_file,
		                                           .key_path = settings->key_file,
		                                           .ca_path = settings->ca_file },
		                    error);
		if (!main->tls)
			return false;
	}
	options.tls = main->tls;
	struct listener *listener = listener_open(program->loop, &options, error);
	if (!listener)
		return false;
	bool colons = strchr(settings->listen, ':');
	char url[PROGRAM_URL_MAX];
	snprintf(url, sizeof(url), "%s://%s%s%s:%u", main->tls ? "https" : "http",
	         colons ? "[" : "", settings->listen, colons ? "]" : "", listener_port(listener));
	/* An address that means all of them is nothing that a client can connect to. */
	bool is_any =
	    strcmp(settings->listen, "0.0.0.0") == 0 || strcmp(settings->listen, "::") == 0;
	snprintf(program->url, sizeof(program->url), "%s",
	         settings->url ? settings->url
	         : is_any      ? ""
	                       : url);
	printf("gpu-gateway serves at %s\n", url);
	fflush(stdout);
	return true;
}

static void watch_signals(struct gateway_main *main)
{
	static const int numbers[] = { SIGTERM, SIGINT };
	uv_loop_t *loop = &main->program.loop->uv;

	uv_timer_init(loop, &main->end);
	main->end.data = main;
	for (int i = 0; i < 2; i++) {
		uv_signal_init(loop, &main->signals[i]);
		main->signals[i].data = main;
		uv_signal_start(&main->signals[i], on_signal, numbers[i]);
		uv_unref((uv_handle_t *)&main->signals[i]);
	}
}

static bool begin(struct gateway_main *main, const struct options *options, struct error *error)
{
	struct program *program = &main->program;

	if (!open_spool(program, error))
		return false;
	if (options->routes) {
		if (!routes_file_read(program->gateway, options->routes, program_now_ms(program),
		                      error))
			return false;
	} else {
		program->session = session_new(program, &options->link, error);
		if (!program->session)
			return false;
	}
	return open_port(main, error);
}

static void end(struct gateway_main *main)
{
	struct program *program = &main->program;

	for (int i = 0; i < 2; i++)
		uv_close((uv_handle_t *)&main->signals[i], NULL);
	if (main->tls)
		tls_free(main->tls);
	loop_free(program->loop);
	passages_free(program);
	upstream_free(program->upstream);
	gateway_free(program->gateway);
	spool_close(program->spool);
	buffer_free(&program->scratch);
}

static void flush(void *context)
{
	loop_flush(context);
}

static int run(const struct options *options)
{
	struct gateway_main main = { .program.settings = options->program };
	struct program *program = &main.program;
	struct limits limits = limits_of(&options->program);
	struct error error = { 0 };
	int status = 0;

	program->id_seed = (uint64_t)clock_unix_us() ^ (uint64_t)clock_steady_us() << 20;
	program->loop = loop_new(&limits);
	program->upstream = upstream_new(&program->loop->uv, flush, program->loop);
	program->gateway = gateway_new(&(struct gateway_settings){
	    .queue_ms = options->program.queue_ms, .send = passage_send, .context = program });
	program->handler = (struct handler){ .context = program,
		                             .head = passage_head,
		                             .request = passage_request };
	watch_signals(&main);
	if (!begin(&main, options, &error)) {
		fprintf(stderr, "gpu-gateway: %s\n", error.text);
		status = 1;
		stop(&main, 0);
	}
	loop_run(program->loop);
	end(&main);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	struct error error = { 0 };
	int status = 0;

	signal(SIGPIPE, SIG_IGN);
	enum options_result result = options_read(&options, argc, argv, &error);
	if (result == OPTIONS_RUN)
		status = run(&options);
	if (result == OPTIONS_WRONG) {
		fprintf(stderr, "gpu-gateway: %s\n", error.text);
		status = 2;
	}
	options_free(&options);
	return status;
}
