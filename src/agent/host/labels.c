/* labels.c - what is said about a node, as the scheduler wants it: sorted lines */
#include "agent/host/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define LABELS_MAX 256

struct label_list {
	char *at[LABELS_MAX];
	size_t count;
};

static size_t key_size(const char *label)
{
	return strcspn(label, "=");
}

static bool labels_add(struct label_list *list, char *label, struct error *error)
{
	size_t size = key_size(label);

	if (size == 0 || label[size] != '=' || strchr(label, '\n'))
		return error_set(error, ERROR_INVALID, "the label '%s' is not key=value", label);
	for (size_t i = 0; i < list->count; i++) {
		if (key_size(list->at[i]) == size && strncmp(list->at[i], label, size) == 0) {
			list->at[i] = label;
			return true;
		}
	}
	if (list->count == LABELS_MAX)
		return error_set(error, ERROR_INVALID, "a node has at most %d labels", LABELS_MAX);
	list->at[list->count++] = label;
	return true;
}

static int labels_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *labels_read(struct arena *arena, const char *list, const char *address,
                        struct error *error)
{
	struct label_list labels = { .count = 0 };
	struct buffer text = { 0 };
	char *copy = arena_string(arena, list ? list : ""), *rest = NULL;
	bool good = true;

	if (address) {
		buffer_print(&text, "address=%s", address);
		good = labels_add(&labels, arena_string(arena, text.data), error);
	}
	for (char *label = strtok_r(copy, ",", &rest); good && label;
	     label = strtok_r(NULL, ",", &rest))
		good = labels_add(&labels, label, error);
	qsort(labels.at, labels.count, sizeof(*labels.at), labels_compare);
	buffer_clear(&text);
	buffer_text(&text, "");
	for (size_t i = 0; i < labels.count; i++)
		buffer_print(&text, "%s%s", i > 0 ? "\n" : "", labels.at[i]);
	const char *lines = good ? arena_string(arena, text.data) : NULL;
	buffer_free(&text);
	return lines;
}
