/* history.c - the trace of a cluster whose jobs have owners: jobs as they were submitted and ran */
#include "sim/trace/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define SECONDS_MAX INT64_C(10000000000)
#define GPUS_MAX 1000000

enum { SUBMIT, STARTED, DURATION, GPUS, OWNER, NAME_TEXT, LIMIT, COLUMNS };

static bool history_read_job(struct history *history, const struct csv *csv, const int *column,
                             struct error *error)
{
	struct history_job job = { 0 };

	if (!csv_number(csv, column[SUBMIT], 0, SECONDS_MAX, &job.submit_s, error) ||
	    !csv_number(csv, column[STARTED], 0, SECONDS_MAX, &job.started_s, error) ||
	    !csv_number(csv, column[DURATION], 0, SECONDS_MAX, &job.duration_s, error) ||
	    !csv_number(csv, column[GPUS], 0, GPUS_MAX, &job.gpus, error) ||
	    !csv_number(csv, column[LIMIT], 0, SECONDS_MAX, &job.limit_s, error))
		return false;
	job.duration_s = max64(job.duration_s, 1);
	job.user = arena_string(&history->arena, csv->cells[column[OWNER]]);
	job.name = arena_string(&history->arena, csv->cells[column[NAME_TEXT]]);
	array_reserve(history->jobs, history->capacity, history->count + 1);
	history->jobs[history->count++] = job;
	return true;
}

/* Stable, as the order of the file decides among equals. */
static void history_sort(struct history_job *jobs, struct history_job *spare, size_t count)
{
	size_t half = count / 2, a = 0, b = half;

	if (count < 2)
		return;
	history_sort(jobs, spare, half);
	history_sort(jobs + half, spare, count - half);
	for (size_t i = 0; i < count; i++) {
		bool first = b == count || (a < half && jobs[a].submit_s <= jobs[b].submit_s);
		spare[i] = jobs[first ? a++ : b++];
	}
	memcpy(jobs, spare, count * sizeof(*jobs));
}

bool history_read_rows(struct history *history, struct csv *csv, struct error *error)
{
	static const char *const names[] = { "submit_s", "started_s", "duration_s", "gpus",
		                             "user",     "name",      "limit_s" };
	int column[COLUMNS], found;

	for (int i = 0; i < COLUMNS; i++)
		if (!csv_need(csv, names[i], &column[i], error))
			return false;
	while ((found = csv_next(csv, error)) > 0)
		if (!history_read_job(history, csv, column, error))
			return false;
	if (found < 0)
		return false;
	if (history->count == 0)
		return error_set(error, ERROR_INVALID, "%s: has no jobs", csv->name);
	struct history_job *spare = memory_alloc(history->count * sizeof(*spare));
	history_sort(history->jobs, spare, history->count);
	free(spare);
	return true;
}

bool history_read(struct history *history, const char *path, struct error *error)
{
	struct csv csv;
	bool fine = csv_open(&csv, path, error) && history_read_rows(history, &csv, error);

	csv_free(&csv);
	return fine;
}

void history_free(struct history *history)
{
	free(history->jobs);
	arena_free(&history->arena);
	*history = (struct history){ 0 };
}
