/* array_range.c - which jobs an array has: "1-100%8", "0-90:10", "1,3,7" */
#include "api/text/array_range.h"

#include <stdlib.h>
#include <string.h>

enum { INDEX_MAX = 1000000000 };

/* The parts while they are read. */
struct indices {
	int64_t *at;
	int64_t count;
	bool too_many;
};

static bool array_range_number(struct text *text, int64_t *value)
{
	size_t count = 0;
	*value = 0;
	while (text->size > 0 && *text->data >= '0' && *text->data <= '9') {
		*value = *value * 10 + (*text->data - '0');
		if (*value > INDEX_MAX)
			return false;
		*text = text_from(*text, 1);
		count++;
	}
	return count > 0;
}

static bool byte(struct text *text, char wanted)
{
	if (text->size == 0 || *text->data != wanted)
		return false;
	*text = text_from(*text, 1);
	return true;
}

/* 7, 1-100 or 0-90:10 */
static bool array_range_part(struct text *text, struct indices *indices)
{
	int64_t from, to, step = 1;

	if (!array_range_number(text, &from))
		return false;
	to = from;
	if (byte(text, '-')) {
		if (!array_range_number(text, &to) || to < from)
			return false;
		if (byte(text, ':') && (!array_range_number(text, &step) || step == 0))
			return false;
	}
	for (int64_t index = from; index <= to; index += step) {
		if (indices->count == ARRAY_JOBS_MAX) {
			indices->too_many = true;
			return false;
		}
		indices->at[indices->count++] = index;
	}
	return true;
}

static int compare_indices(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static bool parts(struct text *rest, struct indices *indices)
{
	do {
		if (!array_range_part(rest, indices))
			return false;
	} while (byte(rest, ','));
	return true;
}

static bool array_range_refuse(const struct indices *indices, struct error *error)
{
	if (indices->too_many)
		return error_set(error, ERROR_INVALID, "array can have at most %d jobs",
		                 ARRAY_JOBS_MAX);
	return error_set(error, ERROR_INVALID,
	                 "array must be indices such as \"1-100\", \"0-90:10\" or \"1,3,7\", with "
	                 "\"%%8\" behind them for 8 at a time");
}

/* In order, without those that came twice. */
static void settle(struct indices *indices, struct arena *arena, struct array_range *range)
{
	int64_t count = 0;

	qsort(indices->at, (size_t)indices->count, sizeof(*indices->at), compare_indices);
	for (int64_t i = 0; i < indices->count; i++)
		if (count == 0 || indices->at[i] != indices->at[count - 1])
			indices->at[count++] = indices->at[i];
	range->from = indices->at[0];
	range->to = indices->at[count - 1];
	range->count = count;
	if (range->to - range->from + 1 != count)
		range->indices =
		    arena_copy(arena, indices->at, (size_t)count * sizeof(*indices->at));
}

bool array_range_read(struct text text, struct arena *arena, struct array_range *range,
                      struct error *error)
{
	struct indices indices = { .at = memory_alloc(ARRAY_JOBS_MAX * sizeof(*indices.at)) };
	struct text rest = text;
	bool read = parts(&rest, &indices);

	*range = (struct array_range){ 0 };
	if (read && byte(&rest, '%'))
		read = array_range_number(&rest, &range->limit) && range->limit > 0;
	read = read && rest.size == 0;
	if (read)
		settle(&indices, arena, range);
	else
		array_range_refuse(&indices, error);
	free(indices.at);
	if (read && range->to == 0)
		return error_set(error, ERROR_INVALID, "array must have an index above 0");
	return read;
}
