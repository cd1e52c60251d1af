/* options.h - what a subcommand is asked with */
#ifndef SIM_WORLD_OPTIONS_H
#define SIM_WORLD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h" // IWYU pragma: export

/* Reads all arguments but the first, by a table, into `target`. False after saying on standard
 * error what is wrong and which options there are. */
bool options_read(const struct option *table, int argc, char **argv, void *target);

/* Adds each policy of a text with commas between them, by `add`, which is false for one
 * that there is not; each of `all` where there is no text. False after saying what there is. */
bool options_policies(const char *text, const char *const *all, size_t count,
                      bool (*add)(void *context, const char *name), void *context);

#endif
