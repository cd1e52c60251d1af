/* yaml_text.h - a document of JSON as YAML */
#ifndef CLI_TEXT_YAML_TEXT_H
#define CLI_TEXT_YAML_TEXT_H

#include <jansson.h>

#include "base/buffer.h"

/* Appends it, with a newline at its end. Texts that YAML would take for something else are in
 * quotes. */
void yaml_text_print(struct buffer *to, const json_t *value);

#endif
