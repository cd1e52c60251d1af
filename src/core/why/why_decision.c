/* why_decision.c - a recorded decision, as sentences with its arithmetic */
#include <inttypes.h>

#include "base/calendar.h"
#include "base/duration.h"
#include "core/state.h"
#include "core/why/why.h"
#include "core/why/why_text.h"

static void print_job(const struct sched *sched, const struct decision_record *decision,
                      int64_t viewer, struct buffer *buffer)
{
	bool named = viewer == 0 || viewer == decision->tenant_id;

	text_job(buffer, sched, decision->job_id, decision->tenant_id, viewer);
	if (!named)
		buffer_text(buffer, "'s job");
}

/* 'model qwen3:8b (slot 12)', or as much of it as is for the viewer to see. */
static void print_model(const struct sched *sched, int64_t model_id, int64_t slot_id,
                        int64_t viewer, struct buffer *buffer)
{
	const struct model *model = models_find(&sched->models, model_id);

	if (viewer != 0 && (!model || model->r.tenant_id != viewer))
		buffer_text(buffer, "a model of another tenant");
	else if (model)
		buffer_print(buffer, "model %s", model->r.name);
	else
		buffer_print(buffer, "model-%" PRId64, model_id);
	if (slot_id)
		buffer_print(buffer, " (slot %" PRId64 ")", slot_id);
}

static void print_headline(const struct sched *sched, const struct decision_record *decision,
                           int64_t viewer, struct buffer *buffer)
{
	static const char *const words[] = {
		[DECISION_START] = " starts",
		[DECISION_CLAIM] = " claims memory that is being freed, and starts when it is back",
		[DECISION_RECLAIM] = " gets room that is reclaimed from other tenants",
		[DECISION_PREEMPT] = " gets room for which jobs of lower priority are stopped",
		[DECISION_MOVE] = " gets room for which others move",
		[DECISION_WAIT] = " waits for others to end, rather than preempting them",
		[DECISION_PROMISE] = " is promised a start",
		[DECISION_EVICTED] = " is stopped",
		[DECISION_LAPSED] =
		    " gives up its claim: what it was to get is not being freed in time",
		[DECISION_GANG] = " is stopped: too few of its tasks were left for too long",
		[DECISION_GROW] = " grows",
		[DECISION_EVICT] = " gets room for which idle slots go",
		[DECISION_LOAD] = " is loaded",
		[DECISION_UNLOAD] = " is unloaded, being idle,",
		[DECISION_ADOPT] = " was found on its node, and is known from now on",
		[DECISION_FAIL] = " failed",
		[DECISION_SHARE] =
		    " gets room for which jobs stop that are expected to take longer",
		[DECISION_SUSPENDED] = " is suspended: its GPU memory goes to host memory",
		[DECISION_RESUME] = " resumes on its GPUs",
		[DECISION_CLOSE] = " takes no more requests, and goes once it has none,",
		[DECISION_SLEEP] = " goes to sleep: it makes room",
		[DECISION_WAKE] = " wakes",
		[DECISION_REOPEN] = " takes requests again: it is no longer needed",
		[DECISION_AWAITED] = " is not preempted, but waited for,",
	};

	buffer_print(buffer, "decision %" PRId64 " at ", decision->id);
	calendar_print(buffer, decision->time_ms);
	buffer_text(buffer, ": ");
	if (decision->model_id)
		print_model(sched, decision->model_id, decision->slot_id, viewer, buffer);
	else
		print_job(sched, decision, viewer, buffer);
	if (decision->kind >= 0 && decision->kind <= DECISION_AWAITED)
		buffer_text(buffer, words[decision->kind]);
	if (decision->for_model_id) {
		buffer_text(buffer, " for ");
		print_model(sched, decision->for_model_id, 0, viewer, buffer);
	}
	if (decision->for_job_id) {
		buffer_text(buffer, " for ");
		text_job(buffer, sched, decision->for_job_id, 0, viewer);
	}
	if (decision->tasks > 0) {
		buffer_text(buffer, " (");
		text_count(buffer, decision->tasks, "task");
		buffer_text(buffer, ")");
	}
	buffer_text(buffer, "\n");
}

/* A promise: nothing is taken yet. */
static void print_promised(const struct sched *sched, const int64_t *line, struct buffer *buffer)
{
	text_gpu(buffer, sched, line[LINE_GPU]);
	buffer_print(buffer,
	             ": %" PRId64 " MiB expected of %" PRId64 " MiB, %" PRId64 " used now\n",
	             line[LINE_ASKED], line[LINE_CAPACITY], line[LINE_USED_BEFORE]);
}

/* The memory invariant for one GPU, or for a claim once memory is free. */
static void why_decision_print_line(const struct sched *sched,
                                    const struct decision_record *decision, int64_t row,
                                    struct buffer *buffer)
{
	const int64_t *line = decision->gpus.at + row * LINE_WIDTH;
	int64_t unexplained_mib = decision_unexplained_mib(decision, row);
	bool claim = line[LINE_ASKED] > 0 && line[LINE_USED_AFTER] == line[LINE_USED_BEFORE];
	int64_t sum =
	    line[LINE_OVERHEAD] + line[LINE_FOREIGN] + line[LINE_USED_BEFORE] + line[LINE_ASKED];

