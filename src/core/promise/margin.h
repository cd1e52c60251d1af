/* margin.h - starts that nine of ten waiting jobs keep */
#ifndef CORE_PROMISE_MARGIN_H
#define CORE_PROMISE_MARGIN_H

#include "core/record/record.h"

struct job;
struct sched;

/* A forecast names the likely start of a job. What is promised is a multiple of the time
 * until then. The multiple is learned, one for each magnitude of that time: it grows by nine
 * steps when a job starts later than promised, and shrinks by one when it does not. In the
 * long run nine of ten promises are kept, whatever the forecast gets wrong. */
struct margins {
	struct margin_record of[MARGIN_BINS];
};

#define MARGIN_LEAST (-3 * 1024) /* of a margin_record */
#define MARGIN_MOST (8 * 1024)

void margins_init(struct margins *margins);
/* The time after which a job starts with a chance of nine in ten, where the likely start is
 * `ahead_ms` away; ahead_ms > 0. */
int64_t margin_of(const struct margins *margins, int64_t ahead_ms);

/* The waiting job is expected to start at `likely_ms`: promises a start, unless it was
 * promised one since it waits. */
void margin_promise(struct sched *sched, struct job *job, int64_t likely_ms);
/* The job has started: learns from whether that was as promised. */
void margin_started(struct sched *sched, const struct job *job);
/* The job waits again, and nothing is promised. */
void margin_forget(struct job *job);

bool margin_load(struct margins *margins, const struct margin_record *record, struct error *error);

#endif
