/* cli.c - finds the command that gpu-cli was called for */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

static const struct cli_command *const commands[] = { &estimate_command };
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct cli_command *find(const char *name)
{
	for (int i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static void print_overview(FILE *to)
{
	fputs("usage: gpu-cli COMMAND [ARGUMENT...]\n\n", to);
	for (int i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s  %s\n", commands[i]->name, commands[i]->summary);
	fputs("  help        say more about a command: gpu-cli help COMMAND\n"
	      "\n"
	      "  --help      say this\n"
	      "  --version   say which version this is\n"
	      "\n"
	      "It ends with 0 if all went well, 1 if something could not be done (stderr says\n"
	      "why), and 2 if it was not asked properly.\n",
	      to);
}

static void print_help(const struct cli_command *command)
{
	printf("usage: gpu-cli %s %s\n\n%s\n\n%s", command->name, command->arguments,
	       command->summary, command->details);
}

static enum cli_status refuse_unknown(const char *name)
{
	fprintf(stderr, "gpu-cli: there is no command '%s'; there are:", name);
	for (int i = 0; i < COMMANDS; i++)
		fprintf(stderr, " %s,", commands[i]->name);
	fputs(" help\n", stderr);
	return CLI_USAGE;
}

static enum cli_status help(int argc, char **argv)
{
	if (argc == 0) {
		print_overview(stdout);
		return CLI_FINE;
	}
	const struct cli_command *command = find(argv[0]);
	if (!command)
		return refuse_unknown(argv[0]);
	print_help(command);
	return CLI_FINE;
}

static void print_reason(const struct cli_command *command, const char *format, va_list arguments)
{
	fprintf(stderr, "gpu-cli %s: ", command->name);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
}

enum cli_status cli_misused(const struct cli_command *command, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print_reason(command, format, arguments);
	va_end(arguments);
	fprintf(stderr, "See: gpu-cli help %s\n", command->name);
	return CLI_USAGE;
}

enum cli_status cli_failed(const struct cli_command *command, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print_reason(command, format, arguments);
	va_end(arguments);
	return CLI_FAILED;
}

static bool is_help(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static enum cli_status dispatch(int argc, char **argv)
{
	if (argc < 2) {
		print_overview(stderr);
		return CLI_USAGE;
	}
	if (is_help(argv[1]) || strcmp(argv[1], "help") == 0)
		return help(argc - 2, argv + 2);
	if (strcmp(argv[1], "--version") == 0) {
		puts("gpu-cli " GPU_SCHEDULER_VERSION);
		return CLI_FINE;
	}
	const struct cli_command *command = find(argv[1]);
	if (!command)
		return refuse_unknown(argv[1]);
	for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (is_help(argv[i])) {
			print_help(command);
			return CLI_FINE;
		}
	}
	return command->run(argc - 2, argv + 2);
}

int cli_main(int argc, char **argv)
{
	enum cli_status status = dispatch(argc, argv);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fputs("gpu-cli: the output could not be written\n", stderr);
		return CLI_FAILED;
	}
	return (int)status;
}
