/* field_options.h - the options that set the fields of a resource, from its table */
#ifndef CLI_FIELD_OPTIONS_H
#define CLI_FIELD_OPTIONS_H

#include "cli/options.h"
#include "resource/resource.h"

/* The options of all fields that have one, in the order of the table, without those whose names
 * are in `without`, separated by spaces; NULL: all. The table is made once and lasts. */
const struct option *field_options(const struct resource *resource, const char *without);

#endif
