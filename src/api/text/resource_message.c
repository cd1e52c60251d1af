/* resource_message.c - resources as messages of protobuf, read and written by their tables */
#include "api/text/resource_message.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/text/times.h"
#include "scheduler.pb-c.h"

#define SECOND_NANOS INT64_C(1000000000)
#define MILLISECOND_NANOS INT64_C(1000000)
/* The first second of the year 10000. */
#define TIME_SECONDS_END INT64_C(253402300800)
#define DURATION_SECONDS_END INT64_C(1000000000)

enum { MAP_KEY = 1, MAP_VALUE = 2 }; /* in the entry of any map */

static const void *message_at(const ProtobufCMessage *message, unsigned offset)
{
	return (const char *)message + offset;
}

/* True if a field without presence differs from what it is when it is left out. */
static bool value_is_set(const ProtobufCFieldDescriptor *field, const void *value)
{
	const char *text;

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		text = *(const char *const *)value;
		return text && *text;
	case PROTOBUF_C_TYPE_MESSAGE:
		return *(const ProtobufCMessage *const *)value != NULL;
	case PROTOBUF_C_TYPE_BOOL:
		return *(const protobuf_c_boolean *)value;
	case PROTOBUF_C_TYPE_INT32:
		return *(const int32_t *)value != 0;
	case PROTOBUF_C_TYPE_INT64:
		return *(const int64_t *)value != 0;
	case PROTOBUF_C_TYPE_DOUBLE:
		return *(const double *)value != 0;
	default:
		return false;
	}
}

/* How many values the message has for the field. */
static size_t field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const void *quantifier = message_at(message, field->quantifier_offset);

	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)quantifier;
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)quantifier == field->id;
	return value_is_set(field, message_at(message, field->offset));
}

static size_t value_size(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_INT32:
		return sizeof(int32_t);
	case PROTOBUF_C_TYPE_INT64:
		return sizeof(int64_t);
	case PROTOBUF_C_TYPE_DOUBLE:
		return sizeof(double);
	default:
		return sizeof(void *);
	}
}

static const void *field_value(const ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor *field, size_t place)
{
	const void *value = message_at(message, field->offset);

	if (field->label != PROTOBUF_C_LABEL_REPEATED)
		return value;
	return *(const char *const *)value + place * value_size(field);
}

/* From a message to JSON. */

/* A request that is being read, one field after the other. Values follow their keys. */
struct message_reader {
	struct json_writer *json;
	struct error *error;
	const struct resource_field *row;
};

static bool put_duration(struct message_reader *reader, const Google__Protobuf__Duration *duration)
{
	char text[48];

	if (duration->seconds < 0 || duration->seconds >= DURATION_SECONDS_END ||
	    duration->nanos < 0 || duration->nanos >= SECOND_NANOS)
		return field_refuse(reader->row, reader->error);
	snprintf(text, sizeof(text), "%lldms",
	         (long long)(duration->seconds * 1000 + duration->nanos / MILLISECOND_NANOS));
	json_put_string(reader->json, NULL, text);
	return true;
}

static bool put_time(struct message_reader *reader, const Google__Protobuf__Timestamp *time)
{
	if (time->seconds < 0 || time->seconds >= TIME_SECONDS_END || time->nanos < 0 ||
	    time->nanos >= SECOND_NANOS)
		return field_refuse(reader->row, reader->error);
	json_put_time(reader->json, NULL, time->seconds * 1000000 + time->nanos / 1000);
	return true;
}

static bool put_message(struct message_reader *reader, const ProtobufCMessage *message)
{
	const struct resource_field *row = reader->row;

	switch (row->kind) {
	case VALUE_DURATION:
		return put_duration(reader, (const Google__Protobuf__Duration *)message);
	case VALUE_TIME:
		return put_time(reader, (const Google__Protobuf__Timestamp *)message);
	default:
		INVARIANT(row->nested);
		return resource_message_read(row->nested, message, reader->json, reader->error);
	}
}

