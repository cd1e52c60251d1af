/* history.h - the trace of a cluster whose jobs have owners: jobs as they were submitted and ran */
#ifndef SIM_TRACE_HISTORY_H
#define SIM_TRACE_HISTORY_H

#include "base/memory.h"
#include "sim/world/csv.h"

/* A job of the trace: columns submit_s, started_s, duration_s, gpus, user, name and
 * limit_s; others are not read. A user, a name and a limit may be missing: empty or 0. */
struct history_job {
	int64_t submit_s, started_s;
	int64_t duration_s; /* at least 1 */
	int64_t gpus, limit_s;
	const char *user, *name;
};

/* By submission, in the order of the file among equals. */
struct history {
	struct history_job *jobs;
	size_t count, capacity;
	struct arena arena; /* has the texts */
};

/* Reads a trace, which may be compressed with gzip. False with a reason that names
 * the line. To be freed in any case. */
bool history_read(struct history *history, const char *path, struct error *error);
bool history_read_rows(struct history *history, struct csv *csv, struct error *error);
void history_free(struct history *history);

#endif