	text_gpu(buffer, sched, line[LINE_GPU]);
	buffer_print(buffer, ": %" PRId64 " overhead + %" PRId64 " foreign", line[LINE_OVERHEAD],
	             line[LINE_FOREIGN]);
	if (unexplained_mib > 0)
		buffer_print(buffer, " (%" PRId64 " of it unexplained)", unexplained_mib);
	buffer_print(buffer, " + %" PRId64 " used", line[LINE_USED_BEFORE]);
	if (claim) {
		buffer_print(buffer, " - %" PRId64 " being freed + %" PRId64 " claimed",
		             line[LINE_RELEASING], line[LINE_CLAIMED]);
		sum += line[LINE_CLAIMED] - line[LINE_RELEASING];
	}
	buffer_print(buffer, " + %" PRId64 " asked = %" PRId64 " of %" PRId64 " MiB\n",
	             line[LINE_ASKED], sum, line[LINE_CAPACITY]);
}

static void print_lines(const struct sched *sched, const struct decision_record *decision,
                        struct buffer *buffer)
{
	bool promise = decision->kind == DECISION_PROMISE || decision->kind == DECISION_WAIT;

	for (int64_t i = 0; i < decision->gpus.count; i++) {
		const int64_t *line = decision->gpus.at + i * LINE_WIDTH;
		if (promise)
			print_promised(sched, line, buffer);
		else
			why_decision_print_line(sched, decision, i, buffer);
	}
}

/* Victims of preemption are of the same tenant; of others only those who are
 * still known can be told apart. */
static void print_victims(const struct sched *sched, const struct decision_record *decision,
                          int64_t viewer, struct buffer *buffer)
{
	bool own = decision->kind == DECISION_PREEMPT || decision->kind == DECISION_SHARE;
	int64_t tenant_id = own ? decision->tenant_id : 0;

	for (int64_t i = 0; i < decision->victims.count; i++) {
		const int64_t *row = decision->victims.at + i * VICTIM_WIDTH;
		buffer_text(buffer, row[2] == VICTIM_MOVED       ? "moves "
		                    : row[2] == VICTIM_SUSPENDED ? "suspends "
		                                                 : "stops ");
		if (row[1] >= 0)
			buffer_print(buffer, "task %" PRId64 " of ", row[1]);
		text_job(buffer, sched, row[0], tenant_id, viewer);
		buffer_text(buffer, ", which loses ");
		text_gpu_time(buffer, row[3]);
		buffer_text(buffer, "\n");
	}
}

/* What goes, and what was compared to find that it loses least. */
static void print_evicted(const struct sched *sched, const struct decision_record *decision,
                          int64_t viewer, struct buffer *buffer)
{
	for (int64_t i = 0; i < decision->evicted.count; i++) {
		const int64_t *row = decision->evicted.at + i * EVICTED_WIDTH;
		buffer_text(buffer, "evicts ");
		print_model(sched, row[EVICTED_MODEL], row[EVICTED_SLOT], viewer, buffer);
		buffer_print(buffer, ": %" PRId64 " MiB, idle for ", row[EVICTED_MIB]);
		duration_print_hours(buffer, row[EVICTED_IDLE_MS]);
		buffer_text(buffer, ", loading it again takes about ");
		duration_print_hours(buffer, row[EVICTED_RELOAD_MS]);
		buffer_text(buffer, "\n");
	}
}

static void print_comparison(const struct decision_record *decision, struct buffer *buffer)
{
	if (decision->wait_gpu_ms == 0 && decision->lost_gpu_ms == 0)
		return;
	if (decision->kind == DECISION_EVICTED) {
		buffer_text(buffer, "it loses ");
	} else if (decision->kind == DECISION_AWAITED) {
		buffer_text(buffer, "stopping it now would lose ");
	} else {
		if (decision->wait_gpu_ms > 0) {
			buffer_text(buffer, "waiting for them to end would cost ");
			text_gpu_time(buffer, decision->wait_gpu_ms);
		} else {
			buffer_text(buffer, "when they would end is not known");
		}
		buffer_text(buffer, ", stopping them loses ");
	}
	text_gpu_time(buffer, decision->lost_gpu_ms);
	buffer_text(buffer, "\n");
}

static void print_until(const struct decision_record *decision, struct buffer *buffer)
{
	if (decision->until_ms == 0)
		return;
	if (decision->kind == DECISION_PROMISE)
		buffer_text(buffer, "expected start: ");
	else if (decision->kind == DECISION_WAIT)
		buffer_text(buffer, "they are expected to have ended by ");
	else if (decision->kind == DECISION_AWAITED)
		buffer_text(buffer, "it is expected to have ended by ");
	else if (decision->kind == DECISION_FAIL)
		buffer_text(buffer, "not tried again before ");
	else
		buffer_text(buffer, "the claim expires at ");
	calendar_print(buffer, decision->until_ms);
	buffer_text(buffer, "\n");
}

/* What the score has to do with the model of the GPUs. */
static void print_premium(const struct decision_record *decision, struct buffer *buffer)
{
	if (decision->premium_milli > 0)
		buffer_print(buffer,
		             "in the score, free GPUs of this model are worth %" PRId64 ".%" PRId64
		             "%% more, for the jobs that insist on it\n",
		             decision->premium_milli / 10, decision->premium_milli % 10);
}

void why_print_decision(struct sched *sched, const struct decision_record *decision, int64_t viewer,
                        struct buffer *buffer)
{
	print_headline(sched, decision, viewer, buffer);
	print_lines(sched, decision, buffer);
	if (decision->candidates > 0) {
		text_count(buffer, decision->candidates, "node");
		buffer_print(buffer, " could take it; %s\n",
		             decision->candidates == 1 ? "it went there"
		                                       : "it went where the policy prefers");
	}
	print_premium(decision, buffer);
	print_victims(sched, decision, viewer, buffer);
	print_evicted(sched, decision, viewer, buffer);
	print_comparison(decision, buffer);
	if (decision->message && *decision->message)
		buffer_print(buffer, "the reason: %s\n", decision->message);
	print_until(decision, buffer);
	text_refusals(buffer, sched, decision->refusals.at, decision->refusals.count, true, false);
}
