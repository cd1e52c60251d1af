/* resource.c - fields by their names, and what their values may be */
#include "resource/resource.h"

#include <stdlib.h>
#include <string.h>

#include "core/record/record.h"

enum { NEAR_BYTES_LEAST = 3 };

const struct resource *const resources[RESOURCE_COUNT] = {
	[RESOURCE_JOB] = &job_resource,           [RESOURCE_TENANT] = &tenant_resource,
	[RESOURCE_MODEL] = &model_resource,       [RESOURCE_SLOT] = &slot_resource,
	[RESOURCE_NODE] = &node_resource,         [RESOURCE_GPU] = &gpu_resource,
	[RESOURCE_TOKEN] = &token_resource,       [RESOURCE_DECISION] = &decision_resource,
	[RESOURCE_RUN] = &run_resource,           [RESOURCE_REPORT] = &report_resource,
	[RESOURCE_ACCURACY] = &accuracy_resource, [RESOURCE_WINDOW] = &window_resource,
	[RESOURCE_QUOTA] = &quota_resource,
};

const struct resource *resource_named(const char *name)
{
	for (int i = RESOURCE_NESTED + 1; i < RESOURCE_COUNT; i++)
		if (strcmp(resources[i]->name, name) == 0)
			return resources[i];
	return NULL;
}

const struct resource_field *resource_nearest(const struct resource *resource, const char *name,
                                              size_t size)
{
	const struct resource_field *nearest = NULL;
	size_t longest = NEAR_BYTES_LEAST - 1;

	for (int i = 0; i < resource->field_count; i++) {
		const struct resource_field *field = &resource->fields[i];
		size_t same = 0;
		while (same < size && same < field->name_size && name[same] == field->name[same])
			same++;
		if (same > longest && field_is_accepted(field)) {
			longest = same;
			nearest = field;
		}
	}
	return nearest;
}

static int64_t power_of_ten(int digits)
{
	int64_t power = 1;
	while (digits-- > 0)
		power *= 10;
	return power;
}

static bool refuse_number(const struct resource_field *field, struct error *error)
{
	int64_t scale = power_of_ten(field->digits);

	if (field->digits == 0)
		return error_set(error, ERROR_INVALID,
		                 "%s must be a whole number from %lld to %lld", field->name,
		                 (long long)field->least, (long long)field->most);
	return error_set(error, ERROR_INVALID,
	                 "%s must be a number from %lld to %lld with at most %d decimals",
	                 field->name, (long long)(field->least / scale),
	                 (long long)(field->most / scale), field->digits);
}

/* 'on_lease_loss must be "keep" or "stop"' */
static bool refuse_word(const struct resource_field *field, struct error *error)
{
	const struct words *words = field->words;
	struct buffer list = { 0 };

	for (int i = 0; i < words->count; i++)
		buffer_print(&list, "%s\"%s\"",
		             i == 0                  ? ""
		             : i == words->count - 1 ? " or "
		                                     : ", ",
		             words->at[i]);
	error_set(error, ERROR_INVALID, "%s must be %s", field->name, list.data);
	buffer_free(&list);
	return false;
}

bool field_refuse(const struct resource_field *field, struct error *error)
{
	const char *sentence = "must be an object";

	switch (field->kind) {
	case VALUE_INTEGER:
	case VALUE_DECIMAL:
		return refuse_number(field, error);
	case VALUE_WORD:
		return refuse_word(field, error);
	case VALUE_FLAG:
		sentence = "must be true or false";
		break;
	case VALUE_TEXT:
	case VALUE_ID:
		sentence = "must be a text in double quotes";
		break;
	case VALUE_DURATION:
		sentence = "must be a duration such as \"1h30m\"";
		break;
	case VALUE_TIME:
		sentence = "must be a time such as \"2026-01-31T12:00:00Z\" (RFC 3339)";
		break;
	case VALUE_TEXTS:
	case VALUE_WORDS:
	case VALUE_IDS:
		sentence = "must be a list of texts";
		break;
	case VALUE_MAP:
		sentence = "must be an object of texts, such as {\"NAME\":\"value\"}";
		break;
	case VALUE_OBJECT:
		break;
	case VALUE_LIST:
		sentence = "must be a list";
		break;
	}
	return error_set(error, ERROR_INVALID, "%s %s", field->name, sentence);
}

bool field_check_number(const struct resource_field *field, int64_t value, struct error *error)
{
	bool any = field->least == 0 && field->most == 0;
	return any || (value >= field->least && value <= field->most) || field_refuse(field, error);
}

bool field_check_size(const struct resource_field *field, size_t size, struct error *error)
{
	return field->most == 0 || size <= (size_t)field->most ||
	       error_set(error, ERROR_INVALID, "%s is longer than %lld bytes", field->name,
	                 (long long)field->most);
}

