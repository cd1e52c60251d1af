/* jct.c - jobs of a trace arrive, share a cluster and end: how long they take */
#include "sim/trace/jct.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/number.h"
#include "core/sched.h"

#define GPU_MIB INT64_C(32000)
#define PASS_UNITS INT64_C(1000000)
#define LOOK_MS INT64_C(600000)       /* time sharing is looked at that often, at the least */
#define LEVEL_GPU_MS INT64_C(3600000) /* GPU time that the first of two levels has */
#define PRIORITY_HIGH 1000
#define PRIORITY_LOW 500
#define NEVER INT64_MAX

const struct jct_policy jct_policies[] = {
	{ "fifo", "in the order of arrival; nobody passes who waits", JCT_STRICT },
	{ "skip", "in that order, but what does not fit is passed", JCT_SKIP },
	{ "shortest", "least GPU time first, as an oracle tells", JCT_SHORTEST },
	{ "levels", "who had an hour of GPU time gives way to who had less", JCT_LEVELS },
	{ "attained", "the scheduler's time sharing by attained service", JCT_ATTAINED },
	{ "estimate", "the same, with estimates, half of them off by a factor of two",
	  JCT_ESTIMATE },
	{ "moves", "time sharing without estimates, and with consolidation", JCT_MOVES },
};
const int jct_policy_count = sizeof(jct_policies) / sizeof(jct_policies[0]);

const struct jct_policy *jct_policy(const char *name)
{
	if (strcmp(name, "ours") == 0)
		name = "attained";
	for (int i = 0; i < jct_policy_count; i++)
		if (strcmp(jct_policies[i].name, name) == 0)
			return &jct_policies[i];
	return NULL;
}

/* A job in the simulated world. */
struct run_job {
	int64_t left_ms;  /* that it still has to run */
	int64_t start_ms; /* when its work resumes, after the cost of the interruption */
	int64_t wait_ms;  /* since when it does not run */
	int64_t had_ms;   /* GPU time */
	int64_t cost_ms;  /* of its next start */
	int32_t tasks, running;
	int64_t *reservations; /* of its tasks, 0 where it has none */
	bool runs, low;
};

/* An order that the core gave. */
struct told {
	bool start;
	int64_t reservation_id, job_id, task;
};

struct jct {
	const struct philly *philly;
	const struct jct_world *world;
	const struct jct_policy *policy;
	struct jct_result *result;
	struct sched *sched;
	struct effects effects;
	struct run_job *jobs;
	struct map by_reservation; /* struct run_job */
	struct told *told;
	size_t told_count, told_capacity;
	int32_t *running; /* jobs that run, in no order that decides anything */
	size_t running_count;
	int64_t *tenant_ids; /* by virtual cluster */
	int64_t first_id;    /* of jobs, which are numbered in turn */
	int64_t now_ms, last_submit_ms;
	size_t arrived, submitted, ended;
	uint64_t random;
	bool more;
};

/* Sends it, and notes what is ordered. */
static bool jct_send(struct jct *jct, struct command *command, struct error *error)
{
	effects_clear(&jct->effects);
	command->now_ms = jct->now_ms;
	if (!sched_apply(jct->sched, command, &jct->effects, error))
		return false;
	for (size_t i = 0; i < jct->effects.count; i++) {
		const struct effect *effect = &jct->effects.at[i];
		jct->more = jct->more || effect->kind == EFFECT_MORE;
		if (effect->kind != EFFECT_START && effect->kind != EFFECT_STOP)
			continue;
		array_reserve(jct->told, jct->told_capacity, jct->told_count + 1);
		jct->told[jct->told_count++] =
		    (struct told){ effect->kind == EFFECT_START, effect->order.reservation_id,
			           effect->order.job_id, effect->order.task };
	}
	return true;
}

static bool shares(const struct jct *jct)
{
	enum jct_kind kind = jct->policy->kind;

	return kind == JCT_ATTAINED || kind == JCT_ESTIMATE || kind == JCT_MOVES;
}

