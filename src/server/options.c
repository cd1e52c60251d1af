/* options.c - the command line of gpu-scheduler */
#include "server/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

const char options_help[] =
    "usage: gpu-scheduler [OPTION...]                  starts the service\n"
    "       gpu-scheduler [OPTION...] backup FILE      copies everything to a new file, while it "
    "runs\n"
    "       gpu-scheduler [OPTION...] restore FILE     fills an empty database from a backup;\n"
    "                                                  --yes replaces one that is not empty\n"
    "       gpu-scheduler [OPTION...] check            checks the stored records\n"
    "       gpu-scheduler [OPTION...] repair           lists inconsistent records; --yes removes "
    "them\n"
    "       gpu-scheduler [OPTION...] token create     creates a token, while the service is "
    "stopped:\n"
    "                     [--role admin|tenant|viewer|agent] [--tenant ID] [--node NAME]\n"
    "                     [--name NOTE] [--days N]\n"
    "\n"
    "  --config FILE       settings, in YAML; docs/configuration.md lists them. Each can also be\n"
    "                      given by the environment: GPU_SCHEDULER_SECTION_KEY\n"
    "  --data DIR          directory of the embedded store and the journal (store.data_dir)\n"
    "  --listen ADDRESS    api.listen (default: 127.0.0.1)\n"
    "  --http-port N       api.http_port: 8080; 0 is any free port\n"
    "  --grpc-port N       api.grpc_port: 9090\n"
    "  --metrics-port N    metrics.port: 9091\n"
    "  --verbosity N       logging.verbosity: 0 errors ... 4 each step of each decision\n"
    "  --check-config      checks the settings and exits\n"
    "  --describe-config   lists all settings, in Markdown\n"
    "  --describe-metrics  lists all metrics, in Markdown\n"
    "  --version, --help\n"
    "\n"
    "SIGTERM and SIGINT stop it after the requests in flight; SIGHUP reloads the settings.\n"
    "Exit status: 0 stopped by a signal, 1 failed, 2 error in the command line or the settings,\n"
    "3 the store failed or another scheduler took over: restart it.\n";

enum letter {
	LETTER_CONFIG = 256,
	LETTER_DATA,
	LETTER_LISTEN,
	LETTER_HTTP_PORT,
	LETTER_GRPC_PORT,
	LETTER_METRICS_PORT,
	LETTER_VERBOSITY,
	LETTER_CHECK_CONFIG,
	LETTER_DESCRIBE_CONFIG,
	LETTER_DESCRIBE_METRICS,
	LETTER_VERSION,
	LETTER_HELP,
	LETTER_YES,
	LETTER_ROLE,
	LETTER_TENANT,
	LETTER_NODE,
	LETTER_NAME,
	LETTER_DAYS,
};

static const struct option long_options[] = {
	{ "config", required_argument, NULL, LETTER_CONFIG },
	{ "data", required_argument, NULL, LETTER_DATA },
	{ "listen", required_argument, NULL, LETTER_LISTEN },
	{ "http-port", required_argument, NULL, LETTER_HTTP_PORT },
	{ "grpc-port", required_argument, NULL, LETTER_GRPC_PORT },
	{ "metrics-port", required_argument, NULL, LETTER_METRICS_PORT },
	{ "verbosity", required_argument, NULL, LETTER_VERBOSITY },
	{ "check-config", no_argument, NULL, LETTER_CHECK_CONFIG },
	{ "describe-config", no_argument, NULL, LETTER_DESCRIBE_CONFIG },
	{ "describe-metrics", no_argument, NULL, LETTER_DESCRIBE_METRICS },
	{ "version", no_argument, NULL, LETTER_VERSION },
	{ "help", no_argument, NULL, LETTER_HELP },
	{ "yes", no_argument, NULL, LETTER_YES },
	{ "role", required_argument, NULL, LETTER_ROLE },
	{ "tenant", required_argument, NULL, LETTER_TENANT },
	{ "node", required_argument, NULL, LETTER_NODE },
	{ "name", required_argument, NULL, LETTER_NAME },
	{ "days", required_argument, NULL, LETTER_DAYS },
	{ NULL, 0, NULL, 0 },
};

