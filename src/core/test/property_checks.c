/* property_checks.c - effects and jobs: each step follows from the one before */
#include "core/test/property_checks.h"

#include <stdlib.h>

#include "base/error.h"

static bool is_over(const struct job_state_record *job)
{
	return job_state_is_final((enum job_state)job->state);
}

static void check_state_step(const struct keeper *keeper, const struct job_state_record *after)
{
	const struct job_state_record *before = keeper_find(keeper, RECORD_JOB_STATE, after->id, 0);

	if (!before && after->state != JOB_PENDING && after->state != JOB_CANCELLED)
		panic("job-%lld begins in state %d", (long long)after->id, after->state);
	if (before && is_over(before) && after->state != before->state)
		panic("job-%lld had ended in state %d and is in state %d", (long long)after->id,
		      before->state, after->state);
	if (before && after->preempted_count < before->preempted_count)
		panic("job-%lld forgets that it was preempted", (long long)after->id);
}

/* From which phase to which, and by which commands. */
static bool may_step(enum phase from, enum phase to, enum command_kind kind)
{
	if (from == to)
		return true;
	switch (to) {
	case PHASE_GRANTED:
		return from == PHASE_CLAIM && kind == COMMAND_PASS;
	case PHASE_LIVE:
		if (from == PHASE_SUSPENDING || from == PHASE_RESUMING)
			return kind == (from == PHASE_RESUMING ? COMMAND_TASK_RESUMED
			                                       : COMMAND_TASK_SUSPENDED);
		return from == PHASE_GRANTED &&
		       (kind == COMMAND_TASK_STARTED || kind == COMMAND_NODE_REPORT ||
		        kind == COMMAND_SLOT_LOADING || kind == COMMAND_SLOT_READY);
	case PHASE_RELEASING:
		return from != PHASE_CLAIM || kind == COMMAND_PASS;
	case PHASE_SUSPENDING:
		return from == PHASE_LIVE && (kind == COMMAND_SUSPEND || kind == COMMAND_PASS);
	case PHASE_SUSPENDED:
		return (from == PHASE_SUSPENDING && kind == COMMAND_TASK_SUSPENDED) ||
		       (from == PHASE_WAKING && kind == COMMAND_PASS) ||
		       (from == PHASE_RESUMING && kind == COMMAND_TASK_RESUMED);
	case PHASE_WAKING:
		return from == PHASE_SUSPENDED && kind == COMMAND_PASS;
	case PHASE_RESUMING:
		return (from == PHASE_SUSPENDED || from == PHASE_WAKING) && kind == COMMAND_PASS;
	default:
		return false;
	}
}

static bool same_parts(const struct rows *a, const struct rows *b)
{
	if (a->count != b->count)
		return false;
	for (int64_t i = 0; i < a->count; i++) {
		const int64_t *x = a->at + i * PART_WIDTH, *y = b->at + i * PART_WIDTH;
		if (x[PART_GPU] != y[PART_GPU] || x[PART_MIB] != y[PART_MIB] ||
		    x[PART_SHARE] != y[PART_SHARE] || x[PART_WHOLE] != y[PART_WHOLE])
			return false;
	}
	return true;
}

static void check_reservation_step(const struct keeper *keeper, const struct command *command,
                                   const struct reservation_record *after)
{
	const struct reservation_record *before =
	    keeper_find(keeper, RECORD_RESERVATION, after->id, 0);

	if (!before) { /* one that was started and then made way in the same pass is releasing */
		bool adopted = after->job_id == 0 && command->kind == COMMAND_NODE_REPORT &&
		               after->phase != PHASE_CLAIM && after->phase != PHASE_GRANTED;
		if (!adopted && (command->kind != COMMAND_PASS || after->phase == PHASE_LIVE))
			panic("reservation %lld begins in phase %d", (long long)after->id,
			      after->phase);
		return;
	}
	if (!may_step((enum phase)before->phase, (enum phase)after->phase, command->kind))
		panic("reservation %lld goes from phase %d to %d", (long long)after->id,
		      before->phase, after->phase);
	if (before->job_id != after->job_id || before->task != after->task ||
	    before->model_id != after->model_id || before->node_id != after->node_id ||
	    before->cpu_milli != after->cpu_milli || before->host_bytes != after->host_bytes ||
	    !same_parts(&before->parts, &after->parts))
		panic("reservation %lld is not what it was", (long long)after->id);
}

/* A slot that waits for another to be loaded: its node does not know of it. */
static bool was_not_ordered(const struct keeper *keeper, int64_t id)
{
	const struct slot_record *slot = keeper_find(keeper, RECORD_SLOT, id, 0);

	return slot && slot->state == SLOT_PLACED;
}

