/* cli.h - the commands of gpu-cli, and how they are found */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

/* What gpu-cli ends with. */
enum cli_status {
	CLI_FINE = 0,
	CLI_FAILED = 1, /* it was understood, and could not be done: the reason is on stderr */
	CLI_USAGE = 2,  /* it was not understood */
};

/* One command, in a file of its own. `arguments` and `summary` are one line
 * each; `details` is the rest of its help, lines that end with a newline. `run`
 * gets the arguments behind the command's name. */
struct cli_command {
	const char *name, *arguments, *summary, *details;
	enum cli_status (*run)(int argc, char **argv);
};

extern const struct cli_command estimate_command;

/* All of it: finds the command and runs it. What could not be written counts as
 * a failure. */
int cli_main(int argc, char **argv);

/* Says on stderr what is wrong with how the command was called, and where its
 * help is. */
enum cli_status cli_misused(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Says on stderr why it could not be done. */
enum cli_status cli_failed(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
