/* yaml_text.h - YAML as JSON, for files that people write for Kubernetes */
#ifndef KUBE_YAML_TEXT_H
#define KUBE_YAML_TEXT_H

#include <jansson.h>

#include "base/error.h"

/* The first document, to be given back with json_decref; NULL with a reason. Plain words true,
 * false, null and whole numbers are what they look like; all else is text. Anchors and aliases
 * are refused, and what is nested more than 32 levels deep. */
json_t *yaml_read(const char *text, size_t size, struct error *error);

#endif