int field_word(const struct resource_field *field, const char *word, size_t size)
{
	INVARIANT(field->words);
	for (int i = 0; i < field->words->count; i++)
		if (strlen(field->words->at[i]) == size &&
		    memcmp(field->words->at[i], word, size) == 0)
			return i;
	return -1;
}

const char *field_word_at(const struct resource_field *field, int place)
{
	return field->words ? word_of(field->words, place) : NULL;
}

/* A number of the record is `scale` times that of the table, but for what means none or no
 * limit. */
static bool has_scale(const struct resource_field *field, int64_t number)
{
	return field->scale > 0 && number != field->none && number != UNLIMITED;
}

int64_t field_load_number(const struct resource_field *field, const void *record)
{
	const void *value = (const char *)record + field->stored.offset;
	int64_t number;

	INVARIANT(field->stored.is_set);
	switch ((enum field_kind)field->stored.kind) {
	case FIELD_INT64:
		number = *(const int64_t *)value;
		break;
	case FIELD_INT32:
		number = *(const int32_t *)value;
		break;
	case FIELD_FLAG:
		number = *(const bool *)value;
		break;
	default:
		panic("field %s is not a number", field->name);
	}
	return has_scale(field, number) ? number / field->scale : number;
}

void field_store_number(const struct resource_field *field, void *record, int64_t value)
{
	void *to = (char *)record + field->stored.offset;
	int64_t number = has_scale(field, value) ? value * field->scale : value;

	INVARIANT(field->stored.is_set);
	switch ((enum field_kind)field->stored.kind) {
	case FIELD_INT64:
		*(int64_t *)to = number;
		break;
	case FIELD_INT32:
		*(int32_t *)to = (int32_t)number;
		break;
	case FIELD_FLAG:
		*(bool *)to = number != 0;
		break;
	default:
		panic("field %s is not a number", field->name);
	}
}

const char *field_load_text(const struct resource_field *field, const void *record)
{
	INVARIANT(field->stored.is_set && field->stored.kind == FIELD_TEXT);
	const char *text = *(const char *const *)((const char *)record + field->stored.offset);
	return text ? text : "";
}

void field_store_text(const struct resource_field *field, void *record, const char *text)
{
	INVARIANT(field->stored.is_set && field->stored.kind == FIELD_TEXT);
	*(const char **)((char *)record + field->stored.offset) = text;
}

/* The default in the row's JSON as a number of the table. */
static int64_t initial_number(const struct resource_field *field)
{
	const char *initial = field->initial;

	if (!initial || strcmp(initial, "null") == 0)
		return field->none;
	if (field->kind == VALUE_WORD)
		return field_word(field, initial + 1, strlen(initial) - 2);
	if (field->kind == VALUE_FLAG)
		return strcmp(initial, "true") == 0;
	return strtoll(initial, NULL, 10) * power_of_ten(field->digits);
}

void field_store_initial(const struct resource_field *field, void *record)
{
	if (field->stored.kind == FIELD_TEXT)
		field_store_text(field, record, "");
	else
		field_store_number(field, record, initial_number(field));
}

void resource_store_initial(const struct resource *resource, void *record)
{
	for (int i = 0; i < resource->field_count; i++)
		if (resource->fields[i].stored.is_set && field_is_settable(&resource->fields[i]))
			field_store_initial(&resource->fields[i], record);
}

#define NAME_AT(names, place)                                                                      \
	((size_t)(place) < sizeof(names) / sizeof((names)[0]) ? (names)[place] : "unknown")

const char *value_kind_name(enum value_kind kind)
{
	static const char *const names[] = { "integer", "decimal",  "flag",   "text",  "word",
		                             "id",      "duration", "time",   "texts", "words",
		                             "ids",     "map",      "object", "list" };
	return NAME_AT(names, kind);
}

const char *value_unit_name(enum value_unit unit)
{
	static const char *const names[] = { "",      "MiB", "bytes", "GPUs",     "cores",
		                             "tasks", "ms",  "s",     "min",      "h",
		                             "J",     "W",   "°C",    "currency", "MiB h" };
	return NAME_AT(names, unit);
}

const char *field_setter_name(enum field_setter setter)
{
	static const char *const names[] = { "service", "creation", "any_time", "administrator" };
	return NAME_AT(names, setter);
}

const char *field_empty_name(enum field_empty empty)
{
	static const char *const names[] = { "shown", "null", "omitted" };
	return NAME_AT(names, empty);
}

const char *form_section_name(enum form_section section)
{
	static const char *const names[] = { "",        "general", "work",      "gpus",
		                             "tasks",   "time",    "placement", "limits",
		                             "serving", "notify",  "more" };
	return NAME_AT(names, section);
}
