/* resource_change.c - a resource that is made or changed: what a request leaves out stays */
#include "api/text/resource_change.h"

#include <stdlib.h>

#include "api/text/labels.h"
#include "api/text/times.h"
#include "core/record/record.h"

enum { WORDS_MAX = 32 };

static int64_t change_number(const struct resource_change *change,
                             const struct resource_field *field, const json_t *value)
{
	bool is_unlimited = (field->also & ALSO_UNLIMITED) && json_is_integer(value) &&
	                    json_integer_value(value) == -1;
	return is_unlimited ? UNLIMITED
	                    : json_get_decimal(change->json, field->name, field->digits,
	                                       field->least, field->most, field->least);
}

static int64_t change_word(const struct resource_change *change, const struct resource_field *field)
{
	const char *words[WORDS_MAX] = { NULL };
	for (int i = 0; i < WORDS_MAX - 1 && field_word_at(field, i); i++)
		words[i] = field_word_at(field, i);
	return json_get_word(change->json, field->name, words, 0);
}

/* A duration such as "10m", or a number of seconds. */
static int64_t change_duration(const struct resource_change *change,
                               const struct resource_field *field, const json_t *value)
{
	int64_t duration_ms = 0;

	if (json_is_number(value) && (field->also & ALSO_SECONDS))
		return json_get_decimal(change->json, field->name, 3, 0, field->most, 0);
	struct text text = json_get_text(change->json, field->name, JOB_NAME_BYTES_MAX);
	if (text.data && !duration_read(text, DURATION_MAX_MS, &duration_ms))
		json_fail(change->json, field->name, "must be a duration such as \"10m\"");
	return duration_ms;
}

/* One text, or a list of them, as the core wants it: with '|' between. */
static const char *change_texts(const struct resource_change *change,
                                const struct resource_field *field, const json_t *list)
{
	struct buffer text = { 0 };
	const json_t *item;
	size_t i;

	buffer_text(&text, "");
	json_array_foreach(list, i, item)
	{
		if (!json_is_string(item))
			json_fail(change->json, field->name,
			          "must be a text, or an array of texts");
		else
			buffer_print(&text, "%s%s", i > 0 ? "|" : "", json_string_value(item));
	}
	const char *joined = arena_string(change->arena, text.data);
	buffer_free(&text);
	return joined;
}

static const char *change_text(const struct resource_change *change,
                               const struct resource_field *field, const json_t *value)
{
	if ((field->also & ALSO_LIST) && json_is_array(value))
		return change_texts(change, field, value);
	struct text text = json_get_text(change->json, field->name, (size_t)field->most);
	if (text.data && field->plain && text_has_control(text))
		json_fail(change->json, field->name, "has control characters in it");
	return text.data ? arena_string(change->arena, text.data) : "";
}

static const char *change_labels(const struct resource_change *change,
                                 const struct resource_field *field, const json_t *value)
{
	const char *labels = "";
	struct arena scratch = { 0 };
	char *text = json_dumps(value, JSON_ENCODE_ANY);

	if (text && !change->json->failed) {
		struct json_scan scan = json_scan_of(text_of(text), &scratch, change->json->error);
		change->json->failed =
		    !labels_read(&scan, field, change->arena, &labels, change->json->error);
	}
	free(text);
	arena_free(&scratch);
	return labels;
}

static void change_field(const struct resource_change *change, const struct resource_field *field,
                         const json_t *value)
{
	int64_t number = 0;

	if (json_is_null(value)) {
		field_store_initial(field, change->record);
		return;
	}
	switch (field->kind) {
	case VALUE_INTEGER:
	case VALUE_DECIMAL:
		number = change_number(change, field, value);
		break;
	case VALUE_FLAG:
		number = json_get_flag(change->json, field->name, false);
		break;
	case VALUE_WORD:
		number = change_word(change, field);
		break;
	case VALUE_DURATION:
		number = change_duration(change, field, value);
		break;
	case VALUE_TEXT:
		field_store_text(field, change->record, change_text(change, field, value));
		return;
	case VALUE_MAP:
		field_store_text(field, change->record, change_labels(change, field, value));
		return;
	default:
		panic("field %s needs a function to read it", field->name);
	}
	field_store_number(field, change->record, number);
}

void resource_change(const struct resource_change *change)
{
	const struct resource *resource = change->resource;

	for (int i = 0; change->json->object && i < resource->field_count; i++) {
		const struct resource_field *field = &resource->fields[i];
		const json_t *value = json_object_get(change->json->object, field->name);
		if (value && field_is_settable(field) && field->stored.is_set &&
		    !change->is_special[i])
			change_field(change, field, value);
	}
}

bool resource_change_end(const struct resource_change *change)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)change->json->object, key, value)
	{
		int place = resource_find(change->resource, key, strlen(key));
		if (place < 0 || !field_is_accepted(&change->resource->fields[place]))
			return json_fail(change->json, key, "is not a field that is known here");
	}
	return !change->json->failed;
}