static bool jct_configure(struct jct *jct, struct error *error)
{
	struct command command = { .kind = COMMAND_CONFIGURE };
	struct config_record config = config_default();

	if (shares(jct)) {
		config.time_sharing = SHARING_ATTAINED_SERVICE;
		config.move_any_job = jct->policy->kind == JCT_MOVES;
	} else {
		config.policy = POLICY_PACK;
		config.enable_preemption = jct->policy->kind == JCT_LEVELS;
		config.enable_consolidation = false;
		config.enable_backfill = false;
		config.promise_jobs = 0;
	}
	if (jct->policy->kind == JCT_SHORTEST || jct->policy->kind == JCT_LEVELS)
		config.ageing_per_minute = 0;
	command.configure = config;
	return jct_send(jct, &command, error);
}

/* With no quota, so that several share all of it evenly. */
static bool jct_put_tenant(struct jct *jct, const char *name, int64_t *tenant_id,
                           struct error *error)
{
	struct command command = { .kind = COMMAND_PUT_TENANT };

	command.tenant = (struct tenant_record){
		.name = name,
		.limit_gpu = UNLIMITED,
		.limit_cpu = UNLIMITED,
		.limit_host = UNLIMITED,
		.limit_gpu_memory = UNLIMITED,
		.limit_jobs = UNLIMITED,
		.weight = 1000,
		.can_preempt_others = true,
		.max_preemptions = UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
	};
	bool fine = jct_send(jct, &command, error);
	*tenant_id = jct->effects.reply_id;
	return fine;
}

/* Virtual clusters that there are at the least: one, even where a trace names none. */
static size_t cluster_count(const struct philly *philly)
{
	return philly->cluster_count > 0 ? philly->cluster_count : 1;
}

static bool put_tenants(struct jct *jct, struct error *error)
{
	size_t count = cluster_count(jct->philly);
	bool own = jct->world->tenants && jct->philly->cluster_count > 0;

	jct->tenant_ids = memory_zero(count, sizeof(*jct->tenant_ids));
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && !own)
			jct->tenant_ids[i] = jct->tenant_ids[0];
		else if (!jct_put_tenant(jct, own ? jct->philly->clusters[i] : "trace",
		                         &jct->tenant_ids[i], error))
			return false;
	}
	return true;
}

static bool jct_report_node(struct jct *jct, int64_t number, struct error *error)
{
	struct device devices[GPUS_PER_NODE_MAX];
	char uuids[GPUS_PER_NODE_MAX][48], name[32];

	snprintf(name, sizeof(name), "node-%04" PRId64, number);
	for (int64_t i = 0; i < jct->world->gpus; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%" PRId64 "-%" PRId64, number, i);
		devices[i] = (struct device){ .uuid = uuids[i],
			                      .model = "GPU",
			                      .mig_parent = "",
			                      .place = i,
			                      .capacity_mib = GPU_MIB,
			                      .healthy = true };
	}
	struct command command = { .kind = COMMAND_NODE_REPORT };
	command.report = (struct node_report_command){
		.name = name,
		.boot = "1",
		.zone = "",
		.rack = "",
		.labels = "",
		.cpu_milli = 64000,
		.host_bytes = INT64_C(1) << 38,
		.devices = devices,
		.device_count = jct->world->gpus,
		.snapshot = true,
	};
	return jct_send(jct, &command, error);
}

static bool jct_begin(struct jct *jct, struct error *error)
{
	struct command start = { .kind = COMMAND_START };

	jct->now_ms = jct->philly->jobs[0].submit_ms;
	jct->last_submit_ms = jct->philly->jobs[jct->philly->count - 1].submit_ms;
	jct->sched = sched_new();
	if (!jct_send(jct, &start, error) || !jct_configure(jct, error) || !put_tenants(jct, error))
		return false;
	jct->first_id = sched_meta(jct->sched)->last_job_id + 1;
	for (int64_t i = 0; i < jct->world->nodes; i++)
		if (!jct_report_node(jct, i, error))
			return false;
	return true;
}