/* Memory counts until the node has said that it is back, or is given up. */
static void check_reservation_end(const struct keeper *keeper, const struct command *command,
                                  int64_t id)
{
	const struct reservation_record *before = keeper_find(keeper, RECORD_RESERVATION, id, 0);

	if (!before || before->phase == PHASE_CLAIM || was_not_ordered(keeper, id))
		return;
	switch (command->kind) {
	case COMMAND_NODE_REPORT:
	case COMMAND_NODE_STATE:
	case COMMAND_NODE_DEAD:
		return;
	case COMMAND_TASK_REFUSED:
	case COMMAND_MEMORY_RELEASED:
		if (command->task.reservation_id == id)
			return;
		break;
	case COMMAND_TASK_EXITED:
		if (command->task.reservation_id == id && command->task.released)
			return;
		break;
	case COMMAND_SLOT_EXITED:
		if (command->slot.reservation_id == id && command->slot.released)
			return;
		break;
	default:
		break;
	}
	panic("reservation %lld is gone, and nobody said that its memory is back", (long long)id);
}

static void check_put(const struct keeper *keeper, const struct command *command,
                      const struct effect *effect)
{
	if (effect->record_kind == RECORD_JOB_STATE)
		check_state_step(keeper, effect->record);
	else if (effect->record_kind == RECORD_RESERVATION)
		check_reservation_step(keeper, command, effect->record);
	else if (effect->record_kind == RECORD_META) {
		const struct meta_record *after = effect->record;
		const struct meta_record *before = keeper_find(keeper, RECORD_META, 1, 0);
		bool back = before && after->now_ms < before->now_ms;
		if ((back && command->kind != COMMAND_CLOCK) ||
		    (before && after->term < before->term))
			panic("time or term go back");
	}
}

static void check_gone(const struct keeper *keeper, const struct command *command,
                       const struct effect *effect)
{
	const struct job_state_record *job;

	switch (effect->record_kind) {
	case RECORD_RESERVATION:
		check_reservation_end(keeper, command, effect->key.first);
		break;
	case RECORD_JOB:
	case RECORD_JOB_STATE:
	case RECORD_TASK:
		job = keeper_find(keeper, RECORD_JOB_STATE, effect->key.first, 0);
		if (effect->kind != EFFECT_ARCHIVE || !job || !is_over(job))
			panic("job-%lld is lost", (long long)effect->key.first);
		break;
	default:
		break;
	}
}

void check_effects(const struct keeper *keeper, const struct command *command,
                   const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind == EFFECT_PUT)
			check_put(keeper, command, effect);
		else if (effect->kind == EFFECT_DELETE || effect->kind == EFFECT_ARCHIVE)
			check_gone(keeper, command, effect);
		else if (effect->kind == EFFECT_MORE && command->kind != COMMAND_PASS)
			panic("there is more to decide, and nothing was to be decided");
	}
}

/* What a job has, by its reservations and its tasks. */
struct tally {
	int64_t claims, held, live, releasing, suspended, ended, tasks;
	int64_t gpus; /* claimed, held and live */
};

static struct tally *tally_of(const struct keeper *keeper, struct tally *tallies, int64_t job_id)
{
	int64_t place = keeper_place(keeper, RECORD_JOB_STATE, job_id, 0);

	if (place < 0)
		panic("job-%lld is not kept, and something of it is", (long long)job_id);
	return &tallies[place];
}

static void tally_reservation(const struct keeper *keeper, struct tally *tallies,
                              const struct reservation_record *reservation)
{
	struct tally *tally = tally_of(keeper, tallies, reservation->job_id);
	const struct task_record *task =
	    keeper_find(keeper, RECORD_TASK, reservation->job_id, reservation->task);
	bool claim = reservation->phase == PHASE_CLAIM;

	if (!task || (claim ? task->claim_id : task->reservation_id) != reservation->id)
		panic("task %lld of job-%lld does not know of its reservation %lld",
		      (long long)reservation->task, (long long)reservation->job_id,
		      (long long)reservation->id);
	tally->claims += claim;
	tally->held += reservation->phase == PHASE_GRANTED;
	tally->live += reservation->phase == PHASE_LIVE;
	tally->releasing += reservation->phase == PHASE_RELEASING;
	tally->suspended += phase_is_suspended((enum phase)reservation->phase);
	tally->gpus += reservation->phase == PHASE_RELEASING ? 0 : reservation->parts.count;
}

/* Whether a task may be in its state with a right in this phase; -1: with none. */
static bool task_fits(enum task_state state, int phase)
{
	switch (state) {
	case TASK_PENDING:
		return phase == -1;
	case TASK_PLACED:
		return phase == PHASE_GRANTED;
	case TASK_RUNNING:
		return phase == PHASE_LIVE;
	case TASK_STOPPING:
		return phase == PHASE_RELEASING;
	case TASK_SUSPENDING:
		return phase == PHASE_SUSPENDING;
	case TASK_SUSPENDED:
		return phase == PHASE_SUSPENDED || phase == PHASE_WAKING;
	case TASK_RESUMING:
		return phase == PHASE_RESUMING;
	default:
		return phase == PHASE_RELEASING || phase == -1;
	}
}

