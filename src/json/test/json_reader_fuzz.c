/* json_reader_fuzz.c - whatever the text, it is refused with a reason or is JSON within limits */
#include <stdint.h>

#include "json/json_reader.h"
#include "json/member.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t depth_of(json_t *value)
{
	size_t deepest = 0, i;
	const char *key;
	json_t *member;
	json_object_foreach(value, key, member)
	{
		size_t depth = depth_of(member);
		deepest = depth > deepest ? depth : deepest;
	}
	json_array_foreach(value, i, member)
	{
		size_t depth = depth_of(member);
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest + (json_is_object(value) || json_is_array(value));
}

static void read_fields(const json_t *json)
{
	static const char *const words[] = { "a", "b", NULL };
	struct error error = { 0 };
	struct json_reader reader = json_reader_of(json, "", &error);
	const char *const names[] = { "a", "b", "c", "d", NULL };
	for (size_t i = 0; names[i]; i++) {
		int64_t number = json_get_integer(&reader, names[i], -9, 9, 0);
		INVARIANT(number >= -9 && number <= 9);
		reader.failed = reader.object == NULL;
		number = json_get_decimal(&reader, names[i], 3, -1000, 1000, 0);
		INVARIANT(number >= -1000 && number <= 1000);
		reader.failed = reader.object == NULL;
		INVARIANT(json_get_text(&reader, names[i], 10).size <= 10);
		reader.failed = reader.object == NULL;
		json_get_word(&reader, names[i], words, 0);
		json_get_flag(&reader, names[i], false);
		json_get_array(&reader, names[i], 3);
	}
	json_reader_end(&reader, names);
	INVARIANT(!reader.failed || error.text[0]);
}

static void read_needed(const json_t *json)
{
	struct error error = { 0 };
	struct json_reader reader = json_reader_of(json, "", &error);
	int64_t number = json_need_integer(&reader, "a", 1, 9);
	INVARIANT(number >= 1 && number <= 9);
	const char *text = json_need_string(&reader, "b");
	INVARIANT(*text || reader.failed);
	const json_t *inner = json_need_object(&reader, "c");
	INVARIANT(inner || reader.failed);
	json_reader_enter(&reader, inner, "c.%s.", text);
	json_need_array(&reader, "a", 3);
	INVARIANT(reader.failed == (error.code != ERROR_NONE));
}

/* Lenient reading takes whatever is there. */
static void read_members(const json_t *json)
{
	static const char *const names[] = { "a", "b", "c", "d", NULL };
	for (size_t i = 0; names[i]; i++) {
		INVARIANT(member_text(json, names[i]));
		INVARIANT(member_moment(json, names[i]) >= -1);
		INVARIANT(member_has(json, names[i]) || member_integer(json, names[i]) == 0);
		INVARIANT(!member_flag(json, names[i]) || member_number(json, names[i]) == 0);
	}
	const char *first = member_first(json, names);
	INVARIANT(!first || member_has(json, first));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_limits limits = { .bytes = 4000, .depth = 8, .values = 100 };
	struct error error = { 0 };
	json_t *json = json_read((struct text){ (const char *)data, size }, &limits, &error);
	INVARIANT(!json == (error.code != ERROR_NONE));
	if (json) {
		INVARIANT(depth_of(json) <= limits.depth);
		read_fields(json);
		read_needed(json);
		read_members(json);
	}
	json_decref(json);
	return 0;
}
