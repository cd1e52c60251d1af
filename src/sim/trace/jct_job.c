/* jct_job.c - the jobs of a run: submitted, started, stopped, ended */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "sim/trace/jct_run.h"

#define PRIORITY_HIGH 1000
#define URGENT_EACH 5
#define ROOM_MS 60000 /* to make room on a real node: grace period, and start of the other */
/* Of 20 GiB on each GPU, at 2 GiB/s out and 5.5 GiB/s in. */
#define OUT_MS 10000
#define IN_MS 3637

static int64_t gpu_ms(const struct philly_job *job)
{
	return job->duration_ms * job->gpus;
}

/* The least GPU time is the highest priority, in steps of a GPU second. */
static int64_t priority_of(const struct jct *jct, const struct philly_job *job)
{
	if (jct->policy->kind == JCT_SHORTEST)
		return INT32_MAX - min64(gpu_ms(job) / 1000, INT32_MAX);
	if (jct->policy->kind == JCT_URGENT)
		return jct->submitted % URGENT_EACH == 0 ? PRIORITY_HIGH : PRIORITY_LOW;
	return jct->policy->kind == JCT_LEVELS ? PRIORITY_HIGH : PRIORITY_LOW;
}

static int64_t nodes_of(const struct jct *jct, int64_t gpus, int64_t tasks)
{
	int64_t each = jct->world->gpus / (gpus / tasks);

	return (tasks + each - 1) / each;
}

/* Tasks that are all alike, on as few nodes as possible, and as few as possible. */
static int32_t tasks_of(const struct jct *jct, int64_t gpus)
{
	int64_t best = gpus;

	for (int64_t tasks = gpus - 1; tasks * jct->world->gpus >= gpus; tasks--)
		if (gpus % tasks == 0 && nodes_of(jct, gpus, tasks) <= nodes_of(jct, gpus, best))
			best = tasks;
	return (int32_t)best;
}

static double uniform(uint64_t *random)
{
	return ((double)random_below(random, UINT64_C(1) << 52) + 0.5) /
	       (double)(UINT64_C(1) << 52);
}

/* As its owner would estimate it; 0: not at all. */
static int64_t estimate_of(struct jct *jct, const struct philly_job *job)
{
	double normal = sqrt(-2 * log(uniform(&jct->random)));

	if (jct->policy->kind != JCT_ESTIMATE)
		return 0;
	normal *= cos(6.283185307179586 * uniform(&jct->random));
	return max64(llround((double)job->duration_ms * exp(normal)), 1);
}

bool jct_submit(struct jct *jct, struct error *error)
{
	const struct philly_job *job = &jct->philly->jobs[jct->submitted];
	struct run_job *run = &jct->jobs[jct->submitted];
	struct command command = { .kind = COMMAND_SUBMIT };

	run->tasks = tasks_of(jct, job->gpus);
	run->left_ms = job->duration_ms;
	run->wait_ms = job->submit_ms;
	run->reservations = memory_zero((size_t)run->tasks, sizeof(*run->reservations));
	command.submit.job = (struct job_record){
		.tenant_id = jct->tenant_ids[job->cluster],
		.name = job->name ? job->name : "job",
		.user = job->user ? job->user : "",
		.max_runtime_ms = job->limit_ms,
		.payload = "",
		.priority = priority_of(jct, job),
		.gpu_kind = GPU_WHOLE,
		.gpu_count = (int32_t)(job->gpus / run->tasks),
		.tasks = run->tasks,
		.min_available = run->tasks,
		.preemptible = true,
		.movable = true,
		.estimate_ms = estimate_of(jct, job),
		.gpu_models = "",
		.node_labels = "",
		.idempotency_key = "",
	};
	jct->submitted++;
	return jct_send(jct, &command, error);
}

static int64_t cost_of(const struct jct *jct, int64_t gpus)
{
	if (jct->world->cost_ms >= 0)
		return jct->world->cost_ms;
	return gpus == 1 ? 7000 : gpus <= jct->world->gpus ? 30000 : 60000;
}

size_t jct_place_of(const struct jct *jct, const struct run_job *run)
{
	return (size_t)(run - jct->jobs);
}

static void judge_promise(struct jct *jct, struct run_job *run)
{
	struct jct_promises *promises = &jct->result->promises;

	if (run->promised_ms == 0)
		return;
	promises->given++;
	promises->kept += jct->now_ms <= run->promised_ms;
	promises->likely += jct->now_ms <= run->likely_ms;
	promises->wait_ms += jct->now_ms - run->told_ms;
	promises->ahead_ms += run->promised_ms - run->told_ms;
	run->promised_ms = 0;
}

/* All of its tasks run from now on. */
static void jct_go_on(struct jct *jct, struct run_job *run)
{
	run->runs = true;
	judge_promise(jct, run);
	run->start_ms = jct->now_ms + run->cost_ms;
	jct->running[jct->running_count++] = (int32_t)jct_place_of(jct, run);
	jct->result->longest_wait_ms =
	    max64(jct->result->longest_wait_ms, jct->now_ms - run->wait_ms);
}

/* It does not run any more, and has done what it did. */
static void pause(struct jct *jct, struct run_job *run)
{
	const struct philly_job *job = &jct->philly->jobs[jct_place_of(jct, run)];
	int64_t did_ms = max64(jct->now_ms - run->start_ms, 0);
	size_t at = 0;

	run->runs = false;
	run->left_ms -= did_ms;
	run->had_ms += did_ms * job->gpus;
	run->wait_ms = jct->now_ms;
	jct->result->served_ms +=
	    max64(min64(jct->now_ms, jct->last_submit_ms) - run->start_ms, 0) * job->gpus;
	usage_add(&jct->result->usage, job->cluster, run->start_ms, jct->now_ms, job->gpus);
	while (jct->running[at] != (int32_t)jct_place_of(jct, run))
		at++;
	jct->running[at] = jct->running[--jct->running_count];
}

