/* cli.c - finds the command that gpu-cli was called for */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/field_options.h"
#include "cli/help.h"
#include "cli/listing.h"
#include "cli/session.h"
#include "cli/suggest.h"

const struct cli_command *const cli_commands[] = {
	&submit_command,     &run_command,           &list_command,    &get_command,
	&logs_command,       &exec_command,          &attach_command,  &forward_command,
	&notebook_command,   &why_command,           &queue_command,   &cancel_command,
	&hold_command,       &release_command,       &requeue_command, &suspend_command,
	&priority_command,   &resubmit_command,      &clone_command,   &edit_command,
	&events_command,     &status_command,        &nodes_command,   &gpus_command,
	&top_command,        &drain_command,         &resume_command,  &reserve_command,
	&tenants_command,    &create_tenant_command, &quota_command,   &models_command,
	&slots_command,      &ask_command,           &chat_command,    &decisions_command,
	&report_command,     &token_command,         &login_command,   &logout_command,
	&whoami_command,     &audit_command,         &config_command,  &estimate_command,
	&completion_command, &complete_command,      &version_command, NULL,
};

const struct cli_command *cli_find(const char *name)
{
	for (const struct cli_command *const *command = cli_commands; *command; command++)
		if (strcmp((*command)->name, name) == 0)
			return *command;
	return NULL;
}

int cli_options(const struct cli_command *command, const struct option *sets[CLI_SETS])
{
	int count = 0;
	if (command->fields)
		sets[count++] = field_options(command->fields, command->without);
	if (command->shared)
		sets[count++] = command->shared;
	if (command->options)
		sets[count++] = command->options;
	if (command->lists)
		sets[count++] = session_output_options;
	if (command->shows)
		sets[count++] = listing_options;
	if (command->asks)
		sets[count++] = session_options;
	return count;
}

static int cli_refuse_unknown(const char *name)
{
	const char *meant = suggest_command(name);
	if (meant) {
		fprintf(stderr, "gpu-cli: there is no command '%.80s'; did you mean '%s'?\n", name,
		        meant);
		fputs("See: gpu-cli help\n", stderr);
		return CLI_USAGE;
	}
	fprintf(stderr, "gpu-cli: there is no command '%.80s'; there are:", name);
	for (const struct cli_command *const *command = cli_commands; *command; command++)
		if (!(*command)->hidden)
			fprintf(stderr, " %s,", (*command)->name);
	fputs(" help\n", stderr);
	return CLI_USAGE;
}

static void cli_print_reason(const struct cli_command *command, const char *format,
                             va_list arguments)
{
	fflush(stdout);
	fprintf(stderr, "gpu-cli %s: ", command->name);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
}

int cli_misused(const struct cli_command *command, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	cli_print_reason(command, format, arguments);
	va_end(arguments);
	fprintf(stderr, "See: gpu-cli help %s\n", command->name);
	return CLI_USAGE;
}

int cli_failed(const struct cli_command *command, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	cli_print_reason(command, format, arguments);
	va_end(arguments);
	return CLI_FAILED;
}

int cli_status_of(const struct error *error)
{
	switch (error->code) {
	case ERROR_NONE:
		return CLI_FINE;
	case ERROR_INVALID:
		return CLI_USAGE;
	case ERROR_NOT_FOUND:
		return CLI_NOT_FOUND;
	case ERROR_UNAVAILABLE:
		return CLI_UNREACHABLE;
	case ERROR_FORBIDDEN:
		return CLI_REFUSED;
	case ERROR_FULL:
		return CLI_LATER;
	default:
		return CLI_FAILED;
	}
}

int cli_fail(const struct cli_command *command, const struct error *error)
{
	cli_failed(command, "%s", error->text);
	if (error->code == ERROR_UNAVAILABLE)
		fputs("Say where it is with --server URL, GPU_SCHEDULER_URL, or "
		      "'gpu-cli config set-context'.\n",
		      stderr);
	else if (error->code == ERROR_FULL)
		fputs("Try again a little later.\n", stderr);
	return cli_status_of(error);
}

static bool is_help(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Whether help is asked for among a command's own arguments. */
static bool wants_help(const struct cli_command *command, int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (is_help(argv[i]))
			return true;
		if (command->runs && argv[i][0] != '-' && i > 0 && argv[i - 1][0] != '-')
			return false;
	}
	return false;
}

static int run_command_of(const struct cli_command *command, int argc, char **argv)
{
	const struct option *sets[CLI_SETS];
	struct arguments arguments = { .command = command, .habits = suggest_options };
	struct error error = { 0 };
	int status;

	if (!command->hidden && wants_help(command, argc, argv)) {
		help_print_command(command);
		return CLI_FINE;
	}
	int set_count = cli_options(command, sets);
	if (arguments_read(&arguments, sets, set_count, command->runs, argc, argv, &error))
		status = command->run(&arguments);
	else
		status = cli_misused(command, "%s", error.text);
	arguments_free(&arguments);
	return status;
}

static int help(int argc, char **argv)
{
	if (argc == 0 || strcmp(argv[0], "help") == 0) {
		help_print_overview(stdout);
		return CLI_FINE;
	}
	if (strcmp(argv[0], "--man") == 0) {
		help_print_manual();
		return CLI_FINE;
	}
	const struct cli_command *command = cli_find(argv[0]);
	if (!command)
		return cli_refuse_unknown(argv[0]);
	help_print_command(command);
	return CLI_FINE;
}

/* Options of the session may stand before the command as well: how many arguments they are. */
static int count_leading(int argc, char **argv)
{
	int count = 0;
	while (count < argc && argv[count][0] == '-' && !is_help(argv[count])) {
		const struct option *option = session_options;
		size_t length = strcspn(argv[count], "=");
		while (option->name &&
		       !(strlen(option->name) == length &&
		         strncmp(option->name, argv[count], length) == 0) &&
		       !(option->letter && strcmp(option->letter, argv[count]) == 0))
			option++;
		if (!option->name)
			break;
		count += argv[count][length] == '=' || !option->value ? 1 : 2;
	}
	return count <= argc ? count : 0;
}

static int cli_dispatch(int argc, char **argv)
{
	int leading = argc > 0 ? count_leading(argc - 1, argv + 1) : 0;
	if (argc < 2 + leading) {
		help_print_overview(stderr);
		return CLI_USAGE;
	}
	char *name = argv[1 + leading];
	if (is_help(name) || strcmp(name, "help") == 0)
		return help(argc - leading - 2, argv + leading + 2);
	const struct cli_command *command =
	    strcmp(name, "--version") == 0 ? &version_command : cli_find(name);
	if (!command)
		return cli_refuse_unknown(name);
	if (leading > 0 && !command->asks)
		return cli_misused(command, "it asks no service, so %s says nothing to it",
		                   argv[1]);
	/* The command's name goes to the front, and what stood before it comes behind it. */
	memmove(argv + 2, argv + 1, (size_t)leading * sizeof(*argv));
	return run_command_of(command, argc - 2, argv + 2);
}

int cli_main(int argc, char **argv)
{
	int status = cli_dispatch(argc, argv);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fputs("gpu-cli: the output could not be written\n", stderr);
		return CLI_FAILED;
	}
	return status;
}
