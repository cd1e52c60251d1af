/* version_command.c - gpu-cli version: which this is */
#include <stdio.h>

#include "cli/commands.h"

static int version_run(const struct arguments *arguments)
{
	(void)arguments;
	puts("gpu-cli " GPU_SCHEDULER_VERSION);
	return CLI_FINE;
}

const struct cli_command version_command = {
	.name = "version",
	.arguments = "",
	.summary = "print the version",
	.run = version_run,
};