/* Protobuf has no null: -1 takes away what a change can take away, such as a limit. */
static bool is_removal(const struct resource_field *row, double value)
{
	return value == -1 && row->setter == SET_ANY_TIME && row->empty == EMPTY_NULL &&
	       !(row->also & ALSO_UNLIMITED);
}

static bool put_integer(struct message_reader *reader, int64_t value)
{
	if (is_removal(reader->row, (double)value))
		json_put_null(reader->json, NULL);
	else
		json_put_integer(reader->json, NULL, value);
	return true;
}

static bool put_real(struct message_reader *reader, double value)
{
	if (!isfinite(value))
		return field_refuse(reader->row, reader->error);
	if (is_removal(reader->row, value))
		json_put_null(reader->json, NULL);
	else
		json_put_real(reader->json, NULL, value);
	return true;
}

static bool put_value(struct message_reader *reader, const ProtobufCFieldDescriptor *field,
                      const void *value)
{
	struct json_writer *json = reader->json;

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		json_put_string(json, NULL, *(const char *const *)value);
		return true;
	case PROTOBUF_C_TYPE_BOOL:
		json_put_flag(json, NULL, *(const protobuf_c_boolean *)value);
		return true;
	case PROTOBUF_C_TYPE_INT32:
		return put_integer(reader, *(const int32_t *)value);
	case PROTOBUF_C_TYPE_INT64:
		return put_integer(reader, *(const int64_t *)value);
	case PROTOBUF_C_TYPE_DOUBLE:
		return put_real(reader, *(const double *)value);
	case PROTOBUF_C_TYPE_MESSAGE:
		return put_message(reader, *(const ProtobufCMessage *const *)value);
	default:
		panic("%s has a type that no field of a resource has", field->name);
	}
}

static const char *entry_text(const ProtobufCMessage *entry, unsigned number)
{
	const ProtobufCFieldDescriptor *field =
	    protobuf_c_message_descriptor_get_field(entry->descriptor, number);
	const char *text = *(const char *const *)message_at(entry, field->offset);

	return text ? text : "";
}

static void put_map(struct message_reader *reader, const ProtobufCMessage *message,
                    const ProtobufCFieldDescriptor *field)
{
	size_t count = field_count(message, field);

	json_open_object(reader->json, NULL);
	for (size_t i = 0; i < count; i++) {
		const ProtobufCMessage *entry =
		    *(const ProtobufCMessage *const *)field_value(message, field, i);
		json_put_string(reader->json, entry_text(entry, MAP_KEY),
		                entry_text(entry, MAP_VALUE));
	}
	json_close(reader->json);
}

static bool resource_message_put_field(struct message_reader *reader,
                                       const ProtobufCMessage *message,
                                       const ProtobufCFieldDescriptor *field)
{
	const struct resource_field *row = reader->row;
	size_t count = field_count(message, field);

	json_put_key(reader->json, (struct text){ row->name, row->name_size });
	if (row->kind == VALUE_MAP) {
		put_map(reader, message, field);
		return true;
	}
	if (field->label != PROTOBUF_C_LABEL_REPEATED)
		return put_value(reader, field, field_value(message, field, 0));
	json_open_array(reader->json, NULL);
	for (size_t i = 0; i < count; i++)
		if (!put_value(reader, field, field_value(message, field, i)))
			return false;
	json_close(reader->json);
	return true;
}

/* The field of that number, or NULL. Most types number theirs without gaps. */
static const ProtobufCFieldDescriptor *field_numbered(const ProtobufCMessageDescriptor *type,
                                                      unsigned number)
{
	if (number <= type->n_fields && type->fields[number - 1].id == number)
		return &type->fields[number - 1];
	return protobuf_c_message_descriptor_get_field(type, number);
}

/* The field of that number, if the message has a value for it. */
static const ProtobufCFieldDescriptor *field_given(const ProtobufCMessage *message, int number)
{
	if (number <= 0)
		return NULL;
	const ProtobufCFieldDescriptor *field =
	    field_numbered(message->descriptor, (unsigned)number);
	return field && field_count(message, field) > 0 ? field : NULL;
}

