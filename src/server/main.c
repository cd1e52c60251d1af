/* main.c - gpu-scheduler */
#include <malloc.h>
#include <stdio.h>
#include <sys/stat.h>

#include "api/text/metric.h"
#include "fetch/fetch.h"
#include "server/commands.h"
#include "server/serve.h"
#include "server/settings/settings.h"

extern char **environ;

static int main_describe(void (*print)(struct buffer *))
{
	struct buffer text = { 0 };
	print(&text);
	fputs(text.data, stdout);
	buffer_free(&text);
	return 0;
}

static int main_execute(const struct options *options, struct config *config)
{
	if (options->action == ACTION_SERVE)
		return serve(options, config, environ);
	int status = 0;
	if (options->action == ACTION_CHECK_CONFIG)
		printf("The settings can be used.\n");
	else
		status = command_run(options, config);
	config_free(config);
	return status;
}

/* Jobs are allocated by one thread and what is told of them by another, in small pieces. An
 * arena for each thread would ask the system for every page, one by one. */
static void set_up_memory(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TOP_PAD, 1 << 20);
}

int main(int argc, char **argv)
{
	struct options options;
	struct error error;
	set_up_memory();
	fetch_outlive_exit();
	/* Databases, journals and backups are for their owner alone. */
	umask(077);
	if (!options_read(&options, argc, argv, &error)) {
		fprintf(stderr, "gpu-scheduler: %s. 'gpu-scheduler --help' says what there is.\n",
		        error.text);
		return 2;
	}
	if (options.action == ACTION_HELP) {
		options_print_help(stdout);
		return ferror(stdout) != 0;
	}
	if (options.action == ACTION_VERSION)
		return printf("gpu-scheduler %s\n", GPU_SCHEDULER_VERSION) < 0;
	if (options.action == ACTION_DESCRIBE_CONFIG)
		return main_describe(settings_describe);
	if (options.action == ACTION_DESCRIBE_METRICS)
		return main_describe(metrics_describe);
	struct config *config = options_config(&options, environ, &error);
	if (!config) {
		fprintf(stderr, "gpu-scheduler: %s\n", error.text);
		return 2;
	}
	return main_execute(&options, config);
}
