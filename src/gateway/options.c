/* options.c - what gpu-gateway is told on its command line and by its environment */
#include "gateway/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"

#define MIB (INT64_C(1) << 20)

struct told {
	const char *schedulers;
	int64_t verbosity;
	bool help, version;
};

struct place {
	struct options options;
	struct told told;
};

#define TEXT_OPTION(name, value, member, help)                                                     \
	OPTION("--" name, NULL, value, help, .repeats = true, STORES_TEXT(struct place, member))
#define FLAG_OPTION(name, member, help)                                                            \
	OPTION("--" name, NULL, NULL, help, .repeats = true, STORES_FLAG(struct place, member))
#define NUMBER_OPTION(name, value, member, its_least, its_most, its_unit, help)                    \
	OPTION("--" name, NULL, value, help, .repeats = true, .unit = (its_unit),                  \
	       STORES_NUMBER(struct place, member, its_least, its_most))

static const struct option table[] = {
	TEXT_OPTION("scheduler", "HOST:PORT[,...]", told.schedulers,
	            "gRPC addresses of the schedulers (default: 127.0.0.1:9090)"),
	TEXT_OPTION("name", "NAME", options.program.name,
	            "name of this gateway (default: the host's name)"),
	TEXT_OPTION("listen", "ADDRESS", options.program.listen,
	            "address to listen on (default: 127.0.0.1)"),
	NUMBER_OPTION("port", "N", options.program.port, 0, 65535, 1,
	              "port to listen on (default: 8000); 0: any that is free"),
	TEXT_OPTION("state", "DIR", options.program.state,
	            "state directory (default: /var/lib/gpu-gateway)"),
	TEXT_OPTION("token-file", "FILE", options.link.token_file, "the gateway's token"),
	FLAG_OPTION("tls", options.link.tls, "connect to the scheduler with TLS"),
	TEXT_OPTION("ca-file", "FILE", options.link.ca_file,
	            "certificate authorities to trust in the scheduler"),
	TEXT_OPTION("cert-file", "FILE", options.link.cert_file,
	            "the gateway's certificate for the scheduler"),
	TEXT_OPTION("key-file", "FILE", options.link.key_file, "key of that certificate"),
	TEXT_OPTION("server-name", "NAME", options.link.server_name,
	            "name in the scheduler's certificate"),
	TEXT_OPTION("listen-cert-file", "FILE", options.program.cert_file,
	            "certificate for clients: they connect with TLS"),
	TEXT_OPTION("listen-key-file", "FILE", options.program.key_file,
	            "key of the certificate for clients"),
	TEXT_OPTION("listen-ca-file", "FILE", options.program.ca_file,
	            "clients show a certificate signed by this"),
	TEXT_OPTION("url", "URL", options.program.url,
	            "where clients reach it, for the scheduler's users (default: the listener)"),
	NUMBER_OPTION("body-mib", "N", options.program.body_bytes, 1, 4096, MIB,
	              "MiB of a request's body at most (default: 64)"),
	NUMBER_OPTION("buffered-mib", "N", options.program.buffered_bytes, 16, 1 << 20, MIB,
	              "MiB of all requests that wait or are answered (default: 1024)"),
	NUMBER_OPTION("connections", "N", options.program.connections, 16, 1 << 20, 1,
	              "connections of clients at most (default: 20000)"),
	NUMBER_OPTION("queue-ms", "N", options.program.queue_ms, 1, 86400000, 1,
	              "how long a request waits at most (default: 600000)"),
	NUMBER_OPTION("keep-alive-ms", "N", options.program.keep_alive_ms, 10, 3600000, 1,
	              "a stream that waits says so this often (default: 10000)"),
	NUMBER_OPTION("stop-ms", "N", options.program.stop_ms, 0, 86400000, 1,
	              "time for answers to end when it stops (default: 30000)"),
	TEXT_OPTION("routes", "FILE", options.routes,
	            "routes from a file and no scheduler: for benchmarks, on loopback only"),
	NUMBER_OPTION("verbosity", "N", told.verbosity, 0, LOG_VERBOSITY_MAX, 1,
	              "detail of the log on standard error (default: 2)"),
	FLAG_OPTION("help", told.help, "this"),
	FLAG_OPTION("version", told.version, "print the version"),
	{ 0 },
};

