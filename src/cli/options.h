/* options.h - the options and operands of a command */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What a shell offers for a value or an operand. */
enum completes {
	COMPLETES_NOTHING,
	COMPLETES_FILES,
	COMPLETES_WORDS,
	COMPLETES_JOBS,
	COMPLETES_NODES,
	COMPLETES_TENANTS,
	COMPLETES_MODELS,
	COMPLETES_TOKENS,
	COMPLETES_CONTEXTS,
	COMPLETES_COMMANDS,
};

/* An option, described once: `--name VALUE` or `--name=VALUE`, or without a value where
 * `value` is NULL. A table of them ends with one that has no name. */
struct option {
	const char *name;   /* "--context" */
	const char *letter; /* "-c", or NULL */
	const char *value;  /* what the help calls its value; NULL: it has none */
	const char *help;   /* lines, without a newline at the end */
	bool repeats;       /* may be given more than once */
	enum completes completes;
	const char *words; /* where it completes words: those there are, with spaces between */
};

/* The four that each has, then members by name. */
#define OPTION(its_name, its_letter, its_value, its_help, ...)                                     \
	{                                                                                          \
		.name = (its_name), .letter = (its_letter), .value = (its_value),                  \
		.help = (its_help), __VA_ARGS__                                                    \
	}

struct cli_command;
struct given;

/* What was given to a command. Texts belong to the arguments of the program. Operands
 * behind `--` count as operands; `after_dashes` is how many of them. Freed with
 * arguments_free. */
struct arguments {
	const struct cli_command *command;
	struct given *given;
	size_t given_count, given_capacity;
	const char **operands;
	size_t operand_count, operand_capacity;
	size_t after_dashes;
};

/* Takes arguments apart by the tables in `sets`. With `runs` everything from the first
 * operand on is one. An option that is given twice, and does not repeat, is refused: one of
 * them would be lost. */
bool arguments_read(struct arguments *arguments, const struct option *const *sets, int set_count,
                    bool runs, int argc, char **argv, struct error *error);
void arguments_free(struct arguments *arguments);

/* The value of an option; NULL: it was not given. Of one that repeats, the first. */
const char *arguments_value(const struct arguments *arguments, const char *name);
/* The values of one that repeats, one after the other: `*at` begins as 0. NULL: no more. */
const char *arguments_next(const struct arguments *arguments, const char *name, size_t *at);
bool arguments_has(const struct arguments *arguments, const char *name);

/* A number as people write it: 32768, 8k (8 x 1024), 1m. From 1 to `most`. */
bool options_number(const char *name, const char *text, int64_t most, int64_t *number,
                    struct error *error);

/* Numbers with commas between them; how many, or -1 with the reason. */
int options_numbers(const char *name, const char *text, int64_t most, int64_t *numbers,
                    int numbers_max, struct error *error);

#endif
