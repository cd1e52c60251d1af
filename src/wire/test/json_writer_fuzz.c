/* json_writer_fuzz.c - whatever is written reads back, by another's parser, as what it was */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "wire/text/json_writer.h"
#include "wire/text/utf8.h"
#include "json/json_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes say what is written: a kind, then what it needs. Builds the same with jansson. */
struct source {
	const uint8_t *at, *end;
};

static uint8_t next(struct source *source)
{
	return source->at < source->end ? *source->at++ : 0;
}

static int64_t next_number(struct source *source)
{
	uint64_t value = 0;
	for (int i = 0; i < 8; i++)
		value = value << 8 | next(source);
	return (int64_t)value;
}

static struct text next_text(struct source *source)
{
	size_t size = next(source), left = (size_t)(source->end - source->at);
	struct text text = { (const char *)source->at, size < left ? size : left };
	source->at += text.size;
	return text;
}

static json_t *write_value(struct json_writer *json, const char *key, struct source *source);

static json_t *write_members(struct json_writer *json, const char *key, struct source *source,
                             bool is_array)
{
	json_t *value = is_array ? json_array() : json_object();
	unsigned count = next(source) % 5;
	if (is_array)
		json_open_array(json, key);
	else
		json_open_object(json, key);
	for (unsigned i = 0; i < count && json->depth < 20; i++) {
		char name[] = { (char)('a' + i), '"', '\0' };
		json_t *member = write_value(json, is_array ? NULL : name, source);
		if (is_array)
			json_array_append_new(value, member);
		else
			json_object_set_new(value, name, member);
	}
	json_close(json);
	return value;
}

static json_t *write_real(struct json_writer *json, const char *key, int64_t bits)
{
	double number;
	memcpy(&number, &bits, sizeof(number));
	json_put_real(json, key, number);
	if (!isfinite(number))
		return json_null();
	/* What has no fraction and no exponent reads back as a whole number. */
	char text[32];
	snprintf(text, sizeof(text), "%.17g", number);
	return strpbrk(text, ".e") || number == 0 ? json_real(number) : json_null();
}

static json_t *write_text(struct json_writer *json, const char *key, struct text text)
{
	json_put_text(json, key, text);
	/* What is not UTF-8 is replaced, and NUL cannot be read back. */
	if (!utf8_is_valid(text) || memchr(text.data, 0, text.size))
		return json_null();
	return json_stringn(text.data, text.size);
}

static json_t *write_value(struct json_writer *json, const char *key, struct source *source)
{
	int64_t number;
	switch (next(source) % 8) {
	case 0:
		return write_members(json, key, source, true);
	case 1:
		return write_members(json, key, source, false);
	case 2:
		return write_text(json, key, next_text(source));
	case 3:
		number = next_number(source);
		json_put_integer(json, key, number);
		return json_integer(number);
	case 4:
		return write_real(json, key, next_number(source));
	case 5:
		json_put_decimal(json, key, next_number(source), next(source) % 19);
		return json_null();
	case 6:
		json_put_time(json, key, next_number(source));
		return json_null();
	default:
		json_put_flag(json, key, true);
		return json_true();
	}
}

/* Equal wherever `wanted` says what it should be, which null does not. */
static bool json_writer_matches(json_t *wanted, json_t *read)
{
	size_t i;
	const char *key;
	json_t *member;
	if (json_is_null(wanted))
		return read != NULL;
	if (json_is_real(wanted) && json_is_number(read))
		return json_number_value(read) == json_real_value(wanted);
	if (json_typeof(wanted) != json_typeof(read))
		return false;
	json_array_foreach(
	    wanted, i,
	    member) if (!json_writer_matches(member, json_array_get(read, i))) return false;
	json_object_foreach(
	    wanted, key,
	    member) if (!json_writer_matches(member, json_object_get(read, key))) return false;
	return json_is_array(wanted) || json_is_object(wanted) || json_equal(wanted, read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source source = { data, data + size };
	struct buffer buffer = { 0 };
	struct json_writer json = json_writer_to(&buffer);
	json_t *wanted = write_members(&json, NULL, &source, true);
	INVARIANT(json.depth == 0);
	json_error_t reason;
	json_t *read =
	    json_loadb(buffer.data, buffer.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &reason);
	INVARIANT(read);
	INVARIANT(json_writer_matches(wanted, read));
	json_decref(read);
	json_decref(wanted);
	buffer_free(&buffer);
	return 0;
}
