/* labels.h - labels as the core keeps them: "key=value" pairs, sorted, with newlines between */
#ifndef API_TEXT_LABELS_H
#define API_TEXT_LABELS_H

#include "base/memory.h"
#include "resource/resource.h"
#include "wire/text/json_scan.h"
#include "wire/text/json_writer.h"

/* Reads an object of texts, {"key":"value"}, of at most `field->items` members with names and
 * values of at most `field->most` bytes. The labels are in the arena. */
bool labels_read(struct json_scan *scan, const struct resource_field *field, struct arena *arena,
                 const char **labels, struct error *error);

/* Writes them as an object; none as the row says. */
void labels_write(struct json_writer *json, const struct resource_field *field, const char *labels,
                  struct arena *arena);

#endif