static int64_t gpu_ms(const struct philly_job *job)
{
	return job->duration_ms * job->gpus;
}

/* The least GPU time is the highest priority, in steps of a GPU second. */
static int64_t priority_of(const struct jct *jct, const struct philly_job *job)
{
	if (jct->policy->kind == JCT_SHORTEST)
		return INT32_MAX - min64(gpu_ms(job) / 1000, INT32_MAX);
	return jct->policy->kind == JCT_LEVELS ? PRIORITY_HIGH : PRIORITY_LOW;
}

/* As few tasks as there must be nodes, all alike. */
static int32_t tasks_of(const struct jct *jct, int64_t gpus)
{
	int64_t tasks = (gpus + jct->world->gpus - 1) / jct->world->gpus;

	while (gpus % tasks != 0)
		tasks++;
	return (int32_t)tasks;
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

static bool jct_submit(struct jct *jct, struct error *error)
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
		.name = "job",
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

static size_t jct_place_of(const struct jct *jct, const struct run_job *run)
{
	return (size_t)(run - jct->jobs);
}

/* All of its tasks run from now on. */
static void jct_go_on(struct jct *jct, struct run_job *run)
{
	run->runs = true;
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

/* The node does what it is told, at once, and says so. */
static bool obey(struct jct *jct, const struct told *told, struct error *error)
{
	struct command command = { .kind = told->start ? COMMAND_TASK_STARTED
		                                       : COMMAND_MEMORY_RELEASED };
	struct run_job *run;

	command.task.reservation_id = told->reservation_id;
	command.task.message = "";
	if (told->start) {
		run = &jct->jobs[told->job_id - jct->first_id];
		run->reservations[told->task] = told->reservation_id;
		map_put(&jct->by_reservation, told->reservation_id, run);
		if (++run->running == run->tasks)
			jct_go_on(jct, run);
		return jct_send(jct, &command, error);
	}
	run = map_remove(&jct->by_reservation, told->reservation_id);
	if (!run) /* it ended by itself */
		return true;
	if (run->runs) {
		pause(jct, run);
		run->cost_ms = cost_of(jct, jct->philly->jobs[jct_place_of(jct, run)].gpus);
		jct->result->preemptions++;
	}
	run->running--;
	for (int32_t i = 0; i < run->tasks; i++)
		if (run->reservations[i] == told->reservation_id)
			run->reservations[i] = 0;
	return jct_send(jct, &command, error);
}

static bool obey_all(struct jct *jct, struct error *error)
{
	for (size_t i = 0; i < jct->told_count; i++) {
		struct told told = jct->told[i];
		if (!obey(jct, &told, error))
			return false;
	}
	jct->told_count = 0;
	return true;
}

/* In strict order, the next job is submitted only when nobody waits. */
static bool let_in(struct jct *jct, struct error *error)
{
	bool strict = jct->policy->kind == JCT_STRICT;

	while (jct->submitted < jct->arrived &&
	       !(strict && jct->submitted - jct->ended > jct->running_count))
		if (!jct_submit(jct, error))
			return false;
	return true;
}

/* Passes, and nodes that do what they are told, until nothing changes. */
static bool jct_decide(struct jct *jct, struct error *error)
{
	bool again = true;

	while (again) {
		struct command pass = { .kind = COMMAND_PASS, .units = PASS_UNITS };
		size_t submitted = jct->submitted;
		jct->more = false;
		if (!let_in(jct, error) || !jct_send(jct, &pass, error))
			return false;
		again = jct->told_count > 0 || jct->more || jct->submitted > submitted;
		if (!obey_all(jct, error))
			return false;
	}
	return true;
}

static bool end_job(struct jct *jct, struct run_job *run, struct error *error)
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

/* When the job that runs will have had what the first level has. */
static int64_t falls_ms(const struct jct *jct, const struct run_job *run)
{
	int64_t gpus = jct->philly->jobs[jct_place_of(jct, run)].gpus;

	if (jct->policy->kind != JCT_LEVELS || run->low)
		return NEVER;
	return run->start_ms + (max64(LEVEL_GPU_MS - run->had_ms, 0) + gpus - 1) / gpus;
}

static bool fall(struct jct *jct, struct run_job *run, struct error *error)
{
	struct command command = { .kind = COMMAND_REPRIORITISE };

	run->low = true;
	command.reprioritise.id = jct->first_id + (int64_t)jct_place_of(jct, run);
	command.reprioritise.priority = PRIORITY_LOW;
	return jct_send(jct, &command, error);
}

/* When something happens next; NEVER: nothing will. */
static int64_t next_ms(const struct jct *jct)
{
	int64_t next = NEVER;

	if (jct->arrived < jct->philly->count)
		next = jct->philly->jobs[jct->arrived].submit_ms;
	for (size_t i = 0; i < jct->running_count; i++) {
		const struct run_job *run = &jct->jobs[jct->running[i]];
		next = min64(next, min64(run->start_ms + run->left_ms, falls_ms(jct, run)));
	}
	if (shares(jct) && next != NEVER && jct->submitted - jct->ended > jct->running_count)
		next = min64(next, jct->now_ms + LOOK_MS);
	return max64(next, jct->now_ms);
}

/* By place in the trace, so that the order in which jobs came to run decides nothing. */
static struct run_job *find_due(const struct jct *jct, bool ends)
{
	struct run_job *due = NULL;

	for (size_t i = 0; i < jct->running_count; i++) {
		struct run_job *run = &jct->jobs[jct->running[i]];
		int64_t at_ms = ends ? run->start_ms + run->left_ms : falls_ms(jct, run);
		if (at_ms <= jct->now_ms && (!due || run < due))
			due = run;
	}
	return due;
}

static bool jct_step(struct jct *jct, struct error *error)
{
	struct run_job *run;

	while ((run = find_due(jct, true)))
		if (!end_job(jct, run, error))
			return false;
	while ((run = find_due(jct, false)))
		if (!fall(jct, run, error))
			return false;
	while (jct->arrived < jct->philly->count &&
	       jct->philly->jobs[jct->arrived].submit_ms <= jct->now_ms)
		jct->arrived++;
	return jct_decide(jct, error);
}

static bool run_all(struct jct *jct, void (*tick)(void *context, int64_t ended), void *context,
                    struct error *error)
{
	while (jct->ended < jct->philly->count) {
		size_t before = jct->ended;
		int64_t next = next_ms(jct);
		if (next == NEVER)
			return error_set(
			    error, ERROR_INVALID,
			    "%zu jobs never start on %" PRId64 " nodes of %" PRId64 " GPUs",
			    jct->philly->count - jct->ended, jct->world->nodes, jct->world->gpus);
		jct->now_ms = next;
		if (!jct_step(jct, error))
			return false;
		if (tick && jct->ended > before)
			tick(context, (int64_t)(jct->ended - before));
	}
	return true;
}

bool jct_run(const struct philly *philly, const struct jct_world *world,
             const struct jct_policy *policy, struct jct_result *result,
             void (*tick)(void *context, int64_t ended), void *context, struct error *error)
{
	struct jct jct = { .philly = philly,
		           .world = world,
		           .policy = policy,
		           .result = result,
		           .random = 1,
		           .jobs = memory_zero(philly->count, sizeof(*jct.jobs)),
		           .running = memory_alloc(philly->count * sizeof(*jct.running)) };

	usage_begin(&result->usage, philly->jobs[0].submit_ms,
	            philly->jobs[philly->count - 1].submit_ms, cluster_count(philly));
	bool fine = jct_begin(&jct, error) && run_all(&jct, tick, context, error);
	for (size_t i = 0; i < philly->count; i++)
		free(jct.jobs[i].reservations);
	free(jct.jobs);
	free(jct.tenant_ids);
	free(jct.running);
	free(jct.told);
	map_free(&jct.by_reservation);
	effects_free(&jct.effects);
	sched_free(jct.sched);
	return fine;
}
