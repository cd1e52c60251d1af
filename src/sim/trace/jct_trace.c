/* jct_trace.c - the jobs that share a cluster in jct, from either kind of trace */
#include "sim/trace/jct_trace.h"

#include <math.h>

#include "base/number.h"
#include "sim/trace/history.h"

static void take_history(struct philly *philly, const struct history *history)
{
	for (size_t i = 0; i < history->count; i++) {
		const struct history_job *job = &history->jobs[i];
		if (job->gpus == 0)
			continue;
		array_reserve(philly->jobs, philly->capacity, philly->count + 1);
		philly->jobs[philly->count++] =
		    (struct philly_job){ .submit_ms = job->submit_s * 1000,
			                 .duration_ms = job->duration_s * 1000,
			                 .gpus = job->gpus,
			                 .user = arena_string(&philly->arena, job->user),
			                 .name = arena_string(&philly->arena, job->name),
			                 .limit_ms = job->limit_s * 1000 };
	}
}

static bool read_history(struct philly *philly, const char *path, struct error *error)
{
	struct history history = { 0 };
	bool fine = history_read(&history, path, error);

	if (fine)
		take_history(philly, &history);
	history_free(&history);
	if (fine && philly->count == 0)
		return error_set(error, ERROR_INVALID, "%s: has no job with a GPU", path);
	return fine;
}

bool jct_trace_read(struct philly *philly, const char *path, struct error *error)
{
	struct csv csv;

	*philly = (struct philly){ 0 };
	bool fine = csv_open(&csv, path, error);
	bool has_owners = fine && csv_column(&csv, "submit_s") >= 0;
	csv_free(&csv);
	if (!fine)
		return false;
	return has_owners ? read_history(philly, path, error)
	                  : philly_read(philly, path, &philly_usual, error);
}

void jct_trace_load(struct philly *philly, struct jct_world *world, int64_t percent)
{
	struct philly_job *jobs = philly->jobs;
	double asked = 0, span = (double)(jobs[philly->count - 1].submit_ms - jobs[0].submit_ms);
	int64_t widest = 0, first_ms = jobs[0].submit_ms;

	for (size_t i = 0; i < philly->count; i++) {
		asked += (double)jobs[i].duration_ms * (double)jobs[i].gpus;
		widest = max64(widest, jobs[i].gpus);
	}
	double node_span = span * (double)world->gpus * (double)percent / 100;
	if (world->nodes == 0)
		world->nodes = max64((widest + world->gpus - 1) / world->gpus,
		                     node_span > 0 ? llround(asked / node_span) : 1);
	double factor = node_span > 0 ? asked / (node_span * (double)world->nodes) : 1;
	for (size_t i = 0; i < philly->count; i++)
		jobs[i].submit_ms =
		    first_ms + llround((double)(jobs[i].submit_ms - first_ms) * factor);
}