static void tally_task(const struct keeper *keeper, struct tally *tallies,
                       const struct task_record *task)
{
	struct tally *tally = tally_of(keeper, tallies, task->job_id);
	const struct reservation_record *right =
	    keeper_find(keeper, RECORD_RESERVATION, task->reservation_id, 0);
	const struct reservation_record *claim =
	    keeper_find(keeper, RECORD_RESERVATION, task->claim_id, 0);

	if ((task->reservation_id && !right) || (task->claim_id && !claim))
		panic("task %lld of job-%lld has a reservation that is not there",
		      (long long)task->place, (long long)task->job_id);
	if (!task_fits((enum task_state)task->state, right ? right->phase : -1))
		panic("task %lld of job-%lld is in state %d and its right in phase %d",
		      (long long)task->place, (long long)task->job_id, task->state,
		      right ? right->phase : -1);
	if (claim && right && right->phase != PHASE_RELEASING)
		panic("task %lld of job-%lld has a claim and runs", (long long)task->place,
		      (long long)task->job_id);
	tally->tasks++;
	tally->ended += task->state == TASK_ENDED && task->exit_code == 0;
}

static void check_gang(const struct job_record *job, const struct job_state_record *state,
                       const struct tally *tally)
{
	int64_t active = tally->claims + tally->held + tally->live + tally->suspended;

	if (active == 0 || state->short_since_ms > 0)
		return;
	if (job->split_gpus > 0 && tally->ended == 0 && tally->gpus != job->split_gpus)
		panic("job-%lld is split over %lld GPUs and has %lld", (long long)job->id,
		      (long long)job->split_gpus, (long long)tally->gpus);
	if (job->split_gpus > 0)
		return;
	if (active + tally->ended < job->min_available)
		panic("job-%lld has %lld claims, %lld held, %lld live, %lld ended: less than its "
		      "minimum of %lld",
		      (long long)job->id, (long long)tally->claims, (long long)tally->held,
		      (long long)tally->live, (long long)tally->ended,
		      (long long)job->min_available);
}

static void check_job(const struct keeper *keeper, const struct job_state_record *state,
                      const struct tally *tally, bool after_pass)
{
	const struct job_record *job = keeper_find(keeper, RECORD_JOB, state->id, 0);
	int64_t runs = tally->held + tally->live + tally->suspended, active = tally->claims + runs;

	if (!job)
		panic("job-%lld is not kept, but its state is", (long long)state->id);
	if (is_over(state) && active > 0)
		panic("job-%lld has ended, and has %lld claims and rights", (long long)job->id,
		      (long long)active);
	if (state->state == JOB_PENDING && active + tally->releasing > 0)
		panic("job-%lld is pending, and has reservations", (long long)job->id);
	if (state->state == JOB_RUNNING && tally->live == 0)
		panic("job-%lld is running, and nothing of it lives", (long long)job->id);
	if ((state->state == JOB_SUSPENDED) != (tally->suspended > 0) ||
	    (state->suspended_ms > 0) != (tally->suspended > 0) ||
	    (state->parked && tally->suspended == 0))
		panic("job-%lld is in state %d, and %lld of its tasks are suspended",
		      (long long)job->id, state->state, (long long)tally->suspended);
	if (state->held && runs > 0)
		panic("job-%lld is on hold, and runs", (long long)job->id);
	if (tally->tasks > job->tasks)
		panic("job-%lld has more tasks than it asked for", (long long)job->id);
	if (after_pass)
		check_gang(job, state, tally);
}

void check_jobs(const struct keeper *keeper, bool after_pass)
{
	size_t count = keeper_job_state_count(keeper);
	struct tally *tallies = memory_zero(count + 1, sizeof(*tallies));

	if (count != keeper_job_count(keeper))
		panic("%zu jobs are kept, and the states of %zu", keeper_job_count(keeper), count);
	for (size_t i = 0; i < keeper_reservation_count(keeper); i++)
		if (keeper_reservation(keeper, i)->job_id != 0)
			tally_reservation(keeper, tallies, keeper_reservation(keeper, i));
	for (size_t i = 0; i < keeper_task_count(keeper); i++)
		tally_task(keeper, tallies, keeper_task(keeper, i));
	for (size_t i = 0; i < count; i++)
		check_job(keeper, keeper_job_state(keeper, i), &tallies[i], after_pass);
	free(tallies);
}
