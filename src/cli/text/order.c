/* order.c - lists in the order that people expect */
#include "cli/text/order.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "json/member.h"

/* The digits at the front without leading zeros, and how many there are. */
static size_t take_digits(const char **text)
{
	while (**text == '0' && isdigit((unsigned char)(*text)[1]))
		(*text)++;
	size_t size = 0;
	while (isdigit((unsigned char)(*text)[size]))
		size++;
	return size;
}

int order_names(const char *a, const char *b)
{
	const char *whole_a = a, *whole_b = b;
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			size_t size_a = take_digits(&a), size_b = take_digits(&b);
			int digits =
			    size_a != size_b ? (size_a < size_b ? -1 : 1) : strncmp(a, b, size_a);
			if (digits != 0)
				return digits;
			a += size_a;
			b += size_b;
		} else if (*a != *b) {
			return (unsigned char)*a - (unsigned char)*b;
		} else {
			a++;
			b++;
		}
	}
	if (*a || *b)
		return *a ? 1 : -1;
	/* 01 and 1 are the same number, but not the same name. */
	return strcmp(whole_a, whole_b);
}

int order_by_node(const json_t *a, const json_t *b)
{
	const char *key = json_object_get(a, "node") ? "node" : "id";
	int names = order_names(member_text(a, key), member_text(b, key));
	int64_t one = member_integer(a, "index"), other = member_integer(b, "index");
	return names != 0 ? names : one < other ? -1 : one > other;
}

int order_by_position(const json_t *a, const json_t *b)
{
	int64_t one = member_integer(a, "queue_position"),
		other = member_integer(b, "queue_position");
	if ((one == 0) != (other == 0))
		return one == 0 ? 1 : -1;
	return one < other ? -1 : one > other;
}

/* Merges two halves that are in order already. */
static void merge_sort(json_t **items, json_t **spare, size_t count,
                       int (*compare)(const json_t *a, const json_t *b))
{
	if (count < 2)
		return;
	size_t half = count / 2, left = 0, right = half;
	merge_sort(items, spare, half, compare);
	merge_sort(items + half, spare, count - half, compare);
	for (size_t i = 0; i < count; i++) {
		bool takes_left =
		    left < half && (right == count || compare(items[left], items[right]) <= 0);
		spare[i] = takes_left ? items[left++] : items[right++];
	}
	memcpy(items, spare, count * sizeof(json_t *));
}

void order_items(json_t *items, int (*compare)(const json_t *a, const json_t *b))
{
	size_t count = json_array_size(items), place;
	if (count < 2)
		return;
	json_t **list = memory_alloc(2 * count * sizeof(json_t *)), *item;
	json_array_foreach(items, place, item) list[place] = json_incref(item);
	merge_sort(list, list + count, count, compare);
	json_array_clear(items);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(items, list[i]);
	free(list);
}
