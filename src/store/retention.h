/* retention.h - how long decisions, events, finished jobs and runs are kept */
#ifndef STORE_RETENTION_H
#define STORE_RETENTION_H

#include "base/buffer.h"

/* Milliseconds; 0: for ever. A job's and a run's time counts from its end; a job
 * is also kept as long as the core has it in memory. */
struct retention {
	int64_t decisions_ms, events_ms, jobs_ms, runs_ms;
};

/* How many rows of a kind one round deletes, so that no transaction is long. */
#define RETENTION_ROWS 20000

/* Appends statements, each with a semicolon, that delete the oldest of what is
 * older than it should be. */
void retention_sql(const struct retention *retention, int64_t now_ms, struct buffer *sql);

/* Appends a statement that moves `jobs_from` in leader on, over jobs that have
 * all been archived: from there on jobs are loaded. */
void retention_advance_sql(struct buffer *sql);

#endif
