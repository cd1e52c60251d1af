/* reading.c - fields of JSON objects, with errors that say which one is wrong */
#include "sim/world/reading.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MIB_PER_GIB 1024
#define GIB_MAX 1000000
#define MIB_SLACK 0.001

void reading_at(struct reading *reading, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reading->where, sizeof(reading->where), format, arguments);
	va_end(arguments);
}

void reading_refuse(struct reading *reading, const char *format, ...)
{
	if (reading_failed(reading))
		return;
	char text[ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	const char *colon = *reading->where ? ": " : "";
	error_set(&reading->error, ERROR_INVALID, "%s%s%s", reading->where, colon, text);
}

static const char *kind_name(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "a text";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "true or false";
	case JSON_NULL:
		return "null";
	}
	return "something else";
}

static json_t *get(const json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);
	return json_is_null(value) ? NULL : value;
}

bool read_has(const json_t *object, const char *name)
{
	return get(object, name) != NULL;
}

/* The field is not there, or not of the kind that it should be. */
static void refuse_kind(struct reading *reading, const json_t *value, const char *name,
                        const char *wanted)
{
	if (!value)
		reading_refuse(reading, "%s is missing", name);
	else
		reading_refuse(reading, "%s is %s, expected %s", name, kind_name(value), wanted);
}

const char *read_text(struct reading *reading, const json_t *object, const char *name)
{
	const json_t *value = get(object, name);
	if (!json_is_string(value)) {
		refuse_kind(reading, value, name, "a text");
		return "";
	}
	if (json_string_length(value) == 0)
		reading_refuse(reading, "%s is empty", name);
	return json_string_value(value);
}

int64_t read_number(struct reading *reading, const json_t *object, const char *name,
                    int64_t at_least, int64_t at_most)
{
	const json_t *value = get(object, name);
	if (!json_is_integer(value)) {
		refuse_kind(reading, value, name, "a whole number");
		return at_least;
	}
	int64_t number = json_integer_value(value);
	if (number >= at_least && number <= at_most)
		return number;
	reading_refuse(reading, "%s is %lld, expected %lld to %lld", name, (long long)number,
	               (long long)at_least, (long long)at_most);
	return at_least;
}

json_t *read_list(struct reading *reading, const json_t *object, const char *name)
{
	json_t *value = get(object, name);
	if (json_is_array(value))
		return value;
	refuse_kind(reading, value, name, "a list");
	return NULL;
}

json_t *read_object(struct reading *reading, const json_t *object, const char *name)
{
	json_t *value = get(object, name);
	if (json_is_object(value))
		return value;
	refuse_kind(reading, value, name, "an object");
	return NULL;
}

int64_t read_size(struct reading *reading, const json_t *list, const char *name, int64_t most)
{
	int64_t count = (int64_t)json_array_size(list);
	if (count <= most)
		return count;
	reading_refuse(reading, "%s has %lld entries and should have %lld at the most", name,
	               (long long)count, (long long)most);
	return 0;
}

const char *read_text_or(struct reading *reading, const json_t *object, const char *name,
                         const char *otherwise)
{
	return read_has(object, name) ? read_text(reading, object, name) : otherwise;
}

int64_t read_number_or(struct reading *reading, const json_t *object, const char *name,
                       int64_t at_least, int64_t at_most, int64_t otherwise)
{
	if (!read_has(object, name))
		return otherwise;
	return read_number(reading, object, name, at_least, at_most);
}

bool read_flag_or(struct reading *reading, const json_t *object, const char *name, bool otherwise)
{
	const json_t *value = get(object, name);
	if (!value)
		return otherwise;
	if (!json_is_boolean(value))
		refuse_kind(reading, value, name, "true or false");
	return json_is_true(value);
}

int64_t read_thousandths_or(struct reading *reading, const json_t *object, const char *name,
                            int64_t at_most, int64_t otherwise)
{
	const json_t *value = get(object, name);
	if (!value)
		return otherwise;
	if (!json_is_number(value)) {
		refuse_kind(reading, value, name, "a number");
		return 0;
	}
	double number = json_number_value(value);
	if (number >= 0 && number <= (double)at_most)
		return (int64_t)(number * 1000 + 0.5);
	reading_refuse(reading, "%s is %g, expected 0 to %lld", name, number, (long long)at_most);
	return 0;
}

int64_t read_gib_value(struct reading *reading, const json_t *value, const char *name,
                       enum rounding rounding)
{
	if (!json_is_number(value)) {
		refuse_kind(reading, value, name, "a number");
		return 0;
	}
	double gib = json_number_value(value);
	if (gib < 0 || gib > GIB_MAX) {
		reading_refuse(reading, "%s is %g, expected 0 to %d", name, gib, GIB_MAX);
		return 0;
	}
	/* 0.1 GiB is written as a number that is a little more: that is not a MiB more. */
	double mib = gib * MIB_PER_GIB;
	double rounded = rounding == ROUND_UP ? mib + 1 - MIB_SLACK : mib + MIB_SLACK;
	return (int64_t)rounded;
}

int64_t read_gib(struct reading *reading, const json_t *object, const char *name,
                 enum rounding rounding)
{
	return read_gib_value(reading, get(object, name), name, rounding);
}

int64_t read_gib_or(struct reading *reading, const json_t *object, const char *name,
                    enum rounding rounding, int64_t otherwise)
{
	return read_has(object, name) ? read_gib(reading, object, name, rounding) : otherwise;
}

int read_word(struct reading *reading, const json_t *object, const char *name,
              const struct words *words)
{
	const char *text = read_text(reading, object, name);
	char wanted[256] = "";
	size_t size = 0;
	for (int i = 0; i < words->count; i++) {
		const char *before = i == 0 ? "" : i == words->count - 1 ? " or " : ", ";
		if (strcmp(text, words->at[i]) == 0)
			return i;
		int added =
		    snprintf(wanted + size, sizeof(wanted) - size, "%s%s", before, words->at[i]);
		size = (size_t)added < sizeof(wanted) - size ? size + (size_t)added
		                                             : sizeof(wanted) - 1;
	}
	reading_refuse(reading, "%s is '%s', expected %s", name, text, wanted);
	return 0;
}

bool read_is_listed(const char *name, const char *list)
{
	size_t length = strlen(name);
	while (*list) {
		size_t word = strcspn(list, " ");
		if (word == length && strncmp(list, name, length) == 0)
			return true;
		list += word;
		list += strspn(list, " ");
	}
	return false;
}
