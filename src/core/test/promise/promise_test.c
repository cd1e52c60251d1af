/* promise_test.c - expected starts, and who may pass in the meantime */
#include "core/test/harness.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

static struct job_record lasting(struct job_record job, int64_t runtime_ms)
{
	job.max_runtime_ms = runtime_ms;
	return job;
}

static int64_t whole_minute(int64_t time_ms)
{
	return (time_ms + MINUTE - 1) / MINUTE * MINUTE;
}

/* A node of eight GPUs, each with a job on it: one that takes ten minutes, one
 * that takes twenty, and so on. */
struct eight {
	struct harness *h;
	int64_t lab, jobs[8], full_ms;
};

static struct eight eight_busy_gpus(void)
{
	struct eight eight = { .h = harness_new() };

	add_node(eight.h, "n1", 8, 80000);
	eight.lab = put_tenant(eight.h, tenant_named("lab"));
	for (int i = 0; i < 8; i++)
		eight.jobs[i] =
		    submit(eight.h, lasting(whole(eight.lab, 1), (i + 1) * 10 * MINUTE));
	assert_int_equal(pass(eight.h), 8);
	eight.full_ms = eight.h->now_ms;
	return eight;
}

/* The start that the job is promised; 0: none. */
static int64_t promised(struct harness *h, int64_t id)
{
	return job(h, id)->promise ? job(h, id)->promise->r.start_ms : 0;
}

static int marked(const struct harness *h)
{
	int count = 0;

	for (size_t i = 0; i < h->sched->cluster.node_count; i++) {
		const struct node *node = h->sched->cluster.nodes[i];
		int here = 0;
		for (int g = 0; g < node->gpu_count; g++)
			here += node->gpus[g]->promised_ms != INT64_MAX;
		assert_int_equal(here, node->promised);
		count += here;
	}
	return count;
}

static int decisions_of(const struct harness *h, enum decision_kind kind)
{
	int count = 0;

	for (int i = 0; i < h->decision_count; i++)
		count += h->decisions[i]->kind == (int32_t)kind;
	return count;
}

static void a_gang_is_promised_the_last_end_of_those_before_it(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	int64_t gang = submit(h, lasting(whole(eight.lab, 8), HOUR));
	assert_int_equal(pass(h), 0);
	assert_int_equal(promised(h, gang), whole_minute(eight.full_ms + 80 * MINUTE));
	assert_int_equal(marked(h), 8);
	assert_int_equal(gpu(h, "n1-gpu0")->promised_to, gang);
	assert_int_equal(decisions_of(h, DECISION_PROMISE), 1);
	assert_int_equal(h->decisions[h->decision_count - 1]->until_ms, promised(h, gang));
	assert_non_null(strstr(why(h, gang), "it is expected to start by 1970-01-01T01:37:00Z"));
	harness_free(h);
}

/* Runs eight jobs that take `took_ms` in place of the hour that they may, and a gang behind
 * them. Whether it started as promised. */
static bool gang_starts_as_promised(struct harness *h, int64_t lab, int64_t took_ms)
{
	int64_t ids[8], gang;

	for (int i = 0; i < 8; i++)
		ids[i] = submit(h, lasting(whole(lab, 1), HOUR));
	pass(h);
	gang = submit(h, lasting(whole(lab, 8), MINUTE));
	pass(h);
	assert_true(promised(h, gang) > 0);
	int64_t by_ms = job(h, gang)->s.promised_ms;
	assert_true(by_ms > h->now_ms);
	time_passes(h, took_ms);
	for (int i = 0; i < 8; i++)
		end_job(h, ids[i], 0);
	pass(h);
	assert_int_equal(job(h, gang)->s.promised_ms, by_ms);
	bool kept = job(h, gang)->s.started_ms <= by_ms;
	time_passes(h, MINUTE / 2);
	end_job(h, gang, 0);
	return kept;
}

/* Nothing is predicted but the limit, which is never reached. The margin shrinks until
 * starts are promised for when they come. */
