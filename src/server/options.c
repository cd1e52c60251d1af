/* options.c - the command line of gpu-scheduler */
#include "server/options.h"

#include <string.h>

#include "base/options.h"

/* What the table fills in beside the options themselves. */
struct command_line {
	struct options options;
	bool check_config, describe_config, describe_metrics, version, help;
};

#define OPTIONS_TEXT(member) STORES_TEXT(struct command_line, options.member)
#define ACTION_FLAG(member) STORES_FLAG(struct command_line, member)
static const struct option table[] = {
	OPTION("--config", NULL, "FILE",
	       "settings, in YAML; docs/configuration.md lists them. Each can also be given by "
	       "the environment: GPU_SCHEDULER_SECTION_KEY",
	       OPTIONS_TEXT(config_path)),
	OPTION("--data", NULL, "DIR", "the embedded store and the journal (store.data_dir)",
	       OPTIONS_TEXT(data_dir)),
	OPTION("--listen", NULL, "ADDRESS", "api.listen: 127.0.0.1 by default",
	       OPTIONS_TEXT(listen)),
	OPTION("--http-port", NULL, "N", "api.http_port: 8080; 0 is any free port",
	       OPTIONS_TEXT(http_port)),
	OPTION("--grpc-port", NULL, "N", "api.grpc_port: 9090", OPTIONS_TEXT(grpc_port)),
	OPTION("--metrics-port", NULL, "N", "metrics.port: 9091", OPTIONS_TEXT(metrics_port)),
	OPTION("--kubernetes", NULL, NULL,
	       "schedule pods of a Kubernetes cluster (kubernetes.enable)",
	       STORES_FLAG(struct command_line, options.kubernetes)),
	OPTION("--kubeconfig", NULL, "FILE",
	       "kubernetes.kubeconfig_path; without it, the account of the pod it runs in",
	       OPTIONS_TEXT(kubeconfig_path)),
	OPTION("--scheduler-names", NULL, "NAMES",
	       "kubernetes.scheduler_names: gpu-scheduler, or several, with commas",
	       OPTIONS_TEXT(scheduler_names)),
	OPTION("--verbosity", NULL, "N",
	       "logging.verbosity: 0 errors ... 4 each step of each decision",
	       OPTIONS_TEXT(verbosity)),
	OPTION("--check-config", NULL, NULL, "check the settings, and exit",
	       ACTION_FLAG(check_config)),
	OPTION("--describe-config", NULL, NULL, "list all settings, in Markdown",
	       ACTION_FLAG(describe_config)),
	OPTION("--describe-metrics", NULL, NULL, "list all metrics, in Markdown",
	       ACTION_FLAG(describe_metrics)),
	OPTION("--yes", NULL, NULL, "restore, repair: do it",
	       STORES_FLAG(struct command_line, options.yes)),
	OPTION(
	    "--role", NULL, "ROLE",
	    "token create: admin, tenant, tenant_admin, viewer, agent, gateway, inference; admin",
	    OPTIONS_TEXT(role)),
	OPTION("--tenant-id", NULL, "ID", "token create: the tenant", OPTIONS_TEXT(tenant)),
	OPTION("--node", NULL, "NAME", "token create: the node of an agent", OPTIONS_TEXT(node)),
	OPTION("--note", NULL, "TEXT", "token create: what it is for", OPTIONS_TEXT(note)),
	OPTION("--expires-in", NULL, "TIME",
	       "token create: how long it is valid, such as 30d or 12h (default: for ever)",
	       OPTIONS_TEXT(expires_in)),
	/* Their earlier names, still understood. */
	OPTION("--tenant", NULL, "ID", NULL, OPTIONS_TEXT(tenant)),
	OPTION("--name", NULL, "NOTE", NULL, OPTIONS_TEXT(note)),
	OPTION("--days", NULL, "N", NULL, OPTIONS_TEXT(days)),
	OPTION("--version", NULL, NULL, "print the version", ACTION_FLAG(version)),
	OPTION("--help", "-h", NULL, "print this", ACTION_FLAG(help)),
	{ 0 },
};

void options_print_help(FILE *to)
{
	fputs("usage: gpu-scheduler [OPTION...]                start the service\n"
	      "       gpu-scheduler [OPTION...] backup FILE    copy everything to a new file,\n"
	      "                                                while the service runs\n"
	      "       gpu-scheduler [OPTION...] restore FILE   fill an empty database from a\n"
	      "                                                backup; --yes replaces another\n"
	      "       gpu-scheduler [OPTION...] check          check what is stored\n"
	      "       gpu-scheduler [OPTION...] repair         list what would be removed;\n"
	      "                                                --yes removes it\n"
	      "       gpu-scheduler [OPTION...] token create   make a token, while the service\n"
	      "                                                does not run\n\n",
	      to);
	options_print(to, table);
	fputs("\nSIGTERM and SIGINT stop it when requests in flight are done; SIGHUP reads the\n"
	      "settings again. Exit status: 0 stopped, 1 failed, 2 the command line or the\n"
	      "settings are wrong, 3 the store is lost or another scheduler took over: start\n"
	      "it again.\n",
	      to);
}

static enum action action_of(const struct command_line *line)
{
	return line->help               ? ACTION_HELP
	       : line->version          ? ACTION_VERSION
	       : line->describe_metrics ? ACTION_DESCRIBE_METRICS
	       : line->describe_config  ? ACTION_DESCRIBE_CONFIG
	       : line->check_config     ? ACTION_CHECK_CONFIG
	                                : ACTION_SERVE;
}

/* What is to be done, from the words that are no options. */
static bool take_words(struct options *options, size_t count, const char **words,
                       struct error *error)
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
		if (count != (second && !*second ? 1U : 2U) ||
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
	const struct option *sets[] = { table };
	struct command_line line = { 0 };
	struct arguments arguments = { 0 };
	bool done = arguments_read(&arguments, sets, 1, false, argc - 1, argv + 1, error) &&
	            arguments_store(&arguments, &line, error);

	line.options.action = action_of(&line);
	done =
	    done && take_words(&line.options, arguments.operand_count, arguments.operands, error);
	*options = line.options;
	arguments_free(&arguments);
	return done;
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
		{ "kubernetes", "enable", options->kubernetes ? "true" : NULL, "--kubernetes" },
		{ "kubernetes", "kubeconfig_path", options->kubeconfig_path, "--kubeconfig" },
		{ "kubernetes", "scheduler_names", options->scheduler_names, "--scheduler-names" },
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
