/* resource_json.c - resources as JSON, read and written by their tables */
#include "api/text/resource_json.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/text/ids.h"
#include "api/text/labels.h"
#include "api/text/times.h"
#include "core/record/record.h"

enum { SHORT_TEXT_BYTES_MAX = 256 }; /* of durations and times */

bool resource_fail(struct resource_reader *reader, const char *format, ...)
{
	char sentence[ERROR_TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	reader->scan->failed = true;
	return error_set(reader->error, ERROR_INVALID, "%s %s", reader->field->name, sentence);
}

bool resource_refuse(struct resource_reader *reader)
{
	reader->scan->failed = true;
	return field_refuse(reader->field, reader->error);
}

bool resource_get_number(struct resource_reader *reader, int64_t *value)
{
	const struct resource_field *field = reader->field;

	*value = 0;
	bool is_number = json_scan_kind(reader->scan) == JSON_KIND_NUMBER;
	if (is_number && json_scan_decimal(reader->scan, field->digits, value) &&
	    *value >= field->least && *value <= field->most)
		return true;
	return resource_refuse(reader);
}

bool resource_get_flag(struct resource_reader *reader, bool *value)
{
	return json_scan_kind(reader->scan) == JSON_KIND_FLAG
	           ? json_scan_flag(reader->scan, value)
	           : resource_fail(reader, "must be true or false");
}

static bool reader_text(struct resource_reader *reader, size_t most, struct text *value)
{
	*value = TEXT("");
	if (json_scan_kind(reader->scan) != JSON_KIND_TEXT)
		return resource_fail(reader, "must be a text in double quotes");
	if (!json_scan_text(reader->scan, value))
		return false;
	return most == 0 || value->size <= most ||
	       resource_fail(reader, "is longer than %zu bytes", most);
}

bool resource_get_text(struct resource_reader *reader, struct text *value)
{
	return reader_text(reader, (size_t)reader->field->most, value);
}

const char *resource_own(struct resource_reader *reader, struct text value)
{
	char *copy = arena_alloc(reader->arena, value.size + 1);
	memcpy(copy, value.data, value.size);
	copy[value.size] = '\0';
	return copy;
}

static bool resource_json_read_word(struct resource_reader *reader, int64_t *value)
{
	struct text word;

	if (!reader_text(reader, SHORT_TEXT_BYTES_MAX, &word))
		return false;
	*value = field_word(reader->field, word.data, word.size);
	return *value >= 0 || resource_refuse(reader);
}

/* A duration or a time, in ms. */
static bool resource_json_read_time(struct resource_reader *reader, int64_t *value)
{
	struct text text;

	if (!reader_text(reader, SHORT_TEXT_BYTES_MAX, &text))
		return false;
	bool is_read = reader->field->kind == VALUE_TIME
	                   ? calendar_read(text, value)
	                   : duration_read(text, DURATION_MAX_MS, value);
	return is_read || resource_refuse(reader);
}

static bool join_text(struct resource_reader *reader, char *joined, size_t *size)
{
	size_t most = (size_t)reader->field->most;
	struct text text;

	if (!resource_get_text(reader, &text))
		return false;
	if (*size + text.size + 2 > most)
		return resource_fail(reader, "is longer than %zu bytes", most);
	if (*size > 0)
		joined[(*size)++] = '|';
	memcpy(joined + *size, text.data, text.size);
	*size += text.size;
	return true;
}

/* One text or a list of them, which is stored with '|' between. */
static bool read_joined(struct resource_reader *reader)
{
	char *joined = arena_alloc(reader->arena, (size_t)reader->field->most + 1);
	size_t size = 0;

	if (json_scan_kind(reader->scan) != JSON_KIND_ARRAY) {
		if (!join_text(reader, joined, &size))
			return false;
	} else {
		json_scan_open(reader->scan, JSON_KIND_ARRAY);
		while (json_scan_element(reader->scan))
			if (!join_text(reader, joined, &size))
				return false;
	}
	joined[size] = '\0';
	field_store_text(reader->field, reader->record, joined);
	return !reader->scan->failed;
}

static bool resource_json_read_text(struct resource_reader *reader)
{
	struct text text;

	if (reader->field->also & ALSO_LIST)
		return read_joined(reader);
	if (!resource_get_text(reader, &text))
		return false;
	if (reader->field->plain && text_has_control(text))
		return resource_fail(reader, "has control characters in it");
	field_store_text(reader->field, reader->record, resource_own(reader, text));
	return true;
}

static bool read_labels(struct resource_reader *reader)
{
	const char *labels = "";

	reader->scan->failed =
	    !labels_read(reader->scan, reader->field, reader->arena, &labels, reader->error);
	if (!reader->scan->failed)
		field_store_text(reader->field, reader->record, labels);
	return !reader->scan->failed;
}

static bool read_stored(struct resource_reader *reader)
{
	int64_t number = 0;
	bool flag = false, is_read;

	switch (reader->field->kind) {
	case VALUE_INTEGER:
	case VALUE_DECIMAL:
		is_read = resource_get_number(reader, &number);
		break;
	case VALUE_FLAG:
		is_read = resource_get_flag(reader, &flag);
		number = flag;
		break;
	case VALUE_WORD:
		is_read = resource_json_read_word(reader, &number);
		break;
	case VALUE_DURATION:
	case VALUE_TIME:
		is_read = resource_json_read_time(reader, &number);
		break;
	case VALUE_TEXT:
		return resource_json_read_text(reader);
	case VALUE_MAP:
		return read_labels(reader);
	default:
		panic("field %s needs a function to read it", reader->field->name);
	}
	if (is_read)
		field_store_number(reader->field, reader->record, number);
	return is_read;
}

static bool resource_json_refuse_unknown(struct resource_reader *reader, struct text key)
{
	const struct resource_field *nearest =
	    resource_nearest(reader->resource, key.data, key.size);
	int shown = (int)(key.size < 64 ? key.size : 64);

	reader->scan->failed = true;
	if (nearest)
		return error_set(reader->error, ERROR_INVALID,
		                 "%.*s is no field of a %s: did you mean %s?", shown, key.data,
		                 reader->resource->name, nearest->name);
	return error_set(reader->error, ERROR_INVALID,
	                 "%.*s is no field of a %s; /openapi.json lists those that are", shown,
	                 key.data, reader->resource->name);
}

static bool resource_json_read_field(struct resource_reader *reader, int place)
{
	if (json_scan_kind(reader->scan) == JSON_KIND_NULL)
		return json_scan_skip(reader->scan, NULL);
	if (reader->field->setter == SET_BY_ADMINISTRATOR && !reader->administrator) {
		reader->scan->failed = true;
		return error_set(reader->error, ERROR_FORBIDDEN,
		                 "%s is set by the service: only an administrator may set it",
		                 reader->field->name);
	}
	reader->given[place / 64] |= UINT64_C(1) << place % 64;
	if (reader->special[place])
		return reader->special[place](reader);
	if (reader->field->in_payload)
		return reader->payload(reader);
	return field_is_settable(reader->field) ? read_stored(reader)
	                                        : json_scan_skip(reader->scan, NULL);
}

bool resource_read(struct resource_reader *reader)
{
	struct json_scan *scan = reader->scan;
	uint64_t seen[RESOURCE_FIELDS_MAX / 64] = { 0 };
	struct text key = { NULL, 0 };

	INVARIANT(reader->resource->field_count <= RESOURCE_FIELDS_MAX);
	if (!json_scan_open(scan, JSON_KIND_OBJECT))
		return false;
	while (json_scan_member(scan, &key)) {
		int place = resource_find(reader->resource, key.data, key.size);
		if (place < 0 || !field_is_accepted(&reader->resource->fields[place]))
			return resource_json_refuse_unknown(reader, key);
		reader->field = &reader->resource->fields[place];
		if (seen[place / 64] >> place % 64 & 1)
			return resource_fail(reader, "is there twice");
		seen[place / 64] |= UINT64_C(1) << place % 64;
		if (!resource_json_read_field(reader, place))
			return false;
	}
	return !scan->failed;
}

static void put_name(struct json_writer *json, const struct resource_field *field)
{
	json_put_key(json, (struct text){ field->name, field->name_size });
}

static void put_id(struct json_writer *json, const struct resource_field *field, int64_t id)
{
	char text[2 * ID_TEXT_MAX];
	size_t size = strlen(field->refers);

	INVARIANT(size < ID_TEXT_MAX - 1);
	memcpy(text, field->refers, size);
	text[size++] = '-';
	size += id_write(text + size, "", id);
	json_put_text(json, NULL, (struct text){ text, size });
}

/* True if the row has another form for a value that is none, and then it is written. */
static bool put_none(struct json_writer *json, const struct resource_field *field)
{
	if (field->empty == EMPTY_NULL) {
		put_name(json, field);
		json_put_null(json, NULL);
	}
	return field->empty != EMPTY_SHOWN;
}

static void put_number(struct json_writer *json, const struct resource_field *field, int64_t value)
{
	put_name(json, field);
	if (value == UNLIMITED && (field->also & ALSO_UNLIMITED)) {
		json_put_integer(json, NULL, -1);
		return;
	}
	switch (field->kind) {
	case VALUE_INTEGER:
		json_put_integer(json, NULL, value);
		break;
	case VALUE_DECIMAL:
		json_put_decimal(json, NULL, value, field->digits);
		break;
	case VALUE_FLAG:
		json_put_flag(json, NULL, value != 0);
		break;
	case VALUE_WORD:
		json_put_string(json, NULL, word_of(field->words, value));
		break;
	case VALUE_ID:
		put_id(json, field, value);
		break;
	case VALUE_DURATION:
		json_put_duration(json, NULL, value);
		break;
	case VALUE_TIME:
		json_put_moment(json, NULL, value);
		break;
	default:
		panic("field %s is not a number", field->name);
	}
}

void field_put(struct json_writer *json, const struct resource_field *field, int64_t value)
{
	if (value != field->none || !put_none(json, field))
		put_number(json, field, value);
}

void field_put_text(struct json_writer *json, const struct resource_field *field, const char *text)
{
	if ((!text || !*text) && put_none(json, field))
		return;
	put_name(json, field);
	json_put_string(json, NULL, text);
}

static void write_record(struct resource_writer *writer)
{
	const struct resource_field *field = writer->field;
	const void *record = writer->records[field->stored.record];

	if (!record)
		return;
	if (field->kind == VALUE_MAP)
		labels_write(writer->json, field, field_load_text(field, record), writer->arena);
	else if (field->stored.kind == FIELD_TEXT)
		field_put_text(writer->json, field, field_load_text(field, record));
	else
		field_put(writer->json, field, field_load_number(field, record));
}

void field_put_value(struct json_writer *json, const struct resource_field *field,
                     const struct field_value *value)
{
	INVARIANT(value->given != GIVEN_NOTHING);
	if (value->given == GIVEN_NUMBER) {
		put_number(json, field, value->number);
	} else if (value->given == GIVEN_NULL) {
		put_name(json, field);
		json_put_null(json, NULL);
	} else if (value->given == GIVEN_TEXT && value->text) {
		put_name(json, field);
		json_put_string(json, NULL, value->text);
	} else if (!put_none(json, field)) {
		panic("field %s has no form for none", field->name);
	}
}

void resource_write(struct resource_writer *writer)
{
	const struct resource *resource = writer->resource;

	for (int i = 0; i < resource->field_count; i++) {
		const struct field_value *value = writer->values ? &writer->values[i] : NULL;
		writer->field = &resource->fields[i];
		if (writer->field->hidden || (writer->is_stranger && writer->field->owner_only))
			continue;
		if (writer->special && writer->special[i])
			writer->special[i](writer);
		else if (value && value->given != GIVEN_NOTHING)
			field_put_value(writer->json, writer->field, value);
		else if (writer->field->stored.is_set && writer->records)
			write_record(writer);
		else
			INVARIANT(!value || writer->field->empty == EMPTY_OMITTED);
	}
}

void resource_write_element(const struct resource_writer *writer, struct resource_writer element)
{
	element.resource = writer->field->nested;
	element.json = writer->json;
	element.arena = writer->arena;
	json_open_object(writer->json, NULL);
	resource_write(&element);
	json_close(writer->json);
}