static void starts_are_promised_for_when_nine_of_ten_jobs_start(void **unused)
{
	struct harness *h = harness_new();
	struct config_record config = config_default();
	int kept = 0;

	(void)unused;
	config.predict_jobs = 0;
	configure(h, config);
	add_node(h, "n1", 8, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	for (int i = 0; i < 120; i++)
		gang_starts_as_promised(h, lab, 30 * MINUTE);
	const struct margin_record *margin = &h->sched->margins.of[2]; /* beyond an hour */
	assert_in_range(-margin->margin, 600, 1800);
	for (int i = 0; i < 100; i++)
		kept += gang_starts_as_promised(h, lab, 30 * MINUTE);
	assert_in_range(kept, 85, 95);
	assert_int_equal(margin->promised, 220);
	assert_int_equal(margin->likely, 220);
	harness_free(h);
}

/* What was said stays, whatever the forecast says later, until the job has started. */
static void a_promised_start_stays_while_the_likely_one_moves(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	int64_t gang = submit(h, whole(eight.lab, 8));
	pass(h);
	int64_t by_ms = job(h, gang)->s.promised_ms, likely_ms = promised(h, gang);
	assert_true(by_ms >= likely_ms);
	for (int i = 0; i < 7; i++)
		end_job(h, eight.jobs[i], 0);
	time_passes(h, 100 * MINUTE); /* the last one is late by 20 */
	pass(h);
	assert_true(promised(h, gang) > likely_ms);
	assert_int_equal(job(h, gang)->s.promised_ms, by_ms);
	assert_non_null(strstr(why(h, gang), "its start is promised by 1970-01-01T01:37:00Z; "
	                                     "nine of ten jobs start as promised"));
	end_job(h, eight.jobs[7], 0);
	pass(h);
	assert_int_equal(h->sched->margins.of[2].promised, 1);
	assert_int_equal(h->sched->margins.of[2].kept, 0);
	assert_true(h->sched->margins.of[2].margin > 0);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_REQUEUE, .id = gang }));
	assert_int_equal(job(h, gang)->s.promised_ms, 0);
	harness_free(h);
}

static void margins_that_cannot_be_are_refused(void **unused)
{
	struct margins margins;
	struct error error = { 0 };
	const struct margin_record fine = { .id = 2, .margin = 5, .promised = 3, .kept = 2 };
	struct margin_record bad[] = { fine, fine, fine, fine, fine };

	(void)unused;
	margins_init(&margins);
	bad[0].id = 0;
	bad[1].id = MARGIN_BINS + 1;
	bad[2].margin = MARGIN_MOST + 1;
	bad[3].kept = 4;
	bad[4].likely = -1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(margin_load(&margins, &bad[i], &error));
		assert_int_equal(error.code, ERROR_CORRUPT);
	}
	assert_true(margin_load(&margins, &fine, &error));
	assert_int_equal(margins.of[1].margin, 5);
}

static void a_half_node_is_promised_when_half_of_the_node_is_free(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	int64_t four = submit(h, whole(eight.lab, 4));
	pass(h);
	assert_int_equal(promised(h, four), whole_minute(eight.full_ms + 40 * MINUTE));
	assert_int_equal(marked(h), 4);
	harness_free(h);
}

static void a_short_job_may_pass_and_a_long_one_may_not(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	int64_t gang = submit(h, whole(eight.lab, 8));
	pass(h);
	end_job(h, eight.jobs[0], 0);
	int64_t unknown = submit(h, whole(eight.lab, 1));
	int64_t is_long = submit(h, lasting(whole(eight.lab, 1), 10 * HOUR));
	assert_int_equal(pass(h), 0);
	assert_int_equal(promised(h, gang), whole_minute(eight.full_ms + 80 * MINUTE));
	assert_non_null(strstr(why(h, is_long), "1 GPU: free, but promised to another"));
	assert_non_null(
	    strstr(why(h, is_long), "is promised to job-9 from 1970-01-01T01:37:00Z on"));
	assert_non_null(strstr(why(h, unknown), "how long this one takes is not known"));
	int64_t is_short = submit(h, lasting(whole(eight.lab, 1), 30 * MINUTE));
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, is_short), JOB_RUNNING);
	assert_int_equal(promised(h, gang), whole_minute(eight.full_ms + 80 * MINUTE));
	harness_free(h);
}

