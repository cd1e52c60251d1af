/* suspend.c - jobs whose GPU memory is in host memory for a while */
#include "core/queue/suspend.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/queue/task_local.h"
#include "core/state.h"

/* What moving 1 GiB takes where nothing is known of a node, as measured on an H200. */
#define SUSPEND_MS_PER_GIB 500
#define PATIENCE_TIMES 8 /* as long as usual */
#define RESUME_MS_PER_GIB 182
#define LEARN_FROM_MIB 1024 /* less tells nothing about the speed */
#define LEARNED_MOST_MS 60000
#define MIB_PER_GIB 1024

struct reservation *suspend_reservation(const struct job *job)
{
	return job->r.tasks == 1 ? job->tasks[0].reservation : NULL;
}

static int64_t trial_id(int64_t program, const char *gpu_model)
{
	uint64_t hash = hash_number((uint64_t)program) ^ hash_bytes(gpu_model, strlen(gpu_model));

	return (int64_t)(hash & INT64_MAX) | 1;
}

static struct trial *trial_of(const struct sched *sched, const struct reservation *reservation)
{
	const struct job *job = reservation->job;
	const char *model = reservation->parts[0].gpu->r.model;

	if (job->r.program == 0)
		return NULL;
	struct trial *trial = map_get(&sched->trials, trial_id(job->r.program, model));
	return trial && trial->r.program == job->r.program && strcmp(trial->r.gpu_model, model) == 0
	           ? trial
	           : NULL;
}

static struct trial *trial_add(struct sched *sched, const struct trial_record *record)
{
	struct trial *trial = NEW(struct trial);

	trial->r = *record;
	trial->gpu_model = memory_text(record->gpu_model);
	trial->r.gpu_model = trial->gpu_model;
	map_put(&sched->trials, trial->r.id, trial);
	return trial;
}

bool trial_load(struct sched *sched, const struct trial_record *record, struct error *error)
{
	if (record->id <= 0 || record->done < 0 || record->lost < 0 ||
	    map_get(&sched->trials, record->id))
		return error_set(error, ERROR_CORRUPT, "trial %lld cannot be",
		                 (long long)record->id);
	trial_add(sched, record);
	return true;
}

void trials_free(struct sched *sched)
{
	for (size_t i = 0; i < sched->trials.capacity; i++) {
		struct trial *trial = sched->trials.entries[i].value;
		if (trial)
			free(trial->gpu_model);
		free(trial);
	}
	map_free(&sched->trials);
}

/* Two programs with one hash: the first one's experience stays. */
static void trial_note(struct sched *sched, const struct reservation *reservation, bool lost)
{
	struct trial *trial = trial_of(sched, reservation);
	const char *model = reservation->parts[0].gpu->r.model;
	int64_t program = reservation->job->r.program, id = trial_id(program, model);

	if (program == 0 || (!trial && map_get(&sched->trials, id)))
		return;
	if (!trial)
		trial = trial_add(sched, &(struct trial_record){
					     .id = id, .program = program, .gpu_model = model });
	trial->r.done += !lost;
	trial->r.lost += lost;
	effects_put(sched->effects, RECORD_TRIAL, &trial->r);
}

static bool refuse_gang(const struct job *job, struct error *error)
{
	return error_set(error, ERROR_CONFLICT,
	                 "job-%lld is a gang: its parts are not known to survive being suspended "
	                 "together",
	                 (long long)job->r.id);
}

/* What the settings say holds for jobs that do not say more. */
static enum suspend_consent consent_of(const struct sched *sched, const struct job *job)
{
	int32_t own = job->r.suspend;

	return (enum suspend_consent)(own == SUSPEND_AUTO ? sched->config.suspend : own);
}

bool suspend_permitted(const struct sched *sched, const struct job *job, bool asked,
                       struct error *error)
{
	const struct reservation *reservation = suspend_reservation(job);
	enum suspend_consent consent = consent_of(sched, job);

	if (job->r.tasks > 1 || job->r.split_gpus > 0)
		return refuse_gang(job, error);
	if (!reservation || reservation->phase != PHASE_LIVE)
		return error_set(error, ERROR_CONFLICT, "job-%lld is not running",
		                 (long long)job->r.id);
	if (reservation->part_count == 0)
		return error_set(error, ERROR_CONFLICT, "job-%lld has no GPU memory",
		                 (long long)job->r.id);
	if (job->request.compute > 0)
		return error_set(
		    error, ERROR_CONFLICT,
		    "job-%lld has a share of compute: the driver does not suspend clients "
		    "of MPS",
		    (long long)job->r.id);
	if (consent == SUSPEND_NEVER)
		return error_set(
		    error, ERROR_CONFLICT,
		    "job-%lld may not be suspended: its suspend, or the setting, is never",
		    (long long)job->r.id);
	const struct trial *trial = trial_of(sched, reservation);
	if (consent == SUSPEND_AUTO && trial && trial->r.lost > 0)
		return error_set(error, ERROR_CONFLICT,
		                 "%lld jobs of the program of job-%lld were lost when they were "
		                 "suspended on %s",
		                 (long long)trial->r.lost, (long long)job->r.id,
		                 trial->r.gpu_model);
	if (asked || consent == SUSPEND_ALWAYS || (trial && trial->r.done > 0))
		return true;
	return error_set(error, ERROR_CONFLICT,
	                 "no job of the program of job-%lld was suspended and resumed on %s yet",
	                 (long long)job->r.id, reservation->parts[0].gpu->r.model);
}