bool resource_message_read(const struct resource *resource, const ProtobufCMessage *message,
                           struct json_writer *json, struct error *error)
{
	json_open_object(json, NULL);
	for (int i = 0; i < resource->field_count; i++) {
		const struct resource_field *row = &resource->fields[i];
		const ProtobufCFieldDescriptor *field = field_given(message, row->proto.request);
		const ProtobufCFieldDescriptor *extra = field_given(message, row->proto.extra);
		if (!field && !extra)
			continue;
		if (field && extra)
			return error_set(error, ERROR_INVALID,
			                 "%s and %s are two forms of one field: give one of them",
			                 row->name, row->proto.extra_name);
		struct message_reader reader = { json, error, row };
		if (!resource_message_put_field(&reader, message, field ? field : extra))
			return false;
	}
	json_close(json);
	return true;
}

/* From JSON to a message. */

/* An answer that is being written. */
struct message_writer {
	struct json_scan *scan;
	struct arena *arena;
	const struct resource_field *row;
};

static void *message_new(const ProtobufCMessageDescriptor *type, struct arena *arena)
{
	void *message = arena_alloc(arena, type->sizeof_message);

	protobuf_c_message_init(type, message);
	return message;
}

/* Room for one more element of a list. Its capacity is the next power of two. */
static void *list_add(void **list, size_t *count, size_t size, struct arena *arena)
{
	if ((*count & (*count - 1)) == 0) {
		void *grown = arena_alloc(arena, (*count > 0 ? 2 * *count : 1) * size);
		if (*count > 0)
			memcpy(grown, *list, *count * size);
		*list = grown;
	}
	return (char *)*list + (*count)++ * size;
}

/* Where the next value of the field goes. */
static void *field_add(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       struct arena *arena)
{
	char *base = (char *)message;
	void *value = base + field->offset;
	void *quantifier = base + field->quantifier_offset;

	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return list_add(value, quantifier, value_size(field), arena);
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		*(uint32_t *)quantifier = field->id;
	return value;
}

static char *text_copy(struct text text, struct arena *arena)
{
	char *copy = arena_alloc(arena, text.size + 1);

	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	return copy;
}

/* A duration or a time; NULL if the text is neither. */
static ProtobufCMessage *time_message(const struct message_writer *writer, struct text text)
{
	int64_t time_ms;

	if (writer->row->kind == VALUE_DURATION) {
		if (!duration_read(text, DURATION_MAX_MS, &time_ms))
			return NULL;
		Google__Protobuf__Duration *duration =
		    message_new(&google__protobuf__duration__descriptor, writer->arena);
		duration->seconds = time_ms / 1000;
		duration->nanos = (int32_t)(time_ms % 1000 * MILLISECOND_NANOS);
		return &duration->base;
	}
	if (!calendar_read(text, &time_ms))
		return NULL;
	Google__Protobuf__Timestamp *time =
	    message_new(&google__protobuf__timestamp__descriptor, writer->arena);
	time->seconds = time_ms / 1000;
	time->nanos = (int32_t)(time_ms % 1000 * MILLISECOND_NANOS);
	return &time->base;
}

static bool write_text(struct message_writer *writer, ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
	struct text text = { NULL, 0 };

	if (!json_scan_text(writer->scan, &text))
		return false;
	if (field->type == PROTOBUF_C_TYPE_STRING) {
		*(char **)field_add(message, field, writer->arena) = text_copy(text, writer->arena);
	} else if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
	           (writer->row->kind == VALUE_DURATION || writer->row->kind == VALUE_TIME)) {
		ProtobufCMessage *time = time_message(writer, text);
		if (time)
			*(ProtobufCMessage **)field_add(message, field, writer->arena) = time;
	}
	return true;
}

static bool write_number(struct message_writer *writer, ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field)
{
	struct text raw = { NULL, 0 };
	int64_t number;

	if (field->type == PROTOBUF_C_TYPE_INT64) {
		if (!json_scan_decimal(writer->scan, 0, &number))
			return false;
		*(int64_t *)field_add(message, field, writer->arena) = number;
		return true;
	}
	if (!json_scan_skip(writer->scan, &raw))
		return false;
	if (field->type == PROTOBUF_C_TYPE_DOUBLE)
		*(double *)field_add(message, field, writer->arena) =
		    strtod(text_copy(raw, writer->arena), NULL);
	return true;
}

