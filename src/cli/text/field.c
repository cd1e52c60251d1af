/* field.c - what is in the answers of the service, taken without fuss */
#include "cli/text/field.h"

#include "cli/text/quantity.h"

const char *field_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

int64_t field_integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_integer(value) ? json_integer_value(value)
	                              : (int64_t)json_number_value(value);
}

double field_number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

bool field_flag(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

int64_t field_moment(const json_t *object, const char *key)
{
	return quantity_moment(json_string_value(json_object_get(object, key)));
}

bool field_has(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return value && !json_is_null(value);
}
