/* member.c - members of a JSON object, without complaints about what is missing */
#include "json/member.h"

#include "base/calendar.h"
#include "base/text.h"

#define BEYOND 9223372036854775808.0 /* the first number that 64 bits do not hold */

const char *member_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

int64_t member_integer(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	if (json_is_integer(value))
		return json_integer_value(value);
	double number = json_number_value(value);
	return number > -BEYOND && number < BEYOND ? (int64_t)number : 0;
}

double member_number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

bool member_flag(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

int64_t member_moment(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	struct text text = { json_string_value(value), json_string_length(value) };
	int64_t ms;
	return json_is_string(value) && calendar_read(text, &ms) ? ms : -1;
}

bool member_has(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return value && !json_is_null(value);
}

const char *member_first(const json_t *object, const char *const *names)
{
	while (*names && !member_has(object, *names))
		names++;
	return *names;
}
