/* field_print.c - the value of a field as people read it, by its kind and unit */
#include "cli/field_print.h"

#include <stdlib.h>

#include "base/duration.h"
#include "base/size.h"
#include "cli/text/quantity.h"

static void print_number(struct buffer *to, const struct resource_field *field, double number)
{
	switch (field->unit) {
	case UNIT_MIB:
		if (number < 0)
			buffer_text(to, "unlimited");
		else
			size_print(to, (int64_t)number);
		return;
	case UNIT_MINUTES:
		duration_print(to, (int64_t)(number * 60000));
		return;
	case UNIT_SECONDS:
		duration_print(to, (int64_t)(number * 1000));
		return;
	case UNIT_MILLISECONDS:
		duration_print(to, (int64_t)number);
		return;
	default:
		if ((field->also & ALSO_UNLIMITED) && number < 0)
			buffer_text(to, "unlimited");
		else
			buffer_print(to, "%.12g", number);
	}
}

/* Elements with commas between; a list of objects as JSON. */
static void print_list(struct buffer *to, const struct resource_field *field, const json_t *list)
{
	size_t place;
	json_t *value;
	json_array_foreach(list, place, value)
	{
		buffer_text(to, place > 0 ? ", " : "");
		field_print(to, field, value);
	}
}

static void print_map(struct buffer *to, const json_t *map)
{
	const char *key, *before = "";
	json_t *value;
	json_object_foreach((json_t *)map, key, value)
	{
		buffer_print(to, "%s%s=%s", before, key,
		             json_is_string(value) ? json_string_value(value) : "");
		before = ", ";
	}
}

static void field_print_print_json(struct buffer *to, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
	buffer_text(to, text ? text : "");
	free(text);
}

void field_print(struct buffer *to, const struct resource_field *field, const json_t *value)
{
	if (json_is_array(value))
		print_list(to, field, value);
	else if (json_is_object(value) && field->kind == VALUE_MAP)
		print_map(to, value);
	else if (json_is_object(value))
		field_print_print_json(to, value);
	else if (json_is_number(value))
		print_number(to, field, json_number_value(value));
	else if (json_is_boolean(value))
		buffer_text(to, json_is_true(value) ? "yes" : "no");
	else if (json_is_string(value) && field->kind == VALUE_TIME)
		quantity_print_moment(to, quantity_moment(json_string_value(value)));
	else if (json_is_string(value))
		buffer_text(to, json_string_value(value));
}

bool field_print_is_number(const struct resource_field *field)
{
	return field->kind == VALUE_INTEGER || field->kind == VALUE_DECIMAL ||
	       field->kind == VALUE_DURATION;
}
