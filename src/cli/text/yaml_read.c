/* yaml_read.c - files of YAML documents that people write, as values */
#include "cli/text/yaml_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

enum { DEPTH_MAX = 32, DOCUMENTS_MAX = 1000, VALUES_MAX = 1000000 };

struct yaml_reading {
	const char *name;
	yaml_parser_t parser;
	yaml_event_t event; /* the one that was read last */
	size_t values;
	struct error *error;
};

static void *yaml_read_refuse(const struct yaml_reading *reading, const char *reason)
{
	error_set(reading->error, ERROR_INVALID, "%.120s:%zu: %s", reading->name,
	          reading->event.start_mark.line + 1, reason);
	return NULL;
}

static bool yaml_read_next(struct yaml_reading *reading)
{
	yaml_event_delete(&reading->event);
	if (yaml_parser_parse(&reading->parser, &reading->event))
		return true;
	memset(&reading->event, 0, sizeof(reading->event));
	error_set(reading->error, ERROR_INVALID, "%.120s:%zu: this is not YAML: %s", reading->name,
	          reading->parser.problem_mark.line + 1,
	          reading->parser.problem ? reading->parser.problem : "out of memory");
	return false;
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

/* What a plain scalar means by the core schema of YAML 1.2. */
static json_t *plain_value(const char *text, size_t size)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	char *end;

	if (is_one_of(text, nulls))
		return json_null();
	if (is_one_of(text, trues))
		return json_true();
	if (is_one_of(text, falses))
		return json_false();
	if (strspn(text, "+-.0123456789eE") == size && strpbrk(text, "0123456789")) {
		errno = 0;
		long long integer = strtoll(text, &end, 10);
		if (*end == '\0' && errno == 0)
			return json_integer(integer);
		errno = 0;
		double number = strtod(text, &end);
		if (*end == '\0' && errno == 0)
			return json_real(number);
	}
	return json_stringn(text, size);
}

static json_t *scalar(const struct yaml_reading *reading)
{
	const char *text = (const char *)reading->event.data.scalar.value;
	size_t size = reading->event.data.scalar.length;
	json_t *value;

	if (strlen(text) != size)
		return yaml_read_refuse(reading, "there is a NUL in a text");
	if (reading->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		value = plain_value(text, size);
	else
		value = json_stringn(text, size);
	return value ? value : yaml_read_refuse(reading, "this is not UTF-8");
}

static json_t *yaml_read_value(struct yaml_reading *reading, int depth);

static json_t *sequence(struct yaml_reading *reading, int depth)
{
	json_t *list = json_array();

	while (yaml_read_next(reading)) {
		if (reading->event.type == YAML_SEQUENCE_END_EVENT)
			return list;
		json_t *value = yaml_read_value(reading, depth + 1);
		if (!value)
			break;
		json_array_append_new(list, value);
	}
	json_decref(list);
	return NULL;
}

static json_t *mapping(struct yaml_reading *reading, int depth)
{
	json_t *object = json_object();

	while (yaml_read_next(reading)) {
		if (reading->event.type == YAML_MAPPING_END_EVENT)
			return object;
		if (reading->event.type != YAML_SCALAR_EVENT) {
			yaml_read_refuse(reading, "a key must be a text");
			break;
		}
		json_t *key = json_stringn((const char *)reading->event.data.scalar.value,
		                           reading->event.data.scalar.length);
		const char *name = json_string_value(key);
		if (!name || strlen(name) != json_string_length(key) ||
		    json_object_get(object, name)) {
			yaml_read_refuse(reading,
			                 name ? "a key comes twice" : "a key is not UTF-8");
			json_decref(key);
			break;
		}
		json_t *value =
		    yaml_read_next(reading) ? yaml_read_value(reading, depth + 1) : NULL;
		if (value)
			json_object_set_new(object, name, value);
		json_decref(key);
		if (!value)
			break;
	}
	json_decref(object);
	return NULL;
}

/* The value that the last event begins. */
static json_t *yaml_read_value(struct yaml_reading *reading, int depth)
{
	const yaml_event_t *event = &reading->event;

	if (depth > DEPTH_MAX || ++reading->values > VALUES_MAX)
		return yaml_read_refuse(reading, "too deep, or too large");
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		if (event->data.scalar.anchor || event->data.scalar.tag)
			return yaml_read_refuse(reading, "anchors and tags are not supported");
		return scalar(reading);
	case YAML_SEQUENCE_START_EVENT:
		if (event->data.sequence_start.anchor || event->data.sequence_start.tag)
			return yaml_read_refuse(reading, "anchors and tags are not supported");
		return sequence(reading, depth);
	case YAML_MAPPING_START_EVENT:
		if (event->data.mapping_start.anchor || event->data.mapping_start.tag)
			return yaml_read_refuse(reading, "anchors and tags are not supported");
		return mapping(reading, depth);
	default:
		return yaml_read_refuse(reading, "aliases are not supported");
	}
}

static bool yaml_read_documents(struct yaml_reading *reading, json_t *documents)
{
	while (yaml_read_next(reading)) {
		if (reading->event.type == YAML_STREAM_END_EVENT)
			return true;
		if (reading->event.type != YAML_DOCUMENT_START_EVENT)
			continue;
		if (json_array_size(documents) == DOCUMENTS_MAX)
			return yaml_read_refuse(reading, "more than 1000 documents") != NULL;
		json_t *value = yaml_read_next(reading) ? yaml_read_value(reading, 0) : NULL;
		if (!value)
			return false;
		if (!json_is_null(value))
			json_array_append(documents, value);
		json_decref(value);
	}
	return false;
}

json_t *yaml_read(const char *name, const char *text, size_t size, struct error *error)
{
	struct yaml_reading reading = { .name = name, .error = error };
	json_t *documents = json_array();

	if (!yaml_parser_initialize(&reading.parser)) {
		error_set(error, ERROR_UNAVAILABLE, "out of memory");
		json_decref(documents);
		return NULL;
	}
	yaml_parser_set_input_string(&reading.parser, (const unsigned char *)text, size);
	bool good = yaml_read_documents(&reading, documents);
	yaml_event_delete(&reading.event);
	yaml_parser_delete(&reading.parser);
	if (good)
		return documents;
	json_decref(documents);
	return NULL;
}
