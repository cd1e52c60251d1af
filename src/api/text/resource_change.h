/* resource_change.h - a resource that is made or changed: what a request leaves out stays */
#ifndef API_TEXT_RESOURCE_CHANGE_H
#define API_TEXT_RESOURCE_CHANGE_H

#include "base/memory.h"
#include "resource/resource.h"
#include "json/json_reader.h"

struct resource_change {
	struct json_reader *json;
	const struct resource *resource;
	void *record;
	struct arena *arena;    /* of its texts */
	const bool *is_special; /* by the field's place: the caller reads it */
};

/* Stores the fields that the request gives, by their rows; null stores the default. What is wrong
 * is kept in the reader. */
void resource_change(const struct resource_change *change);

/* Like json_reader_end(): a member that is not a field of the resource is refused. */
bool resource_change_end(const struct resource_change *change);

#endif