/* Where the value of an option goes. */
static const char **value_of(struct options *options, int letter)
{
	switch (letter) {
	case LETTER_CONFIG:
		return &options->config_path;
	case LETTER_DATA:
		return &options->data_dir;
	case LETTER_LISTEN:
		return &options->listen;
	case LETTER_HTTP_PORT:
		return &options->http_port;
	case LETTER_GRPC_PORT:
		return &options->grpc_port;
	case LETTER_METRICS_PORT:
		return &options->metrics_port;
	case LETTER_VERBOSITY:
		return &options->verbosity;
	case LETTER_ROLE:
		return &options->role;
	case LETTER_TENANT:
		return &options->tenant;
	case LETTER_NODE:
		return &options->node;
	case LETTER_NAME:
		return &options->name;
	case LETTER_DAYS:
		return &options->days;
	default:
		return NULL;
	}
}

static bool take_option(struct options *options, int letter, const char *value, struct error *error)
{
	const char **target = value_of(options, letter);
	if (target && *target)
		return error_set(error, ERROR_INVALID, "an option is given twice: '%s' and '%s'",
		                 *target, value);
	if (target)
		*target = value;
	else if (letter == LETTER_YES)
		options->yes = true;
	else if (letter == LETTER_CHECK_CONFIG)
		options->action = ACTION_CHECK_CONFIG;
	else if (letter == LETTER_DESCRIBE_CONFIG)
		options->action = ACTION_DESCRIBE_CONFIG;
	else if (letter == LETTER_DESCRIBE_METRICS)
		options->action = ACTION_DESCRIBE_METRICS;
	else if (letter == LETTER_VERSION)
		options->action = ACTION_VERSION;
	else
		options->action = ACTION_HELP;
	return true;
}

/* What is to be done, from the words that are no options. */
static bool take_words(struct options *options, int count, char **words, struct error *error)
{
	static const struct {
		const char *first, *second; /* second: NULL for a file, "" for nothing */
		enum action action;
	} commands[] = {
		{ "backup", NULL, ACTION_BACKUP },
		{ "restore", NULL, ACTION_RESTORE },
		{ "check", "", ACTION_CHECK },
		{ "repair", "", ACTION_REPAIR },
		{ "token", "create", ACTION_CREATE_TOKEN },
	};
	if (count == 0 || options->action != ACTION_SERVE)
		return true;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const char *second = commands[i].second;
		if (strcmp(words[0], commands[i].first) != 0)
			continue;
		if (count != (second && !*second ? 1 : 2) ||
		    (second && *second && strcmp(words[1], second) != 0))
			return error_set(error, ERROR_INVALID, "write 'gpu-scheduler %s%s%s'",
			                 words[0], second && !*second ? "" : " ",
			                 second ? second : "FILE");
		options->action = commands[i].action;
		options->file = second ? NULL : words[1];
		return true;
	}
	return error_set(error, ERROR_INVALID, "'%.60s' is not a command", words[0]);
}

bool options_read(struct options *options, int argc, char **argv, struct error *error)
{
	int letter;
	*options = (struct options){ .action = ACTION_SERVE };
	opterr = 0;
	optind = 1;
	while ((letter = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (letter == ':')
			return error_set(error, ERROR_INVALID, "%s needs a value",
			                 argv[optind - 1]);
		if (letter == '?')
			return error_set(error, ERROR_INVALID, "%s is not an option",
			                 argv[optind - 1]);
		if (!take_option(options, letter, optarg, error))
			return false;
	}
	return take_words(options, argc - optind, argv + optind, error);
}

struct config *options_config(const struct options *options, char *const *environment,
                              struct error *error)
{
	const struct {
		const char *section, *key, *value, *option;
	} given[] = {
		{ "store", "data_dir", options->data_dir, "--data" },
		{ "api", "listen", options->listen, "--listen" },
		{ "api", "http_port", options->http_port, "--http-port" },
		{ "api", "grpc_port", options->grpc_port, "--grpc-port" },
		{ "metrics", "port", options->metrics_port, "--metrics-port" },
		{ "logging", "verbosity", options->verbosity, "--verbosity" },
	};
	struct config *config = config_new();
	bool done =
	    (!options->config_path || config_read_file(config, options->config_path, error)) &&
	    config_read_environment(config, environment, error);
	for (size_t i = 0; done && i < sizeof(given) / sizeof(given[0]); i++)
		if (given[i].value)
			done = config_set(config, given[i].section, given[i].key, given[i].value,
			                  given[i].option, error);
	if (done && config_validate(config, error))
		return config;
	config_free(config);
	return NULL;
}
