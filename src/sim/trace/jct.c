/* jct.c - jobs of a trace arrive, share a cluster and end: how long they take */
#include "sim/trace/jct.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "sim/trace/jct_run.h"

#define PASS_UNITS INT64_C(1000000)
#define LOOK_MS INT64_C(600000)       /* time sharing is looked at that often, at the least */
#define LOOK_SOON_MS INT64_C(60000)   /* or where jobs wait for GPUs to come free */
#define LEVEL_GPU_MS INT64_C(3600000) /* GPU time that the first of two levels has */
#define NEVER INT64_MAX

const struct jct_policy jct_policies[] = {
	{ "fifo", "in the order of arrival; nobody passes who waits", JCT_STRICT },
	{ "skip", "in that order, but what does not fit is passed", JCT_SKIP },
	{ "backfill", "the scheduler's defaults: others pass who was promised a start",
	  JCT_BACKFILL },
	{ "shortest", "least GPU time first, as an oracle tells", JCT_SHORTEST },
	{ "urgent", "one job in five has a higher priority and preempts the others", JCT_URGENT },
	{ "levels", "who had an hour of GPU time gives way to who had less", JCT_LEVELS },
	{ "attained", "the scheduler's time sharing by attained service", JCT_ATTAINED },
	{ "estimate", "the same, with estimates, half of them off by a factor of two",
	  JCT_ESTIMATE },
	{ "gittins", "time sharing by Gittins' index of what is predicted, and nothing else",
	  JCT_GITTINS },
	{ "predicted", "the scheduler's time sharing by predicted service", JCT_PREDICTED },
	{ "moves", "time sharing without estimates, and with consolidation", JCT_MOVES },
	{ "suspend", "the same, and jobs of one node are suspended, one GPU after the other",
	  JCT_SUSPEND },
	{ "parallel", "the same, all GPUs of a job at the same time", JCT_PARALLEL },
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
		if (!jct_obey(jct, error))
			return false;
	}
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
	for (size_t i = 0; i < jct->moving_count; i++)
		next = min64(next, jct->jobs[jct->moving[i]].moved_ms);
	if (jct_shares(jct) && next != NEVER && jct->submitted - jct->ended > jct->running_count)
		next = min64(next, jct->now_ms + (jct_suspends(jct) ? LOOK_SOON_MS : LOOK_MS));
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

/* By place in the trace, too. */
static struct run_job *find_moved(const struct jct *jct)
{
	struct run_job *due = NULL;

	for (size_t i = 0; i < jct->moving_count; i++) {
		struct run_job *run = &jct->jobs[jct->moving[i]];
		if (run->moved_ms <= jct->now_ms && (!due || run < due))
			due = run;
	}
	return due;
}

static bool jct_step(struct jct *jct, struct error *error)
{
	struct run_job *run;

	while ((run = find_moved(jct)))
		if (!jct_moved(jct, run, error))
			return false;

	while ((run = find_due(jct, true)))
		if (!jct_end_job(jct, run, error))
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
		           .running = memory_alloc(philly->count * sizeof(*jct.running)),
		           .moving = memory_alloc(philly->count * sizeof(*jct.moving)) };

	usage_begin(&result->usage, philly->jobs[0].submit_ms,
	            philly->jobs[philly->count - 1].submit_ms, jct_clusters(philly));
	bool fine = jct_begin(&jct, error) && run_all(&jct, tick, context, error);
	for (size_t i = 0; i < philly->count; i++)
		free(jct.jobs[i].reservations);
	free(jct.jobs);
	free(jct.tenant_ids);
	free(jct.running);
	free(jct.moving);
	free(jct.told);
	map_free(&jct.by_reservation);
	effects_free(&jct.effects);
	sched_free(jct.sched);
	return fine;
}