int64_t suspend_takes_ms(const struct reservation *reservation, bool back)
{
	const struct node_record *node = &reservation->node->r;
	int64_t learned_ms = back ? node->resume_ms : node->suspend_ms;
	int64_t each_ms = learned_ms > 0 ? learned_ms
	                  : back         ? RESUME_MS_PER_GIB
	                                 : SUSPEND_MS_PER_GIB;
	int64_t mib = reservation_copy_bytes(reservation) >> 20;

	return muldiv_up(mib, each_ms, MIB_PER_GIB);
}

int64_t suspend_patience_ms(const struct reservation *reservation)
{
	return muldiv_up(reservation->copy_bytes >> 20, PATIENCE_TIMES * SUSPEND_MS_PER_GIB,
	                 MIB_PER_GIB);
}

int64_t suspend_cost(const struct job *job)
{
	const struct reservation *reservation = suspend_reservation(job);
	int64_t takes_ms =
	    suspend_takes_ms(reservation, false) + suspend_takes_ms(reservation, true);

	INVARIANT(reservation);
	return muldiv_up(reservation_asks(reservation).of[AMOUNT_GPU], takes_ms, 1);
}

/* A weighted mean, the last one counting a quarter. */
static void learn_speed(struct sched *sched, const struct reservation *reservation, bool back,
                        int64_t took_ms)
{
	struct node *node = reservation->node;
	int64_t *learned = back ? &node->r.resume_ms : &node->r.suspend_ms;
	int64_t mib = 0;

	for (int i = 0; i < reservation->part_count; i++)
		mib += reservation->parts[i].mib;
	if (mib < LEARN_FROM_MIB || took_ms <= 0 || took_ms > TIME_MS_MAX)
		return;
	int64_t each = min64(max64(muldiv_down(took_ms, MIB_PER_GIB, mib), 1), LEARNED_MOST_MS);
	int64_t now = *learned == 0 ? each : (3 * *learned + each) / 4;
	if (now == *learned)
		return;
	*learned = now;
	sched_dirty_node(sched, node);
}

static void order_move(struct sched *sched, const struct reservation *reservation)
{
	INVARIANT(reservation->job != NULL && sched->effects != NULL);
	bool back = reservation->phase == PHASE_RESUMING;
	task_send(sched, back ? EFFECT_RESUME : EFFECT_SUSPEND, reservation);
}

void order_suspend(struct sched *sched, const struct reservation *reservation)
{
	INVARIANT(reservation->phase == PHASE_SUSPENDING);
	order_move(sched, reservation);
}

void order_resume(struct sched *sched, const struct reservation *reservation)
{
	INVARIANT(reservation->phase == PHASE_RESUMING);
	order_move(sched, reservation);
}

void job_suspends(struct sched *sched, struct reservation *reservation)
{
	struct job *job = reservation->job;

	INVARIANT(reservation->phase == PHASE_SUSPENDING && !sched->plan.open);
	job->s.suspended_ms = max64(sched_now(sched), 1);
	job->s.suspends++;
	sched_dirty_job(sched, job);
	sched_dirty_reservation(sched, reservation);
	task_set_state(sched, job, reservation->task, TASK_SUSPENDING);
	reservation_watch(sched, reservation);
	order_suspend(sched, reservation);
}

void job_resumes(struct sched *sched, struct reservation *reservation)
{
	struct job *job = reservation->job;

	INVARIANT(reservation->phase == PHASE_RESUMING && !sched->plan.open);
	sched_dirty_reservation(sched, reservation);
	task_set_state(sched, job, reservation->task, TASK_RESUMING);
	order_resume(sched, reservation);
	job_settle(sched, job);
}

bool job_suspend(struct sched *sched, struct job *job, struct error *error)
{
	struct reservation *reservation = suspend_reservation(job);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (reservation && phase_is_suspended(reservation->phase) && !job->s.parked) {
		job->s.parked = true; /* it would have resumed by itself */
		sched_dirty_job(sched, job);
		return true;
	}
	if (reservation && phase_is_suspended(reservation->phase))
		return error_set(error, ERROR_CONFLICT, "job-%lld is suspended already",
		                 (long long)job->r.id);
	if (!suspend_permitted(sched, job, true, error))
		return false;
	INVARIANT(reservation != NULL);
	sched_prepare(sched);
	plan_begin(&sched->ledger);
	if (!plan_suspend(&sched->ledger, reservation, error)) {
		plan_abandon(&sched->ledger);
		return false;
	}
	sched_commit(sched);
	job->s.parked = true;
	job_suspends(sched, reservation);
	job_settle(sched, job);
	return true;
}