static void a_promise_holds_only_those_up_who_are_served_later(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;
	struct job_record gang_record = whole(eight.lab, 8), one = whole(eight.lab, 1);

	struct config_record config = config_default();

	(void)unused;
	config.enable_preemption = false;
	configure(h, config);
	gang_record.priority = 600;
	int64_t gang = submit(h, gang_record);
	pass(h);
	assert_int_not_equal(promised(h, gang), 0);
	end_job(h, eight.jobs[0], 0);
	one.priority = 590;
	int64_t later = submit(h, one);
	assert_int_equal(pass(h), 0);
	assert_int_equal(state(h, later), JOB_PENDING);
	one.priority = 610;
	int64_t sooner = submit(h, one);
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, sooner), JOB_RUNNING);
	harness_free(h);
}

static void the_promised_job_starts_when_all_are_gone(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	int64_t gang = submit(h, whole(eight.lab, 8));
	int64_t after = submit(h, whole(eight.lab, 1));
	pass(h);
	for (int i = 0; i < 8; i++)
		end_job(h, eight.jobs[i], 0);
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, gang), JOB_RUNNING);
	assert_int_equal(state(h, after), JOB_PENDING);
	assert_null(job(h, gang)->promise);
	assert_int_equal(marked(h), 0);
	harness_free(h);
}

static void a_promise_is_renewed_when_a_job_takes_longer(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	int64_t gang = submit(h, whole(eight.lab, 8));
	pass(h);
	int64_t first = promised(h, gang);
	for (int i = 0; i < 7; i++)
		end_job(h, eight.jobs[i], 0);
	time_passes(h, 70 * MINUTE);
	pass(h);
	assert_int_equal(promised(h, gang), first);
	time_passes(h, 30 * MINUTE); /* the last one is late by 20 */
	pass(h);
	assert_true(promised(h, gang) >= h->now_ms + 20 * MINUTE);
	assert_true(promised(h, gang) <= h->now_ms + 26 * MINUTE);
	assert_int_equal(gpu(h, "n1-gpu0")->promised_ms, promised(h, gang));
	assert_int_equal(decisions_of(h, DECISION_PROMISE), 2);
	harness_free(h);
}

static void a_promise_gets_much_sooner_when_jobs_end_early(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	int64_t gang = submit(h, whole(eight.lab, 8));
	pass(h);
	end_job(h, eight.jobs[7], 0); /* 80 minutes become 70, which is not worth it */
	pass(h);
	assert_int_equal(promised(h, gang), whole_minute(eight.full_ms + 80 * MINUTE));
	end_job(h, eight.jobs[6], 0);
	pass(h);
	assert_int_equal(promised(h, gang), whole_minute(eight.full_ms + 60 * MINUTE));
	harness_free(h);
}

static void a_promise_ends_with_the_wait(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	int64_t gang = submit(h, whole(eight.lab, 8));
	pass(h);
	end_job(h, eight.jobs[0], 0);
	int64_t other = submit(h, whole(eight.lab, 1));
	assert_int_equal(pass(h), 0);
	must(h, cancel(h, gang));
	assert_int_equal(h->sched->promise_count, 0);
	assert_int_equal(marked(h), 0);
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, other), JOB_RUNNING);
	harness_free(h);
}

static void a_second_pass_with_nothing_changed_does_nothing(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	submit(h, whole(eight.lab, 8));
	submit(h, whole(eight.lab, 4));
	submit(h, whole(eight.lab, 2));
	pass(h);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PASS, .units = 100 }));
	assert_int_equal(h->effects.count, 0);
	harness_free(h);
}

static void small_jobs_get_no_promise(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;

	(void)unused;
	int64_t one = submit(h, whole(eight.lab, 1));
	pass(h);
	assert_int_equal(promised(h, one), 0);
	assert_non_null(strstr(why(h, one), "it would fit at 1970-01-01T00:27:00Z"));
	harness_free(h);
}