static void show_help(void)
{
	printf("gpu-gateway [--scheduler HOST:PORT] [OPTION...]\n"
	       "One endpoint for all models: passes requests to the slots of the scheduler.\n\n");
	options_print(stdout, table);
	printf(
	    "\nEach can be set by the environment too: GPU_GATEWAY_TOKEN_FILE for --token-file.\n");
}

static void set_defaults(struct place *place)
{
	place->options.program = (struct program_settings){
		.listen = "127.0.0.1",
		.port = 8000,
		.state = "/var/lib/gpu-gateway",
		.body_bytes = 64 * MIB,
		.buffered_bytes = 1024 * MIB,
		.connections = 20000,
		.queue_ms = 600000,
		.keep_alive_ms = 10000,
		.stop_ms = 30000,
	};
	place->options.link.retry_least_ms = 200;
	place->options.link.retry_most_ms = 5000;
	place->told.verbosity = LOG_INFO;
}

static bool set_schedulers(struct options *options, const char *list, struct error *error)
{
	char *copy = arena_string(&options->arena, list ? list : ""), *rest = NULL;
	size_t count = 0;

	for (char *one = strtok_r(copy, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest)) {
		if (count == OPTIONS_SCHEDULERS_MAX)
			return error_set(error, ERROR_INVALID, "--scheduler names more than %d",
			                 OPTIONS_SCHEDULERS_MAX);
		options->schedulers[count++] = one;
	}
	if (count == 0)
		options->schedulers[0] = "127.0.0.1:9090";
	return true;
}

static bool check_name(const char *name, struct error *error)
{
	size_t size = strlen(name);

	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i]))
			return error_set(
			    error, ERROR_INVALID,
			    "--name '%s' has more in it than letters, digits and '-_.'", name);
	if (size == 0 || size > 90)
		return error_set(error, ERROR_INVALID, "--name '%s' is not a name for a gateway",
		                 name);
	return true;
}

static bool is_loopback(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* http://HOST[:PORT] or https://HOST[:PORT], and nothing behind it. */
static bool is_url(const char *url)
{
	size_t scheme = strncmp(url, "https://", 8) == 0  ? 8
	                : strncmp(url, "http://", 7) == 0 ? 7
	                                                  : 0;

	for (const char *at = url + scheme; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-.:[]", *at))
			return false;
	return scheme > 0 && url[scheme] != '\0' && strlen(url) < PROGRAM_URL_MAX;
}

static bool options_finish(struct options *options, const struct told *told, struct error *error)
{
	struct program_settings *program = &options->program;
	char host[256] = "gateway";

	if (!program->name) {
		gethostname(host, sizeof(host) - 1);
		program->name = arena_string(&options->arena, host);
	}
	if (!check_name(program->name, error) || !set_schedulers(options, told->schedulers, error))
		return false;
	if (!program->cert_file != !program->key_file)
		return error_set(error, ERROR_INVALID,
		                 "--listen-cert-file and --listen-key-file go together");
	if (program->url && !is_url(program->url))
		return error_set(error, ERROR_INVALID,
		                 "--url '%s' is not http://HOST:PORT or https://HOST:PORT",
		                 program->url);
	if (options->routes && !is_loopback(program->listen))
		return error_set(error, ERROR_INVALID,
		                 "--routes has no sign-in: --listen must be a loopback address");
	if (program->buffered_bytes < program->body_bytes)
		return error_set(error, ERROR_INVALID, "--buffered-mib is less than --body-mib");
	log_set_verbosity((int)told->verbosity);
	return true;
}

enum options_result options_read(struct options *options, int argc, char **argv,
                                 struct error *error)
{
	struct place place = { 0 };

	set_defaults(&place);
	bool good =
	    options_store_environment(table, "GPU_GATEWAY", &place, &place.options.arena, error) &&
	    options_store(table, argc - 1, argv + 1, &place, error);
	if (place.told.help)
		show_help();
	else if (place.told.version)
		printf("gpu-gateway %s\n", GPU_SCHEDULER_VERSION);
	else
		good = good && options_finish(&place.options, &place.told, error);
	*options = place.options;
	/* The list moved with the struct. */
	options->link.addresses = options->schedulers;
	if (!good)
		return OPTIONS_WRONG;
	return place.told.help || place.told.version ? OPTIONS_SHOWN : OPTIONS_RUN;
}

void options_free(struct options *options)
{
	arena_free(&options->arena);
}
