/* json_reader.c - JSON that strangers sent, read strictly */
#include "json/json_reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct json_limits json_limits_default(void)
{
	return (struct json_limits){ .bytes = 8 << 20, .depth = 32, .values = 1000000 };
}

/* Counts depth and values without understanding more than where strings are, so that
 * nothing is built from what is too much. What is not JSON is left to the parser. */
static bool json_reader_measure(struct text text, const struct json_limits *limits,
                                struct error *error)
{
	size_t depth = 0, values = 0;
	for (size_t i = 0; i < text.size; i++) {
		switch (text.data[i]) {
		case '"':
			for (i++; i < text.size && text.data[i] != '"'; i++)
				i += text.data[i] == '\\';
			break;
		case '[':
		case '{':
			values++;
			if (++depth > limits->depth)
				return error_set(error, ERROR_INVALID,
				                 "the JSON is nested more than %zu levels deep",
				                 limits->depth);
			break;
		case ']':
		case '}':
			depth -= depth > 0;
			break;
		case ',':
			values++;
			break;
		default:
			break;
		}
	}
	if (values > limits->values)
		return error_set(error, ERROR_INVALID, "the JSON has more than %zu values",
		                 limits->values);
	return true;
}

json_t *json_read(struct text text, const struct json_limits *limits, struct error *error)
{
	struct json_limits otherwise = json_limits_default();
	if (!limits)
		limits = &otherwise;
	if (text.size > limits->bytes) {
		error_set(error, ERROR_INVALID, "the JSON is larger than %zu bytes", limits->bytes);
		return NULL;
	}
	if (text.size == 0) {
		error_set(error, ERROR_INVALID, "there is no JSON, only an empty body");
		return NULL;
	}
	/* jansson takes one behind a number for nothing. */
	if (memchr(text.data, '\0', text.size)) {
		error_set(error, ERROR_INVALID, "the JSON has a NUL byte in it");
		return NULL;
	}
	if (!json_reader_measure(text, limits, error))
		return NULL;
	json_error_t reason;
	json_t *json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &reason);
	if (!json)
		error_set(error, ERROR_INVALID, "line %d, column %d of the JSON: %s", reason.line,
		          reason.column, reason.text);
	return json;
}

void json_reader_enter(struct json_reader *reader, const json_t *value, const char *format, ...)
{
	if (reader->failed)
		return;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reader->where, sizeof(reader->where), format, arguments);
	va_end(arguments);
	reader->object = value;
	if (json_is_object(value))
		return;
	size_t size = strlen(reader->where);
	/* 'tasks[3].' is said of its fields; of itself, without the dot. */
	size -= size > 0 && reader->where[size - 1] == '.';
	error_set(reader->error, ERROR_INVALID, "%.*s must be a JSON object, {...}",
	          size > 0 ? (int)size : 8, size > 0 ? reader->where : "the body");
	reader->failed = true;
	reader->object = NULL;
}

struct json_reader json_reader_of(const json_t *value, const char *where, struct error *error)
{
	struct json_reader reader = { .error = error };
	json_reader_enter(&reader, value, "%s", where);
	return reader;
}

