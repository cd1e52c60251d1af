/* options.h - what a subcommand is asked with */
#ifndef SIM_WORLD_OPTIONS_H
#define SIM_WORLD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "--name VALUE" where there is a value, "--name" where there is a flag. */
struct option_slot {
	const char *name;
	const char **value;
	bool *flag;
};
/* Reads all arguments but the first. False after saying on standard error what is
 * wrong. */
bool options_read(const struct option_slot *slots, size_t count, int argc, char **argv);
/* The text, unless it is NULL, as a whole number from `least` to `most`. False after
 * saying what is wrong. */
bool options_number(const char *name, const char *text, int64_t least, int64_t most,
                    int64_t *number);

/* Adds each policy of a text with commas between them, by `add`, which is false for one
 * that there is not; each of `all` where there is no text. False after saying what there is. */
bool options_policies(const char *text, const char *const *all, size_t count,
                      bool (*add)(void *context, const char *name), void *context);

#endif