static bool tell_task(struct jct *jct, enum command_kind kind, int64_t reservation_id,
                      int64_t took_ms, struct error *error)
{
	struct command command = { .kind = kind };

	command.task.reservation_id = reservation_id;
	command.task.message = "";
	command.task.ago_ms = took_ms;
	command.task.released = true;
	return jct_send(jct, &command, error);
}

static void end_move(struct jct *jct, struct run_job *run)
{
	size_t at = 0;

	while (jct->moving[at] != (int32_t)jct_place_of(jct, run))
		at++;
	jct->moving[at] = jct->moving[--jct->moving_count];
	run->moved_ms = 0;
}

static int64_t move_ms(const struct jct *jct, const struct run_job *run)
{
	int64_t gpus = jct->philly->jobs[jct_place_of(jct, run)].gpus;

	return (run->leaves ? OUT_MS : IN_MS) * (jct->policy->kind == JCT_PARALLEL ? 1 : gpus);
}

/* It stops at once, or runs once it is back. What it has done by then is not lost, whatever
 * becomes of it. */
static bool begin_move(struct jct *jct, const struct told *told, struct error *error)
{
	struct run_job *run = &jct->jobs[told->job_id - jct->first_id];
	int64_t gpus = jct->philly->jobs[jct_place_of(jct, run)].gpus;

	run->leaves = told->kind == EFFECT_SUSPEND;
	run->moved_ms = jct->now_ms + move_ms(jct, run);
	jct->moving[jct->moving_count++] = (int32_t)jct_place_of(jct, run);
	jct->result->lost_ms += move_ms(jct, run) * gpus;
	if (!run->leaves)
		return true;
	run->cost_ms = run->runs ? max64(run->start_ms - jct->now_ms, 0) : 0;
	pause(jct, run);
	jct->result->preemptions++;
	jct->result->suspends++;
	return tell_task(jct, COMMAND_TASK_CHECKPOINT, told->reservation_id, 0, error);
}

bool jct_moved(struct jct *jct, struct run_job *run, struct error *error)
{
	enum command_kind kind = run->leaves ? COMMAND_TASK_SUSPENDED : COMMAND_TASK_RESUMED;

	INVARIANT(run->tasks == 1 && run->moved_ms > 0);
	end_move(jct, run);
	if (!run->leaves)
		jct_go_on(jct, run);
	return tell_task(jct, kind, run->reservations[0], move_ms(jct, run), error);
}

/* All of it stops, and starts again at a cost. */
static void stop_run(struct jct *jct, struct run_job *run)
{
	int64_t gpus = jct->philly->jobs[jct_place_of(jct, run)].gpus;

	if (run->moved_ms > 0)
		end_move(jct, run);
	if (run->runs)
		pause(jct, run);
	run->cost_ms = cost_of(jct, gpus);
	jct->result->lost_ms += run->cost_ms * gpus;
	jct->result->preemptions++;
	jct->result->pointless += run->left_ms <= ROOM_MS;
}

/* The node does what it is told, at once, and says so. */
static bool obey(struct jct *jct, const struct told *told, struct error *error)
{
	struct run_job *run;

	if (told->kind == EFFECT_SUSPEND || told->kind == EFFECT_RESUME)
		return begin_move(jct, told, error);
	if (told->kind == EFFECT_START) {
		run = &jct->jobs[told->job_id - jct->first_id];
		run->reservations[told->task] = told->reservation_id;
		map_put(&jct->by_reservation, told->reservation_id, run);
		if (++run->running == run->tasks)
			jct_go_on(jct, run);
		return tell_task(jct, COMMAND_TASK_STARTED, told->reservation_id, 0, error);
	}
	run = map_remove(&jct->by_reservation, told->reservation_id);
	if (!run) /* it ended by itself */
		return true;
	if (run->runs || run->tasks == 1)
		stop_run(jct, run);
	run->running--;
	for (int32_t i = 0; i < run->tasks; i++)
		if (run->reservations[i] == told->reservation_id)
			run->reservations[i] = 0;
	return tell_task(jct, COMMAND_MEMORY_RELEASED, told->reservation_id, 0, error);
}

bool jct_obey(struct jct *jct, struct error *error)
{
	for (size_t i = 0; i < jct->told_count; i++) {
		struct told told = jct->told[i];
		if (!obey(jct, &told, error))
			return false;
	}
	jct->told_count = 0;
	return true;
}

bool jct_end_job(struct jct *jct, struct run_job *run, struct error *error)
{
	size_t place = jct_place_of(jct, run);

	pause(jct, run);
	jct->result->completion_ms[place] = jct->now_ms - jct->philly->jobs[place].submit_ms;
	jct->ended++;
	for (int32_t i = 0; i < run->tasks; i++) {
		struct command command = { .kind = COMMAND_TASK_EXITED };
		command.task.reservation_id = run->reservations[i];
		command.task.released = true;
		command.task.message = "";
		map_remove(&jct->by_reservation, run->reservations[i]);
		if (!jct_send(jct, &command, error))
			return false;
	}
	free(run->reservations);
	run->reservations = NULL;
	return true;
}
