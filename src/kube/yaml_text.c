/* yaml_text.c - YAML as JSON, for files that people write for Kubernetes */
#include "kube/yaml_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

enum { YAML_DEPTH_MAX = 32 };

struct yaml_reading {
	yaml_parser_t parser;
	yaml_event_t event;
	struct error *error;
};

static json_t *yaml_refuse(struct yaml_reading *reading, const char *reason)
{
	error_set(reading->error, ERROR_INVALID, "line %zu: %s", reading->event.start_mark.line + 1,
	          reason);
	return NULL;
}

static bool yaml_next(struct yaml_reading *reading)
{
	yaml_event_delete(&reading->event);
	if (yaml_parser_parse(&reading->parser, &reading->event))
		return true;
	memset(&reading->event, 0, sizeof(reading->event));
	return error_set(reading->error, ERROR_INVALID, "line %zu: this is not YAML: %s",
	                 reading->parser.problem_mark.line + 1,
	                 reading->parser.problem ? reading->parser.problem : "out of memory");
}

static json_t *yaml_plain(const char *text)
{
	char *end;

	if (strcmp(text, "true") == 0)
		return json_true();
	if (strcmp(text, "false") == 0)
		return json_false();
	if (!*text || strcmp(text, "null") == 0 || strcmp(text, "~") == 0)
		return json_null();
	errno = 0;
	long long number = strtoll(text, &end, 10);
	bool whole = errno == 0 && !*end && (*text == '-' || (*text >= '0' && *text <= '9'));
	return whole ? json_integer(number) : json_string(text);
}

static json_t *yaml_scalar(struct yaml_reading *reading)
{
	const char *text = (const char *)reading->event.data.scalar.value;

	if (strlen(text) != reading->event.data.scalar.length)
		return yaml_refuse(reading, "there is a NUL in this text");
	json_t *value = reading->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE
	                    ? yaml_plain(text)
	                    : json_string(text);
	return value ? value : yaml_refuse(reading, "this text is not UTF-8");
}

/* The value that the current event begins. */
static json_t *yaml_value(struct yaml_reading *reading, int depth) /* NOLINT(misc-no-recursion) */
{
	yaml_event_type_t type = reading->event.type;
	bool mapping = type == YAML_MAPPING_START_EVENT;

	if (depth > YAML_DEPTH_MAX)
		return yaml_refuse(reading, "this is nested too deep");
	if (type == YAML_SCALAR_EVENT)
		return yaml_scalar(reading);
	if (!mapping && type != YAML_SEQUENCE_START_EVENT)
		return yaml_refuse(reading, "anchors and aliases are not taken");
	json_t *value = mapping ? json_object() : json_array();
	for (;;) {
		char *key = NULL;
		json_t *member = NULL;
		if (!yaml_next(reading))
			break;
		if (reading->event.type == YAML_MAPPING_END_EVENT ||
		    reading->event.type == YAML_SEQUENCE_END_EVENT)
			return value;
		if (mapping) {
			json_t *name = reading->event.type == YAML_SCALAR_EVENT
			                   ? yaml_scalar(reading)
			                   : yaml_refuse(reading, "a key is not a text");
			key = name ? strdup((const char *)reading->event.data.scalar.value) : NULL;
			json_decref(name);
			if (!key || !yaml_next(reading)) {
				free(key);
				break;
			}
		}
		member = yaml_value(reading, depth + 1);
		bool set = member && (mapping ? json_object_set_new(value, key, member)
		                              : json_array_append_new(value, member)) == 0;
		free(key);
		if (!set) {
			if (member)
				yaml_refuse(reading, "this text is not UTF-8");
			break;
		}
	}
	json_decref(value);
	return NULL;
}

json_t *yaml_read(const char *text, size_t size, struct error *error)
{
	struct yaml_reading reading = { .error = error };
	json_t *value = NULL;

	if (!yaml_parser_initialize(&reading.parser)) {
		error_set(error, ERROR_UNAVAILABLE, "YAML cannot be read: out of memory");
		return NULL;
	}
	yaml_parser_set_input_string(&reading.parser, (const unsigned char *)text, size);
	/* The stream, the document, and what is in it. */
	bool begun = yaml_next(&reading);
	begun = begun && yaml_next(&reading);
	if (begun && yaml_next(&reading)) {
		if (reading.event.type == YAML_STREAM_END_EVENT ||
		    reading.event.type == YAML_NO_EVENT)
			yaml_refuse(&reading, "there is nothing in it");
		else
			value = yaml_value(&reading, 0);
	}
	yaml_event_delete(&reading.event);
	yaml_parser_delete(&reading.parser);
	return value;
}