static bool write_flag(struct message_writer *writer, ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
	bool flag;

	if (!json_scan_flag(writer->scan, &flag))
		return false;
	if (field->type == PROTOBUF_C_TYPE_BOOL)
		*(protobuf_c_boolean *)field_add(message, field, writer->arena) = flag;
	return true;
}

static bool write_map(struct message_writer *writer, ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field)
{
	const ProtobufCMessageDescriptor *type = field->descriptor;
	const unsigned key_at = protobuf_c_message_descriptor_get_field(type, MAP_KEY)->offset;
	const unsigned value_at = protobuf_c_message_descriptor_get_field(type, MAP_VALUE)->offset;
	struct text key = { NULL, 0 }, value = { NULL, 0 };

	json_scan_open(writer->scan, JSON_KIND_OBJECT);
	while (json_scan_member(writer->scan, &key)) {
		if (json_scan_kind(writer->scan) != JSON_KIND_TEXT) {
			json_scan_skip(writer->scan, NULL);
			continue;
		}
		if (!json_scan_text(writer->scan, &value))
			return false;
		char *entry = message_new(type, writer->arena);
		*(char **)(void *)(entry + key_at) = text_copy(key, writer->arena);
		*(char **)(void *)(entry + value_at) = text_copy(value, writer->arena);
		*(void **)field_add(message, field, writer->arena) = entry;
	}
	return !writer->scan->failed;
}

static bool write_value(struct message_writer *writer, ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field);

static bool write_list(struct message_writer *writer, ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
	json_scan_open(writer->scan, JSON_KIND_ARRAY);
	while (json_scan_element(writer->scan))
		if (!write_value(writer, message, field))
			return false;
	return !writer->scan->failed;
}

static bool write_object(struct message_writer *writer, ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field)
{
	const struct resource_field *row = writer->row;

	if (row->kind == VALUE_MAP && field->type == PROTOBUF_C_TYPE_MESSAGE)
		return write_map(writer, message, field);
	if (!row->nested)
		return json_scan_skip(writer->scan, NULL);
	ProtobufCMessage *nested =
	    resource_message_write(row->nested, field->descriptor, writer->scan, writer->arena);
	if (nested)
		*(ProtobufCMessage **)field_add(message, field, writer->arena) = nested;
	return nested != NULL;
}

static bool write_value(struct message_writer *writer, ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field)
{
	switch (json_scan_kind(writer->scan)) {
	case JSON_KIND_TEXT:
		return write_text(writer, message, field);
	case JSON_KIND_NUMBER:
		return write_number(writer, message, field);
	case JSON_KIND_FLAG:
		return write_flag(writer, message, field);
	case JSON_KIND_OBJECT:
		return write_object(writer, message, field);
	case JSON_KIND_ARRAY:
		if (field->label == PROTOBUF_C_LABEL_REPEATED)
			return write_list(writer, message, field);
		/* fall through */
	default:
		return json_scan_skip(writer->scan, NULL);
	}
}

ProtobufCMessage *resource_message_write(const struct resource *resource,
                                         const ProtobufCMessageDescriptor *type,
                                         struct json_scan *scan, struct arena *arena)
{
	ProtobufCMessage *message = message_new(type, arena);
	struct text name = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_OBJECT || !json_scan_open(scan, JSON_KIND_OBJECT))
		return NULL;
	while (json_scan_member(scan, &name)) {
		int place = resource_find(resource, name.data, name.size);
		const struct resource_field *row = place >= 0 ? &resource->fields[place] : NULL;
		const ProtobufCFieldDescriptor *field =
		    row && row->proto.reply > 0
			? protobuf_c_message_descriptor_get_field(type, (unsigned)row->proto.reply)
			: NULL;
		struct message_writer writer = { scan, arena, row };
		if (!(field ? write_value(&writer, message, field) : json_scan_skip(scan, NULL)))
			return NULL;
	}
	return scan->failed ? NULL : message;
}
