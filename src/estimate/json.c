/* json.c - JSON from files that others wrote */
#include "estimate/json.h"

#include <stdlib.h>

#include "base/memory.h"

json_t *json_read_object(const struct reader *reader, int64_t offset, int64_t size,
                         struct error *error)
{
	if (offset < 0 || size < 1 || offset > reader->size_bytes ||
	    size > reader->size_bytes - offset) {
		error_set(error, ERROR_INVALID,
		          "it is too short for the JSON that should be there");
		return NULL;
	}
	char *text = memory_alloc((size_t)size);
	json_t *json = NULL;
	if (reader_bytes(reader, offset, text, size, error)) {
		json_error_t reason;
		json = json_loadb(text, (size_t)size, JSON_REJECT_DUPLICATES, &reason);
		if (!json)
			error_set(error, ERROR_INVALID, "line %d, column %d of its JSON: %s",
			          reason.line, reason.column, reason.text);
	}
	free(text);
	if (json && !json_is_object(json)) {
		error_set(error, ERROR_INVALID, "its JSON is not an object");
		json_decref(json);
		json = NULL;
	}
	return json;
}

const json_t *json_first(const json_t *object, const char *const *names, const char **used)
{
	for (; *names; names++) {
		const json_t *value = json_object_get(object, *names);
		if (!value || json_is_null(value))
			continue;
		if (used)
			*used = *names;
		return value;
	}
	return NULL;
}

int64_t json_number_or(struct json_fields *fields, const char *const *names, int64_t most,
                       int64_t otherwise)
{
	const char *name = *names;
	const json_t *value = json_first(fields->object, names, &name);
	if (!value)
		return otherwise;
	if (json_is_integer(value) && json_integer_value(value) >= 0 &&
	    json_integer_value(value) <= most)
		return json_integer_value(value);
	if (!fields->failed)
		error_set(fields->error, ERROR_INVALID, "%s is not a whole number from 0 to %lld",
		          name, (long long)most);
	fields->failed = true;
	return otherwise;
}

bool json_flag_or(struct json_fields *fields, const char *name, bool otherwise)
{
	const json_t *value = json_first(fields->object, NAMES(name), NULL);
	if (!value)
		return otherwise;
	if (json_is_boolean(value))
		return json_is_true(value);
	if (!fields->failed)
		error_set(fields->error, ERROR_INVALID, "%s is neither true nor false", name);
	fields->failed = true;
	return otherwise;
}
