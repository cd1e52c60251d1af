/* prefix_trace.c - requests whose prompts begin alike */
#include "sim/serve/prefix_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

enum { TIME_MOST_MS = 1000000000, TOKENS_MOST = 10000000 };
#define BLOCK_MOST INT64_C(1000000000)

/* A number in decimal digits alone; where it ends. NULL: it is none, or too great. */
static const char *read_block(const char *at, int64_t *number)
{
	char *end;

	if (*at < '0' || *at > '9')
		return NULL;
	errno = 0;
	long long value = strtoll(at, &end, 10);
	if (errno != 0 || value > BLOCK_MOST)
		return NULL;
	*number = value;
	return end;
}

/* Appends the blocks from `from` to `to`; false: more than the prompt can have. */
static bool add_run(struct prefix_trace *trace, const struct prefix_request *request, int64_t from,
                    int64_t to)
{
	int64_t most = (request->input + PREFIX_BLOCK_TOKENS - 1) / PREFIX_BLOCK_TOKENS;

	if (to < from || (int64_t)(trace->block_count - request->first) + to - from + 1 > most)
		return false;
	for (int64_t block = from; block <= to; block++) {
		array_reserve(trace->blocks, trace->block_capacity, trace->block_count + 1);
		trace->blocks[trace->block_count++] = hash_number((uint64_t)block + 1);
	}
	return true;
}

/* '0 14-27': numbers and runs of them. */
static bool read_blocks(struct prefix_trace *trace, const struct csv *csv,
                        struct prefix_request *request, const char *text, struct error *error)
{
	const char *at = text;

	request->first = trace->block_count;
	while (at && *at) {
		int64_t from = 0, to;
		at = read_block(at, &from);
		to = from;
		if (at && *at == '-')
			at = read_block(at + 1, &to);
		if (at && !add_run(trace, request, from, to))
			at = NULL;
		if (at && *at == ' ' && at[1])
			at++;
		else if (at && *at)
			at = NULL;
	}
	request->blocks = (int)(trace->block_count - request->first);
	if (at && request->blocks > 0)
		return true;
	return error_set(error, ERROR_INVALID,
	                 "%s, line %lld: blocks is '%.40s': it must be numbers and runs such as "
	                 "'0 14-27', one for each %d tokens of the prompt at the most",
	                 csv->name, (long long)csv->line, text, PREFIX_BLOCK_TOKENS);
}

static int prefix_by_time(const void *a, const void *b)
{
	const struct prefix_request *x = a, *y = b;

	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static int64_t divisor_of(int64_t a, int64_t b)
{
	while (b > 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

static void spread(struct prefix_trace *trace)
{
	int64_t grain_us = 0;

	for (size_t i = 0; i < trace->count; i++)
		grain_us = divisor_of(grain_us, trace->requests[i].at_us);
	for (size_t i = 0, end; i < trace->count; i = end) {
		int64_t at_us = trace->requests[i].at_us;
		for (end = i + 1; end < trace->count && trace->requests[end].at_us == at_us;)
			end++;
		for (size_t j = i; j < end; j++)
			trace->requests[j].at_us +=
			    grain_us * (int64_t)(j - i) / (int64_t)(end - i);
	}
}

bool prefix_trace_read_rows(struct prefix_trace *trace, struct csv *csv, struct error *error)
{
	int time, input, blocks, next;

	if (!csv_need(csv, "time_ms", &time, error) ||
	    !csv_need(csv, "input_tokens", &input, error) ||
	    !csv_need(csv, "blocks", &blocks, error))
		return false;
	while ((next = csv_next(csv, error)) > 0) {
		struct prefix_request request = { 0 };
		const char *text;
		int64_t at_ms;
		if (!csv_number(csv, time, 0, TIME_MOST_MS, &at_ms, error) ||
		    !csv_number(csv, input, 1, TOKENS_MOST, &request.input, error) ||
		    !csv_text(csv, blocks, &text, error) ||
		    !read_blocks(trace, csv, &request, text, error))
			return false;
		request.at_us = at_ms * 1000;
		array_reserve(trace->requests, trace->capacity, trace->count + 1);
		trace->requests[trace->count++] = request;
	}
	if (next == 0 && trace->count == 0)
		return error_set(error, ERROR_INVALID, "%s has no request", csv->name);
	if (next != 0)
		return false;
	qsort(trace->requests, trace->count, sizeof(*trace->requests), prefix_by_time);
	spread(trace);
	return true;
}

bool prefix_trace_read(struct prefix_trace *trace, const char *path, struct error *error)
{
	struct csv csv;

	bool fine = csv_open(&csv, path, error) && prefix_trace_read_rows(trace, &csv, error);
	csv_free(&csv);
	return fine;
}

void prefix_trace_free(struct prefix_trace *trace)
{
	free(trace->requests);
	free(trace->blocks);
}