static void nothing_is_promised_when_no_end_is_known(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 8, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	submit(h, whole(lab, 1));
	assert_int_equal(pass(h), 1);
	int64_t gang = submit(h, whole(lab, 8));
	pass(h);
	assert_int_equal(promised(h, gang), 0);
	int64_t seven = submit(h, whole(lab, 7)); /* nobody is held up for a start in the dark */
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, seven), JOB_RUNNING);
	harness_free(h);
}

static void only_the_first_few_get_a_promise_and_not_of_the_same_gpus(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;
	struct config_record config = config_default();
	int64_t ids[4];

	(void)unused;
	config.promise_jobs = 2;
	configure(h, config);
	for (int i = 0; i < 4; i++)
		ids[i] = submit(h, whole(eight.lab, 3));
	pass(h);
	assert_int_equal(promised(h, ids[0]), whole_minute(eight.full_ms + 30 * MINUTE));
	assert_int_equal(promised(h, ids[1]), whole_minute(eight.full_ms + 60 * MINUTE));
	assert_int_equal(promised(h, ids[2]), 0);
	assert_int_equal(marked(h), 6);
	config.promise_jobs = 1;
	configure(h, config);
	pass(h);
	assert_int_equal(h->sched->promise_count, 1);
	assert_int_equal(marked(h), 3);
	harness_free(h);
}

static void the_job_that_would_be_served_first_gets_the_first_promise(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;
	struct config_record config = config_default();
	struct job_record urgent = whole(eight.lab, 4);

	(void)unused;
	config.promise_jobs = 1;
	config.enable_preemption = false;
	configure(h, config);
	urgent.priority = 900;
	submit(h, whole(eight.lab, 4));
	int64_t second = submit(h, urgent);
	pass(h);
	assert_int_equal(h->sched->promise_count, 1);
	assert_int_equal(promised(h, second), whole_minute(eight.full_ms + 40 * MINUTE));
	harness_free(h);
}

static void tasks_of_a_gang_count_what_is_free_already(void **unused)
{
	struct harness *h = harness_new();
	struct job_record gang;

	(void)unused;
	add_node(h, "n1", 4, 80000);
	add_node(h, "n2", 4, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	int64_t busy = submit(h, lasting(whole(lab, 3), HOUR));
	assert_int_equal(pass(h), 1);
	gang = whole(lab, 2);
	gang.tasks = 4;
	int64_t id = submit(h, gang);
	pass(h);
	assert_int_equal(promised(h, id), whole_minute(h->now_ms + HOUR));
	assert_int_equal(marked(h), 8);
	const struct promise_record *promise = &job(h, id)->promise->r;
	assert_int_equal(promise->parts.count, 8);
	assert_int_equal(promise->parts.at[7 * PROMISE_WIDTH], 3); /* the last task */
	end_job(h, busy, 0);
	assert_int_equal(pass(h), 4);
	harness_free(h);
}

static void a_split_job_is_promised_gpus_of_several_nodes(void **unused)
{
	struct harness *h = harness_new();
	struct job_record split;

	(void)unused;
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "n1", "n2", "n3" };
		add_node(h, names[i], 4, 80000);
	}
	int64_t lab = put_tenant(h, tenant_named("lab"));
	submit(h, lasting(whole(lab, 4), HOUR));
	submit(h, lasting(whole(lab, 4), 2 * HOUR));
	assert_int_equal(pass(h), 2);
	split = whole(lab, 1);
	split.split_gpus = 10;
	int64_t id = submit(h, split);
	pass(h);
	assert_int_equal(promised(h, id), whole_minute(h->now_ms + 2 * HOUR));
	assert_int_equal(marked(h), 10);
	harness_free(h);
}

