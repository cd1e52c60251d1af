/* options.h - the command line of a program, described by a table
 *
 * Reading, messages and help come from the table. core and node may not include it. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"

/* Where arguments_store() puts what was given, `offset` bytes into its target. */
enum option_kind {
	OPTION_KEPT,   /* nowhere: the program asks with arguments_value() */
	OPTION_TEXT,   /* const char *; one of `words`, unless that is NULL */
	OPTION_FLAG,   /* bool; has no value, but --name=false is taken */
	OPTION_NUMBER, /* int64_t: a number from `least` to `most`, times `unit` */
};

/* `--name VALUE` or `--name=VALUE`, or without a value if `value` is NULL. A table of options ends
 * with one that has no name. */
struct option {
	const char *name;   /* "--context" */
	const char *letter; /* "-c", or NULL */
	const char *value;  /* what the help calls its value; NULL: it has none */
	const char *help;   /* without a newline at the end; NULL: not in the help */
	bool repeats;       /* may be given more than once; the last one is stored */
	int completes;      /* what a shell offers for the value; the program's own numbers */
	const char *words;  /* the values that there are, with spaces between; NULL: any */
	enum option_kind kind;
	size_t offset;
	int64_t least, most, unit; /* of a number; unit 0 is 1 */
};

/* The four members that every option has, then others by name. */
#define OPTION(its_name, its_letter, its_value, its_help, ...)                                     \
	{                                                                                          \
		.name = (its_name), .letter = (its_letter), .value = (its_value),                  \
		.help = (its_help), __VA_ARGS__                                                    \
	}
/* Members that say where it goes: OPTION("--json", NULL, NULL, "...", STORES_FLAG(struct x, y)). */
#define STORES_TEXT(type, member) .kind = OPTION_TEXT, .offset = offsetof(type, member)
#define STORES_FLAG(type, member) .kind = OPTION_FLAG, .offset = offsetof(type, member)
#define STORES_NUMBER(type, member, its_least, its_most)                                           \
	.kind = OPTION_NUMBER, .offset = offsetof(type, member), .least = (its_least),             \
	.most = (its_most)

/* A word of another program and ours for it. A table of them ends with one that has no word. */
struct option_habit {
	const char *theirs, *ours;
};

struct given;
struct cli_command; /* of programs that have commands; theirs to define */

/* What was given. Texts belong to the arguments of the program. Operands after `--` count as
 * operands; `after_dashes` is how many. Freed with arguments_free(). */
struct arguments {
	const struct cli_command *command; /* for the program's own use */
	const struct option_habit *habits; /* for suggestions; NULL: none */
	struct given *given;
	size_t given_count, given_capacity;
	const char **operands;
	size_t operand_count, operand_capacity;
	size_t after_dashes;
};

/* Takes arguments apart by the tables in `sets`. With `runs`, everything from the first operand on
 * is an operand. An option that is given twice, and does not repeat, is refused: one of them would
 * be lost. An unknown option is refused with the one that was probably meant. */
bool arguments_read(struct arguments *arguments, const struct option *const *sets, int set_count,
                    bool runs, int argc, char **argv, struct error *error);
void arguments_free(struct arguments *arguments);

/* Stores every option that was given where its table says. False with a reason for a value that
 * it may not have; what was stored before stays. */
bool arguments_store(const struct arguments *arguments, void *target, struct error *error);
/* Reads by one table, stores, and refuses operands: for programs that have only options. */
bool options_store(const struct option *table, int argc, char **argv, void *target,
                   struct error *error);
/* Stores what the environment says: PREFIX_SOME_NAME for --some-name. Texts are copied to the
 * arena. A variable that is empty is as if it was not set. */
bool options_store_environment(const struct option *table, const char *prefix, void *target,
                               struct arena *arena, struct error *error);

/* The value of an option; NULL: it was not given. Of one that repeats, the first. */
const char *arguments_value(const struct arguments *arguments, const char *name);
/* The values of one that repeats, one after the other: `*at` starts as 0. NULL: no more. */
const char *arguments_next(const struct arguments *arguments, const char *name, size_t *at);
bool arguments_has(const struct arguments *arguments, const char *name);

/* The name of an option that is close to the word, or that does what an option of another program
 * does; NULL: none comes to mind. */
const char *option_suggest(const struct option *const *sets, int set_count,
                           const struct option_habit *habits, const char *word);
const char *option_habitual(const struct option_habit *habits, const char *word);

/* Writes the options of a table with their help, in lines of at most 80 columns. */
void options_print(FILE *to, const struct option *table);

#endif
