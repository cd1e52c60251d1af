/* labels.c - labels as the core keeps them: "key=value" pairs, sorted, with newlines between */
#include "api/text/labels.h"

#include <stdlib.h>

enum { LABELS_MAX = 64 };

static int compare_texts(const void *a, const void *b)
{
	const struct text *left = a, *right = b;
	size_t size = left->size < right->size ? left->size : right->size;
	int order = memcmp(left->data, right->data, size);
	return order != 0 ? order : (left->size > right->size) - (left->size < right->size);
}

static bool check_label(const struct resource_field *field, struct text key, struct text value,
                        struct error *error)
{
	size_t most = (size_t)field->most;
	bool fits = key.size > 0 && key.size <= most && value.size <= most;
	bool plain = !memchr(key.data, '=', key.size) && !memchr(key.data, '\n', key.size) &&
	             !memchr(value.data, '\n', value.size);
	return (fits && plain) ||
	       error_set(error, ERROR_INVALID,
	                 "%s must have names without '=' and neither newlines nor more than %zu "
	                 "bytes in names and values",
	                 field->name, most);
}

bool labels_read(struct json_scan *scan, const struct resource_field *field, struct arena *arena,
                 const char **labels, struct error *error)
{
	struct text pairs[LABELS_MAX], key = { NULL, 0 }, value = { NULL, 0 };
	size_t count = 0, size = 0;

	INVARIANT(field->items <= LABELS_MAX);
	if (json_scan_kind(scan) != JSON_KIND_OBJECT)
		return error_set(error, ERROR_INVALID,
		                 "%s must be an object of texts, such as {\"zone\":\"a\"}",
		                 field->name);
	json_scan_open(scan, JSON_KIND_OBJECT);
	while (json_scan_member(scan, &key)) {
		if (count == (size_t)field->items)
			return error_set(error, ERROR_INVALID, "%s has more than %lld members",
			                 field->name, (long long)field->items);
		if (json_scan_kind(scan) != JSON_KIND_TEXT)
			return error_set(error, ERROR_INVALID,
			                 "%s.%.*s must be a text: put double quotes around it",
			                 field->name, (int)(key.size < 64 ? key.size : 64),
			                 key.data);
		if (!json_scan_text(scan, &value) || !check_label(field, key, value, error))
			return false;
		char *pair = arena_alloc(arena, key.size + value.size + 2);
		memcpy(pair, key.data, key.size);
		pair[key.size] = '=';
		memcpy(pair + key.size + 1, value.data, value.size);
		pairs[count] = (struct text){ pair, key.size + value.size + 1 };
		size += pairs[count++].size + 1;
	}
	if (scan->failed)
		return false;
	qsort(pairs, count, sizeof(pairs[0]), compare_texts);
	char *all = arena_alloc(arena, size + 1);
	size = 0;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			all[size++] = '\n';
		memcpy(all + size, pairs[i].data, pairs[i].size);
		size += pairs[i].size;
	}
	all[size] = '\0';
	*labels = all;
	return true;
}

void labels_write(struct json_writer *json, const struct resource_field *field, const char *labels,
                  struct arena *arena)
{
	struct text rest = text_of(labels), pair;

	if (!*labels && field->empty == EMPTY_OMITTED)
		return;
	json_open_object(json, field->name);
	while (text_next(&rest, '\n', &pair)) {
		const char *equals = memchr(pair.data, '=', pair.size);
		if (!equals)
			continue;
		size_t size = (size_t)(equals - pair.data);
		char *name = arena_alloc(arena, size + 1);
		memcpy(name, pair.data, size);
		name[size] = '\0';
		json_put_text(json, name, text_from(pair, size + 1));
	}
	json_close(json);
}