static void parts_of_gpus_are_promised_by_their_memory(void **unused)
{
	struct harness *h = harness_new();
	struct job_record pair;

	(void)unused;
	add_node(h, "n1", 2, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	pair = job_of(lab, GPU_MEMORY, 2);
	pair.memory_mib = 50000;
	submit(h, lasting(memory(lab, 60000), HOUR));
	submit(h, lasting(memory(lab, 60000), 2 * HOUR));
	assert_int_equal(pass(h), 2);
	struct config_record config = config_default();
	config.promise_gpus = 1000;
	configure(h, config);
	int64_t id = submit(h, pair);
	pass(h);
	assert_int_equal(promised(h, id), whole_minute(h->now_ms + 2 * HOUR));
	assert_int_equal(job(h, id)->promise->r.parts.at[2], 50000);
	harness_free(h);
}

static void a_job_at_its_limit_is_promised_nothing(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;
	struct tenant_record small = tenant_named("small");

	(void)unused;
	small.limit_gpu = 4 * WHOLE_GPU;
	int64_t tenant = put_tenant(h, small);
	int64_t id = submit(h, whole(tenant, 4));
	pass(h);
	assert_true(promised(h, id) > 0);
	small.id = tenant;
	small.limit_gpu = 2 * WHOLE_GPU;
	put_tenant(h, small);
	pass(h);
	assert_int_equal(promised(h, id), 0);
	assert_int_equal(marked(h), 0);
	harness_free(h);
}

static void without_backfill_there_are_no_promises(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;
	struct config_record config = config_default();

	(void)unused;
	submit(h, whole(eight.lab, 8));
	pass(h);
	config.enable_backfill = false;
	configure(h, config);
	pass(h);
	assert_int_equal(h->sched->promise_count, 0);
	assert_int_equal(marked(h), 0);
	harness_free(h);
}

static void a_node_that_leaves_takes_its_promise_along(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;
	struct command drain = { .kind = COMMAND_NODE_DRAIN };

	(void)unused;
	int64_t gang = submit(h, whole(eight.lab, 8));
	pass(h);
	assert_true(promised(h, gang) > 0);
	drain.drain.name = "n1";
	drain.drain.draining = true;
	must(h, harness_apply(h, drain));
	pass(h);
	assert_int_equal(promised(h, gang), 0);
	harness_free(h);
}

static void a_promise_that_nobody_can_keep_is_taken_away(void **unused)
{
	struct eight eight = eight_busy_gpus();
	struct harness *h = eight.h;
	struct command drain = { .kind = COMMAND_NODE_DRAIN };

	(void)unused;
	submit(h, whole(eight.lab, 8));
	pass(h);
	drain.drain.name = "n1";
	drain.drain.draining = true;
	must(h, harness_apply(h, drain));
	for (int i = 0; i < 8; i++)
		end_job(h, eight.jobs[i], 0);
	pass(h);
	assert_int_equal(h->sched->promise_count, 0);
	assert_int_equal(marked(h), 0);
	harness_free(h);
}

/* Some jobs that took ten minutes each, so that the next are expected to. */
static void learn_ten_minutes(struct harness *h, int64_t tenant)
{
	for (int i = 0; i < 8; i++) {
		int64_t id = submit(h, whole(tenant, 1));
		assert_int_equal(pass(h), 1);
		time_passes(h, 10 * MINUTE);
		end_job(h, id, 0);
	}
}

static void victims_that_end_soon_are_waited_for_but_not_for_ever(void **unused)
{
	struct harness *h = harness_new();
	struct job_record urgent;

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	learn_ten_minutes(h, lab);
	int64_t victim = submit(h, whole(lab, 1));
	assert_int_equal(pass(h), 1);
	int64_t end_ms = h->now_ms + 10 * MINUTE;
	time_passes(h, 8 * MINUTE);
	urgent = whole(lab, 1);
	urgent.priority = 2000;
	int64_t id = submit(h, urgent);
	assert_int_equal(pass(h), 0);
	assert_int_equal(state(h, victim), JOB_RUNNING);
	assert_true(job(h, id)->promise->r.instead);
	assert_in_range(promised(h, id), end_ms - 30000, end_ms + 30000);
	assert_int_equal(decisions_of(h, DECISION_WAIT), 1);
	assert_non_null(
	    strstr(why(h, id), "rather than preempting others it waits for them until"));
	time_passes(h, 2 * MINUTE + 45000); /* it should have ended 45 s ago */
	pass(h);
	assert_int_equal(decisions_of(h, DECISION_PREEMPT), 1);
	assert_int_equal(h->sched->promise_count, 0);
	assert_int_equal(marked(h), 0);
	harness_free(h);
}

/* Preempting would lose less than waiting costs, but takes as long. */
static void victims_that_probably_end_within_the_grace_are_waited_for(void **unused)
{
	struct harness *h = harness_new();
	struct job_record urgent;

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	for (int i = 0; i < 10; i++) {
		int64_t id = submit(h, whole(lab, 1));
		assert_int_equal(pass(h), 1);
		time_passes(h, 40000);
		end_job(h, id, 0);
	}
	int64_t victim = submit(h, whole(lab, 1));
	assert_int_equal(pass(h), 1);
	time_passes(h, 15000);
	urgent = whole(lab, 1);
	urgent.priority = 2000;
	int64_t id = submit(h, urgent);
	assert_int_equal(pass(h), 0);
	assert_int_equal(state(h, victim), JOB_RUNNING);
	assert_true(job(h, id)->promise->r.instead);
	assert_in_range(promised(h, id), h->now_ms, h->now_ms + h->sched->config.grace_ms);
	time_passes(h, 25000);
	end_job(h, victim, 0);
	assert_int_equal(pass(h), 1);
	assert_int_equal(decisions_of(h, DECISION_PREEMPT), 0);
	harness_free(h);
}

static void a_promise_of_a_job_that_is_not_there_is_not_loaded(void **unused)
{
	struct sched *sched = sched_new();
	struct promise_record record = { .job_id = 7, .start_ms = 1, .made_ms = 1 };
	struct error error;

	(void)unused;
	assert_false(sched_load(sched, RECORD_PROMISE, &record, &error));
	assert_int_equal(error.code, ERROR_CORRUPT);
	sched_free(sched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gang_is_promised_the_last_end_of_those_before_it),
		cmocka_unit_test(starts_are_promised_for_when_nine_of_ten_jobs_start),
		cmocka_unit_test(a_promised_start_stays_while_the_likely_one_moves),
		cmocka_unit_test(margins_that_cannot_be_are_refused),
		cmocka_unit_test(a_half_node_is_promised_when_half_of_the_node_is_free),
		cmocka_unit_test(a_short_job_may_pass_and_a_long_one_may_not),
		cmocka_unit_test(a_promise_holds_only_those_up_who_are_served_later),
		cmocka_unit_test(the_promised_job_starts_when_all_are_gone),
		cmocka_unit_test(a_promise_is_renewed_when_a_job_takes_longer),
		cmocka_unit_test(a_promise_gets_much_sooner_when_jobs_end_early),
		cmocka_unit_test(a_promise_ends_with_the_wait),
		cmocka_unit_test(a_second_pass_with_nothing_changed_does_nothing),
		cmocka_unit_test(small_jobs_get_no_promise),
		cmocka_unit_test(nothing_is_promised_when_no_end_is_known),
		cmocka_unit_test(only_the_first_few_get_a_promise_and_not_of_the_same_gpus),
		cmocka_unit_test(the_job_that_would_be_served_first_gets_the_first_promise),
		cmocka_unit_test(tasks_of_a_gang_count_what_is_free_already),
		cmocka_unit_test(a_split_job_is_promised_gpus_of_several_nodes),
		cmocka_unit_test(parts_of_gpus_are_promised_by_their_memory),
		cmocka_unit_test(a_job_at_its_limit_is_promised_nothing),
		cmocka_unit_test(without_backfill_there_are_no_promises),
		cmocka_unit_test(a_node_that_leaves_takes_its_promise_along),
		cmocka_unit_test(a_promise_that_nobody_can_keep_is_taken_away),
		cmocka_unit_test(victims_that_end_soon_are_waited_for_but_not_for_ever),
		cmocka_unit_test(victims_that_probably_end_within_the_grace_are_waited_for),
		cmocka_unit_test(a_promise_of_a_job_that_is_not_there_is_not_loaded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
