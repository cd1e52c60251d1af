/* cli.h - the commands of gpu-cli, and how they are found */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/error.h"
#include "cli/options.h"
#include "resource/resource.h"

/* Exit codes of gpu-cli. `run`, and commands that wait for a job, exit with the job's code instead,
 * and with CLI_NO_JOB if there is none. */
enum cli_status {
	CLI_FINE = 0,
	CLI_FAILED = 1,      /* the command failed: stderr says why */
	CLI_USAGE = 2,       /* the command line is wrong */
	CLI_NOT_FOUND = 3,   /* no such job, node, ... */
	CLI_UNREACHABLE = 4, /* the service does not answer */
	CLI_REFUSED = 5,     /* not signed in, or not allowed */
	CLI_LATER = 6,       /* the service is full, or asked too fast: it may work later */
	CLI_NO_JOB = 125,
	CLI_INTERRUPTED = 130,
};

/* One command, in a file of its own. `arguments` and `summary` are one line each; `details`
 * is the rest of its help, lines that end with a newline, as `examples` has, each without
 * 'gpu-cli'. Reading, help, completion and the manual come from this table. */
struct cli_command {
	const char *name, *arguments, *summary, *details, *examples;
	const struct resource *fields; /* its options set the fields of this; NULL: of none */
	const struct resource *shows;  /* it lists these, and has --columns; NULL: it does not */
	const char *without;           /* but for these options, separated by spaces */
	const struct option *options;  /* ends with one that has no name; NULL: none */
	const struct option *shared;   /* the same, with other commands of its kind */
	bool asks;                     /* talks to the service, and has the options for that */
	bool lists;                    /* has -o json|yaml|wide|name */
	bool runs;                     /* from the first operand on it is a command to run */
	bool hidden;                   /* not for people */
	enum completes operand;        /* what its operands are */
	const char *words;             /* where they are words: those there are */
	int (*run)(const struct arguments *arguments);
};

/* All of them, in the order of the help; ends with NULL. */
extern const struct cli_command *const cli_commands[];
/* NULL: there is none. */
const struct cli_command *cli_find(const char *name);
/* The tables of options that a command has, at most CLI_SETS; how many. */
enum { CLI_SETS = 6 };
int cli_options(const struct cli_command *command, const struct option *sets[CLI_SETS]);

/* All of it: finds the command and runs it. What could not be written counts as
 * a failure. */
int cli_main(int argc, char **argv);

/* Prints on stderr what is wrong with the command line, and where its help is. */
int cli_misused(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints on stderr why the command failed. */
int cli_failed(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the reason of an error, with the next step if one is known; returns the exit status. */
int cli_fail(const struct cli_command *command, const struct error *error);
/* What an error means for how it ends. */
int cli_status_of(const struct error *error);

#endif
