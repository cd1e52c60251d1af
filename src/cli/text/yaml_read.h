/* yaml_read.h - files of YAML documents (and so of JSON) that people write, as values */
#ifndef CLI_TEXT_YAML_READ_H
#define CLI_TEXT_YAML_READ_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"

/* All documents of the text, as an array; empty ones are left out. Anchors, aliases and tags are
 * refused, and so is a key that comes twice. NULL with a reason that begins with 'NAME:LINE:'. */
json_t *yaml_read(const char *name, const char *text, size_t size, struct error *error);

#endif
