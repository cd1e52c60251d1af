/* why_awaited.c - when a running job is expected to end, and who waits for that */
#include "core/why/why_awaited.h"

#include "base/calendar.h"
#include "base/duration.h"
#include "core/state.h"
#include "core/why/why_text.h"

#define WAITERS_MAX 16 /* that are named */

/* The job that waits for what is on the GPU to end; NULL: none does. */
static const struct job *job_awaiting(const struct sched *sched, const struct gpu *gpu)
{
	const struct job *waiter =
	    gpu->promised_ms != INT64_MAX ? map_get(&sched->jobs, gpu->promised_to) : NULL;

	return waiter && waiter->promise ? waiter : NULL;
}

/* When the end of a running job is expected, and what follows for it if it is not over then. */
static void print_awaiting(const struct sched *sched, const struct job *waiter, int64_t viewer,
                           struct buffer *buffer)
{
	const struct promise_record *promise = &waiter->promise->r;

	text_job(buffer, sched, waiter->r.id, 0, viewer);
	buffer_text(buffer, promise->instead
	                        ? " waits for it to end, rather than preempting it, until "
	                        : " waits for its GPUs, and is expected to start by ");
	calendar_print(buffer, promise->start_ms);
	if (promise->start_ms > sched_now(sched)) {
		buffer_text(buffer, " (in ");
		duration_print_hours(buffer, promise->start_ms - sched_now(sched));
		buffer_text(buffer, ")");
	}
	if (promise->instead) {
		buffer_text(buffer, "; if it runs longer than ");
		duration_print_hours(buffer, ROOM_WAIT_SLACK_MS);
		buffer_text(buffer, " beyond that, it may be preempted");
	}
	buffer_text(buffer, "\n");
}

/* Of a running job: its expected end, and who waits for that. Each of those is named once: the
 * reservations of a job are few, and so are promises. */
static void print_waiters(const struct sched *sched, const struct job *job, int64_t viewer,
                          struct buffer *buffer)
{
	const struct job *named[WAITERS_MAX];
	int count = 0;

	for (int i = 0; i < job->r.tasks; i++) {
		const struct reservation *reservation = job->tasks[i].reservation;
		for (int p = 0; reservation && p < reservation->part_count; p++) {
			const struct job *waiter = job_awaiting(sched, reservation->parts[p].gpu);
			int at = 0;
			while (at < count && named[at] != waiter)
				at++;
			if (!waiter || waiter == job || at < count || count == WAITERS_MAX)
				continue;
			named[count++] = waiter;
			print_awaiting(sched, waiter, viewer, buffer);
		}
	}
}

static void print_expected_end(const struct sched *sched, const struct job *job,
                               struct buffer *buffer)
{
	int64_t now_ms = sched_now(sched), end_ms = job_expected_end(job, now_ms);

	if (end_ms == INT64_MAX || job->s.confidence < CONFIDENCE_LEAST)
		return;
	buffer_text(buffer, "it is expected to end by ");
	calendar_print(buffer, end_ms);
	buffer_text(buffer, " (in ");
	duration_print_hours(buffer, end_ms - now_ms);
	buffer_text(buffer, ", confidence ");
	text_milli(buffer, job->s.confidence * 100);
	buffer_text(buffer, "%)\n");
}

void why_print_awaited(const struct sched *sched, const struct job *job, int64_t viewer,
                       struct buffer *buffer)
{
	INVARIANT(!sched->plan.open);
	if (job->s.state != JOB_RUNNING)
		return;
	print_expected_end(sched, job, buffer);
	print_waiters(sched, job, viewer, buffer);
}
