/* reading.c - fields of scenarios in units that only scenarios have */
#include "sim/world/reading.h"

#include <string.h>

#define MIB_PER_GIB 1024
#define GIB_MAX 1000000
#define MIB_SLACK 0.001
#define WORDS_MAX 16

/* A number from 0 to `most`; 0 if it is something else, which is then wrong. */
static double read_amount(struct json_reader *reader, const json_t *value, const char *name,
                          int64_t most)
{
	double number = json_number_value(value);
	if (json_is_number(value) && number >= 0 && number <= (double)most)
		return number;
	json_fail(reader, name, "must be a number from 0 to %lld", (long long)most);
	return 0;
}

int64_t read_thousandths_or(struct json_reader *reader, const char *name, int64_t at_most,
                            int64_t otherwise)
{
	if (!json_has(reader, name))
		return otherwise;
	const json_t *value = json_object_get(reader->object, name);
	return (int64_t)(read_amount(reader, value, name, at_most) * 1000 + 0.5);
}

int64_t read_gib_value(struct json_reader *reader, const json_t *value, const char *name,
                       enum rounding rounding)
{
	/* 0.1 GiB is written as a number that is a little more: that is not a MiB more. */
	double mib = read_amount(reader, value, name, GIB_MAX) * MIB_PER_GIB;
	double rounded = rounding == ROUND_UP ? mib + 1 - MIB_SLACK : mib + MIB_SLACK;
	return (int64_t)rounded;
}

int64_t read_gib(struct json_reader *reader, const char *name, enum rounding rounding)
{
	if (!json_has(reader, name))
		json_fail(reader, name, "is missing");
	return read_gib_or(reader, name, rounding, 0);
}

int64_t read_gib_or(struct json_reader *reader, const char *name, enum rounding rounding,
                    int64_t otherwise)
{
	if (!json_has(reader, name))
		return otherwise;
	return read_gib_value(reader, json_object_get(reader->object, name), name, rounding);
}

int read_word(struct json_reader *reader, const char *name, const struct words *words)
{
	const char *list[WORDS_MAX + 1] = { 0 };
	INVARIANT(words->count <= WORDS_MAX);
	for (int i = 0; i < words->count; i++)
		list[i] = words->at[i];
	json_need_string(reader, name);
	return json_get_word(reader, name, list, 0);
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