bool job_resume(struct sched *sched, struct job *job, struct error *error)
{
	const struct reservation *reservation = suspend_reservation(job);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!reservation || !phase_is_suspended(reservation->phase))
		return error_set(error, ERROR_CONFLICT, "job-%lld is not suspended",
		                 (long long)job->r.id);
	if (!job->s.parked)
		return error_set(error, ERROR_CONFLICT,
		                 "job-%lld resumes by itself as soon as its GPUs are free",
		                 (long long)job->r.id);
	job->s.parked = false;
	sched_dirty_job(sched, job);
	return true;
}

/* It runs on, as if nothing had been. */
static void runs_again(struct sched *sched, struct reservation *reservation)
{
	struct job *job = reservation->job;

	ledger_copy(&sched->ledger, reservation, PHASE_LIVE, 0);
	for (int i = 0; i < reservation->part_count; i++)
		node_report_over(sched, reservation->parts[i].gpu);
	reservation->since_ms = sched_now(sched);
	job->s.parked = false;
	task_set_state(sched, job, reservation->task, TASK_RUNNING);
	reservation_watch(sched, reservation);
	sched_dirty_reservation(sched, reservation);
}

static void say(struct sched *sched, const struct reservation *reservation, const char *what,
                const char *message)
{
	struct buffer text = { 0 };

	buffer_print(&text, "%s%s%s", what, message && *message ? ": " : "",
	             message ? message : "");
	job_set_message(sched, reservation->job, text.data);
	buffer_free(&text);
}

bool task_suspended(struct sched *sched, struct reservation *reservation,
                    const struct task_moved *moved, struct error *error)
{
	struct job *job = reservation->job;

	INVARIANT(job != NULL && reservation->entered);
	if (reservation->phase == PHASE_SUSPENDED || reservation->phase == PHASE_WAKING)
		return true;
	if (reservation->phase != PHASE_SUSPENDING)
		return error_set(error, ERROR_CONFLICT, "reservation %lld is not being suspended",
		                 (long long)reservation->id);
	if (!moved->done) {
		runs_again(sched, reservation);
		say(sched, reservation, "it could not be suspended", moved->message);
		job_settle(sched, job);
		return true;
	}
	for (int i = 0; i < reservation->part_count; i++)
		ledger_measure(&sched->ledger, reservation, reservation->parts[i].gpu, 0);
	ledger_phase(&sched->ledger, reservation, PHASE_SUSPENDED, false);
	for (int i = 0; i < reservation->part_count; i++)
		node_report_over(sched, reservation->parts[i].gpu);
	reservation->since_ms = sched_now(sched);
	reservation_watch(sched, reservation);
	learn_speed(sched, reservation, false, moved->took_ms);
	sched_dirty_reservation(sched, reservation);
	task_set_state(sched, job, reservation->task, TASK_SUSPENDED);
	job_settle(sched, job);
	return true;
}

bool task_resumed(struct sched *sched, struct reservation *reservation,
                  const struct task_moved *moved, struct error *error)
{
	struct job *job = reservation->job;

	INVARIANT(job != NULL && reservation->entered);
	if (reservation->phase == PHASE_LIVE)
		return true;
	if (reservation->phase != PHASE_RESUMING)
		return error_set(error, ERROR_CONFLICT, "reservation %lld is not being resumed",
		                 (long long)reservation->id);
	if (!moved->done) {
		ledger_phase(&sched->ledger, reservation, PHASE_SUSPENDED, false);
		reservation->since_ms = sched_now(sched);
		job->s.not_before_ms = sched_now(sched) + sched->config.refuse_backoff_ms;
		sched_dirty_reservation(sched, reservation);
		task_set_state(sched, job, reservation->task, TASK_SUSPENDED);
		say(sched, reservation, "its node did not resume it", moved->message);
		job_settle(sched, job);
		return true;
	}
	learn_speed(sched, reservation, true, moved->took_ms);
	trial_note(sched, reservation, false);
	runs_again(sched, reservation);
	job_set_message(sched, job, "");
	job_settle(sched, job);
	return true;
}

void suspend_stop(struct sched *sched, struct reservation *reservation, const char *reason)
{
	struct job *job = reservation->job;

	INVARIANT(!sched->plan.open && phase_is_suspended(reservation->phase));
	say(sched, reservation, "it starts again", reason);
	job_stop(sched, job);
	job_settle(sched, job);
	sched->pass.change_seq++;
	sched->pass.budget--;
}

void suspend_lost(struct sched *sched, const struct reservation *reservation)
{
	trial_note(sched, reservation, true);
	say(sched, reservation, "it was lost when it was suspended, and starts again", NULL);
}
