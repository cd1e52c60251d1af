/* options.h - the options and operands of a command */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* An option with a value (`--name VALUE` or `--name=VALUE`), or, if `flag` is not
 * NULL, one without. Values belong to the arguments. */
struct option {
	const char *name;   /* "--context" */
	const char *letter; /* "-o", or NULL */
	const char **value;
	bool *flag;
};

/* Goes through the arguments, and puts those that are no options into
 * `operands`, which has room for `operands_max`; how many there were is returned,
 * or -1 with the reason. After `--` everything is an operand. An option that is
 * given twice is refused: one of them would be lost. */
int options_read(const struct option *options, size_t count, int argc, char **argv,
                 const char **operands, int operands_max, struct error *error);

/* A number as people write it: 32768, 8k (8 x 1024), 1m. From 1 to `most`. */
bool options_number(const char *name, const char *text, int64_t most, int64_t *number,
                    struct error *error);

/* Numbers with commas between them; how many, or -1 with the reason. */
int options_numbers(const char *name, const char *text, int64_t most, int64_t *numbers,
                    int numbers_max, struct error *error);

#endif