bool json_fail(struct json_reader *reader, const char *name, const char *format, ...)
{
	if (reader->failed)
		return false;
	char sentence[ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	reader->failed = true;
	return error_set(reader->error, ERROR_INVALID, "%s%s %s", reader->where, name, sentence);
}

static const json_t *get(struct json_reader *reader, const char *name)
{
	if (reader->failed)
		return NULL;
	const json_t *value = json_object_get(reader->object, name);
	return json_is_null(value) ? NULL : value;
}

bool json_has(const struct json_reader *reader, const char *name)
{
	const json_t *value = reader->failed ? NULL : json_object_get(reader->object, name);
	return value && !json_is_null(value);
}

int64_t json_get_integer(struct json_reader *reader, const char *name, int64_t least, int64_t most,
                         int64_t otherwise)
{
	const json_t *value = get(reader, name);
	if (!value)
		return otherwise;
	int64_t number = json_integer_value(value);
	if (json_is_integer(value) && number >= least && number <= most)
		return number;
	json_fail(reader, name, "must be a whole number from %lld to %lld", (long long)least,
	          (long long)most);
	return otherwise;
}

bool json_get_flag(struct json_reader *reader, const char *name, bool otherwise)
{
	const json_t *value = get(reader, name);
	if (!value)
		return otherwise;
	if (json_is_boolean(value))
		return json_is_true(value);
	json_fail(reader, name, "must be true or false");
	return otherwise;
}

struct text json_get_text(struct json_reader *reader, const char *name, size_t most_bytes)
{
	const json_t *value = get(reader, name);
	if (!value)
		return (struct text){ 0 };
	struct text text = { json_string_value(value), json_string_length(value) };
	if (json_is_string(value) && text.size <= most_bytes)
		return text;
	json_fail(reader, name, "must be a string of at most %zu bytes", most_bytes);
	return (struct text){ 0 };
}

const char *json_get_string(struct json_reader *reader, const char *name, const char *otherwise)
{
	const json_t *value = get(reader, name);
	if (!value)
		return otherwise;
	if (json_string_length(value) > 0)
		return json_string_value(value);
	json_fail(reader, name, "must be a non-empty string");
	return otherwise;
}

/* The number times `unit`, if that is whole but for the error of a binary fraction. */
static bool scale(const json_t *value, int64_t unit, int64_t *scaled)
{
	if (json_is_integer(value))
		return !__builtin_mul_overflow(json_integer_value(value), unit, scaled);
	if (!json_is_real(value))
		return false;
	double product = json_real_value(value) * (double)unit, whole = round(product);
	if (fabs(whole) >= 9007199254740992.0)
		return false;
	*scaled = (int64_t)whole;
	return fabs(product - whole) <= 1e-9 * fabs(product);
}

int64_t json_get_decimal(struct json_reader *reader, const char *name, int digits, int64_t least,
                         int64_t most, int64_t otherwise)
{
	const json_t *value = get(reader, name);
	if (!value)
		return otherwise;
	int64_t unit = 1, scaled;
	for (int i = 0; i < digits; i++)
		unit *= 10;
	if (scale(value, unit, &scaled) && scaled >= least && scaled <= most)
		return scaled;
	json_fail(reader, name, "must be a number from %g to %g with at most %d decimals",
	          (double)least / (double)unit, (double)most / (double)unit, digits);
	return otherwise;
}

int json_get_word(struct json_reader *reader, const char *name, const char *const *words,
                  int otherwise)
{
	const json_t *value = get(reader, name);
	if (!value)
		return otherwise;
	struct text text = { json_string_value(value), json_string_length(value) };
	for (int i = 0; words[i]; i++)
		if (json_is_string(value) && text_is(text, words[i]))
			return i;
	char list[ERROR_TEXT_MAX] = "";
	size_t size = 0;
	for (int i = 0; words[i]; i++) {
		int more =
		    snprintf(list + size, sizeof(list) - size, "%s%s", i > 0 ? ", " : "", words[i]);
		if (more < 0 || (size_t)more >= sizeof(list) - size)
			break;
		size += (size_t)more;
	}
	json_fail(reader, name, "must be one of: %s", list);
	return otherwise;
}

const json_t *json_get_object(struct json_reader *reader, const char *name)
{
	const json_t *value = get(reader, name);
	if (!value || json_is_object(value))
		return value;
	json_fail(reader, name, "must be an object, {...}");
	return NULL;
}

const json_t *json_get_array(struct json_reader *reader, const char *name, size_t most)
{
	const json_t *value = get(reader, name);
	if (!value || (json_is_array(value) && json_array_size(value) <= most))
		return value;
	if (most == SIZE_MAX)
		json_fail(reader, name, "must be an array, [...]");
	else
		json_fail(reader, name, "must be an array, [...], of at most %zu elements", most);
	return NULL;
}

static void need(struct json_reader *reader, const char *name)
{
	if (!get(reader, name))
		json_fail(reader, name, "is missing");
}

int64_t json_need_integer(struct json_reader *reader, const char *name, int64_t least, int64_t most)
{
	need(reader, name);
	return json_get_integer(reader, name, least, most, least);
}

const char *json_need_string(struct json_reader *reader, const char *name)
{
	need(reader, name);
	return json_get_string(reader, name, "");
}

const json_t *json_need_object(struct json_reader *reader, const char *name)
{
	need(reader, name);
	return json_get_object(reader, name);
}

const json_t *json_need_array(struct json_reader *reader, const char *name, size_t most)
{
	need(reader, name);
	return json_get_array(reader, name, most);
}

bool json_reader_end(struct json_reader *reader, const char *const *known)
{
	if (reader->failed || !known)
		return !reader->failed;
	const char *key;
	json_t *value;
	/* Jansson only iterates over what may be changed. */
	json_object_foreach((json_t *)reader->object, key, value)
	{
		bool is_known = false;
		for (const char *const *name = known; *name && !is_known; name++)
			is_known = strcmp(*name, key) == 0;
		if (!is_known)
			return json_fail(reader, key, "is not a field that is known here");
	}
	return true;
}
