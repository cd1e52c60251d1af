/* predict_test.c - what is expected of jobs, and what of that is stored */
#include "core/test/harness.h"

#include <stdio.h>

#define MINUTE INT64_C(60000)

/* A tenant and a node of eight GPUs. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab predict_lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", 8, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static struct job_record named(struct lab lab, const char *name)
{
	struct job_record job = whole(lab.tenant, 1);
	job.name = name;
	return job;
}

/* Submits and runs it; how it ends. */
static int64_t predict_run(struct lab lab, struct job_record record, int64_t took_ms,
                           int64_t exit_code)
{
	int64_t id = submit(lab.h, record);
	pass(lab.h);
	time_passes(lab.h, took_ms);
	end_job(lab.h, id, exit_code);
	return id;
}

static const struct job_state_record *expect(struct lab lab, struct job_record record)
{
	return &job(lab.h, submit(lab.h, record))->s;
}

static void assert_within(int64_t value, int64_t wanted, int64_t percent)
{
	assert_in_range(value, wanted - wanted * percent / 100, wanted + wanted * percent / 100);
}

static void nothing_is_expected_at_first(void **state)
{
	struct lab lab = predict_lab_new();
	(void)state;
	const struct job_state_record *s = expect(lab, named(lab, "train"));
	assert_int_equal(s->expected_ms, 0);
	assert_int_equal(s->expected_p90_ms, 0);
	assert_int_equal(s->confidence, 0);
	harness_free(lab.h);
}

static void without_experience_the_maximum_runtime_is_expected(void **state)
{
	struct lab lab = predict_lab_new();
	struct job_record record = named(lab, "train");
	(void)state;
	record.max_runtime_ms = 7 * MINUTE;
	const struct job_state_record *s = expect(lab, record);
	assert_int_equal(s->expected_ms, 7 * MINUTE);
	assert_int_equal(s->expected_p90_ms, 7 * MINUTE);
	assert_int_equal(s->confidence, 100);
	harness_free(lab.h);
}

static void jobs_are_expected_to_take_what_those_of_their_name_took(void **state)
{
	struct lab lab = predict_lab_new();
	(void)state;
	for (int i = 0; i < 10; i++) {
		predict_run(lab, named(lab, "train"), 100 * MINUTE, 0);
		predict_run(lab, named(lab, "eval"), 2 * MINUTE, 0);
	}
	const struct job_state_record *s = expect(lab, named(lab, "train"));
	assert_within(s->expected_ms, 100 * MINUTE, 15);
	assert_in_range(s->expected_p90_ms, s->expected_ms, 3 * s->expected_ms);
	assert_true(s->confidence > 600);
	assert_within(expect(lab, named(lab, "eval"))->expected_ms, 2 * MINUTE, 20);
	harness_free(lab.h);
}

static void users_of_a_tenant_are_told_apart(void **state)
{
	struct lab lab = predict_lab_new();
	struct job_record ann = named(lab, "train"), bob = named(lab, "train");
	(void)state;
	ann.user = "ann";
	bob.user = "bob";
	for (int i = 0; i < 10; i++) {
		predict_run(lab, ann, 100 * MINUTE, 0);
		predict_run(lab, bob, 2 * MINUTE, 0);
	}
	assert_within(expect(lab, ann)->expected_ms, 100 * MINUTE, 20);
	assert_within(expect(lab, bob)->expected_ms, 2 * MINUTE, 20);
	harness_free(lab.h);
}

static void jobs_that_fail_are_learned_from(void **state)
{
	struct lab lab = predict_lab_new();
	(void)state;
	for (int i = 0; i < 5; i++)
		predict_run(lab, named(lab, "broken"), MINUTE, 1);
	assert_within(expect(lab, named(lab, "broken"))->expected_ms, MINUTE, 15);
	harness_free(lab.h);
}

static void accuracy_is_counted_by_what_jobs_are_compared_by(void **state)
{
	struct lab lab = predict_lab_new();
	const struct accuracy_record *record = lab.h->sched->predictor.accuracies;
	int64_t jobs = 0, within = 0, twice = 0;
	(void)state;
	for (int i = 0; i < 10; i++)
		predict_run(lab, named(lab, "train"), 100 * MINUTE, 0);
	predict_run(lab, named(lab, "train"), 1000 * MINUTE, 0);
	for (int basis = 0; basis < BASES; basis++) {
		assert_int_equal(record[basis].id, basis + 1);
		jobs += record[basis].jobs;
		within += record[basis].within_p90;
		twice += record[basis].within_twice;
	}
	/* Of the first one nothing was said, and the last one took longer than it was. */
	assert_in_range(jobs, 8, 10);
	assert_int_equal(within, jobs - 1);
	assert_int_equal(twice, jobs - 1);
	assert_int_equal(record[BASIS_NOTHING].jobs, 0);
	harness_free(lab.h);
}

static void accuracies_that_cannot_be_are_refused(void **state)
{
	struct predictor predictor;
	struct error error;
	const struct accuracy_record fine = { .id = 3, .jobs = 5, .within_p90 = 5 };
	const struct accuracy_record bad[] = {
		{ .id = 0 },
		{ .id = BASES + 1 },
		{ .id = 1, .jobs = -1 },
		{ .id = 1, .jobs = 1, .within_p90 = 2 },
		{ .id = 1, .jobs = 1, .within_twice = -1 },
	};
	(void)state;
	predictor_init(&predictor);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(predict_load_accuracy(&predictor, &bad[i], &error));
	assert_true(predict_load_accuracy(&predictor, &fine, &error));
	assert_int_equal(predictor.accuracies[2].jobs, 5);
	predictor_free(&predictor);
}

static void no_more_than_the_maximum_runtime_is_expected(void **state)
{
	struct lab lab = predict_lab_new();
	struct job_record record = named(lab, "train");
	(void)state;
	for (int i = 0; i < 5; i++)
		predict_run(lab, record, 60 * MINUTE, 0);
	record.max_runtime_ms = 10 * MINUTE;
	const struct job_state_record *s = expect(lab, record);
	assert_true(s->expected_ms <= 10 * MINUTE);
	assert_true(s->expected_p90_ms <= 10 * MINUTE);
	harness_free(lab.h);
}

static void sizes_are_compared_however_they_are_asked_for(void **state)
{
	struct lab lab = predict_lab_new();
	(void)state;
	struct job_record half = fraction(lab.tenant, 500), memory_half = memory(lab.tenant, 32768);
	assert_int_equal(predict_traits(&half).size, 500);
	assert_int_equal(predict_traits(&memory_half).size, 500);
	struct job_record four = whole(lab.tenant, 4), split = whole(lab.tenant, 1);
	split.split_gpus = 4;
	assert_int_equal(predict_traits(&four).size, 4000);
	assert_int_equal(predict_traits(&split).size, 4000);
	harness_free(lab.h);
}

static int count_effects(const struct harness *h, enum effect_kind kind, enum record_kind record)
{
	int count = 0;
	for (size_t i = 0; i < h->effects.count; i++)
		count += h->effects.at[i].kind == kind && h->effects.at[i].record_kind == record;
	return count;
}

static void what_was_said_is_kept_until_the_job_is_over(void **state)
{
	struct lab lab = predict_lab_new();
	(void)state;
	int64_t id = submit(lab.h, named(lab, "train"));
	assert_int_equal(count_effects(lab.h, EFFECT_PUT, RECORD_GUESS), 1);
	assert_int_equal(lab.h->sched->predictor.guesses.count, 1);
	must(lab.h, cancel(lab.h, id));
	assert_int_equal(count_effects(lab.h, EFFECT_DELETE, RECORD_GUESS), 1);
	assert_int_equal(count_effects(lab.h, EFFECT_PUT, RECORD_OUTCOME), 0);
	assert_int_equal(lab.h->sched->predictor.guesses.count, 0);
	harness_free(lab.h);
}

static void elements_of_an_array_share_what_was_said(void **state)
{
	struct lab lab = predict_lab_new();
	struct submit_command submit_all = { .job = named(lab, "sweep"),
		                             .array_from = 1,
		                             .array_to = 4 };
	(void)state;
	must(lab.h, harness_apply(
			lab.h, (struct command){ .kind = COMMAND_SUBMIT, .submit = submit_all }));
	int64_t first = lab.h->effects.reply_id;
	assert_int_equal(count_effects(lab.h, EFFECT_PUT, RECORD_GUESS), 1);
	pass(lab.h);
	time_passes(lab.h, MINUTE);
	for (int64_t id = first; id < first + 4; id++) {
		assert_int_equal(lab.h->sched->predictor.guesses.count, 1);
		end_job(lab.h, id, 0);
	}
	assert_int_equal(lab.h->sched->predictor.guesses.count, 0);
	assert_int_equal(lab.h->sched->predictor.learner.filled, 4);
	assert_int_equal(lab.h->sched->predictor.crowd.groups.count, 0);
	harness_free(lab.h);
}

static void jobs_that_are_alike_share_what_was_said_until_one_ends(void **state)
{
	struct lab lab = predict_lab_new();
	(void)state;
	predict_run(lab, named(lab, "train"), MINUTE, 0);
	int64_t first = submit(lab.h, named(lab, "train"));
	int64_t second = submit(lab.h, named(lab, "train"));
	assert_int_equal(count_effects(lab.h, EFFECT_PUT, RECORD_GUESS), 0);
	assert_int_equal(job(lab.h, second)->s.guess, first);
	pass(lab.h);
	time_passes(lab.h, MINUTE);
	end_job(lab.h, first, 0);
	int64_t third = submit(lab.h, named(lab, "train"));
	assert_int_equal(job(lab.h, third)->s.guess, third);
	assert_int_equal(lab.h->sched->predictor.guesses.count, 2);
	harness_free(lab.h);
}

static void few_experts_are_kept_where_memory_is_short(void **state)
{
	struct lab lab = predict_lab_new();
	struct config_record config = config_default();
	char name[] = "job-aa";
	(void)state;
	config.predict_experts = 20;
	configure(lab.h, config);
	for (int i = 0; i < 26; i++) {
		name[5] = (char)('a' + i);
		predict_run(lab, named(lab, name), MINUTE, 0);
		assert_true(lab.h->sched->predictor.learner.mixture.experts.by_id.count <= 20);
	}
	harness_free(lab.h);
}

/* Each is a record; those of segments that are not needed go. */
static void outcomes_of_the_last_jobs_are_kept(void **state)
{
	struct lab lab = predict_lab_new();
	struct config_record config = config_default();
	(void)state;
	config.predict_jobs = 10;
	configure(lab.h, config);
	for (int i = 1; i <= 100; i++) {
		predict_run(lab, named(lab, "train"), MINUTE, 0);
		const struct predictor *predictor = &lab.h->sched->predictor;
		assert_int_equal(predictor->last_outcome, i);
		assert_true(predictor->stored_from >= i - 30);
		assert_in_range(predictor->learner.before + predictor->learner.filled,
		                i < 10 ? i : 10, 20);
	}
	harness_free(lab.h);
}

/* A burst within a second teaches no more than that, and a core that is loaded counts on. */
static void a_burst_teaches_so_many(void **state)
{
	enum { NODES = 40, JOBS = 8 * NODES };
	struct lab lab = predict_lab_new();
	int64_t ids[JOBS];
	char name[16];
	(void)state;
	for (int i = 2; i <= NODES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		add_node(lab.h, name, 8, 80000);
	}
	for (int i = 0; i < JOBS; i++)
		ids[i] = submit(lab.h, named(lab, "train"));
	pass(lab.h);
	time_passes(lab.h, MINUTE);
	for (int i = 0; i < JOBS - 1; i++)
		end_job(lab.h, ids[i], 0);
	assert_int_equal(lab.h->sched->predictor.last_outcome, LEARNED_PER_S);
	assert_int_equal(lab.h->sched->predictor.crowd.groups.count, 2);
	time_passes(lab.h, 1000);
	end_job(lab.h, ids[JOBS - 1], 0);
	assert_int_equal(lab.h->sched->predictor.last_outcome, LEARNED_PER_S + 1);
	assert_int_equal(lab.h->sched->predictor.guesses.count, 0);
	harness_free(lab.h);
}

/* Others have ended by the second start, which is long after. */
static void what_was_expected_holds_for_a_start_within_a_minute(void **state)
{
	struct lab lab = predict_lab_new();
	(void)state;
	for (int i = 0; i < 5; i++)
		predict_run(lab, named(lab, "train"), 10 * MINUTE, 0);
	int64_t blocker = submit(lab.h, whole(lab.tenant, 8));
	pass(lab.h);
	int64_t soon = submit(lab.h, named(lab, "train")), late;
	int64_t said_ms = job(lab.h, soon)->s.expected_ms;
	assert_within(said_ms, 10 * MINUTE, 20);
	time_passes(lab.h, MINUTE / 2);
	end_job(lab.h, blocker, 0);
	pass(lab.h);
	assert_true(job(lab.h, soon)->s.started_ms > 0);
	assert_int_equal(job(lab.h, soon)->s.expected_ms, said_ms);
	time_passes(lab.h, 40 * MINUTE);
	end_job(lab.h, soon, 0);
	blocker = submit(lab.h, whole(lab.tenant, 8));
	pass(lab.h);
	late = submit(lab.h, named(lab, "train"));
	said_ms = job(lab.h, late)->s.expected_ms;
	time_passes(lab.h, 2 * MINUTE);
	end_job(lab.h, blocker, 0);
	pass(lab.h);
	assert_true(job(lab.h, late)->s.started_ms > 0);
	assert_int_not_equal(job(lab.h, late)->s.expected_ms, said_ms);
	harness_free(lab.h);
}

static void without_a_window_nothing_is_learned(void **state)
{
	struct lab lab = predict_lab_new();
	struct config_record config = config_default();
	(void)state;
	config.predict_jobs = 0;
	configure(lab.h, config);
	for (int i = 0; i < 5; i++)
		predict_run(lab, named(lab, "train"), MINUTE, 0);
	assert_int_equal(expect(lab, named(lab, "train"))->expected_ms, 0);
	assert_int_equal(lab.h->sched->predictor.last_outcome, 0);
	harness_free(lab.h);
}

/* What counts is all that it ran, if it resumes where it was stopped. */
static void runs_of_a_job_that_resumes_add_up(void **state)
{
	struct lab lab = predict_lab_new();
	struct job_record record = named(lab, "train");
	(void)state;
	record.movable = true;
	int64_t id = submit(lab.h, record);
	pass(lab.h);
	time_passes(lab.h, 10 * MINUTE);
	int64_t reservation = job(lab.h, id)->tasks[0].reservation->id;
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_REQUEUE, .id = id }));
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, reservation, 0, false));
	pass(lab.h);
	assert_int_equal(predict_age(job(lab.h, id), lab.h->now_ms), 10 * MINUTE);
	time_passes(lab.h, 5 * MINUTE);
	assert_int_equal(predict_age(job(lab.h, id), lab.h->now_ms), 15 * MINUTE);
	end_job(lab.h, id, 0);
	assert_within(expect(lab, record)->expected_ms, 15 * MINUTE, 25);
	harness_free(lab.h);
}

static void records_that_cannot_be_are_refused(void **state)
{
	struct error error = { 0 };
	const struct outcome_record fine = { .id = 5, .segment = 2, .experts = 13, .voices = "" };
	struct outcome_record bad[] = { fine, fine, fine, fine, fine };
	struct predictor predictor;
	(void)state;
	bad[0].id = 0;
	bad[1].segment = 6;
	bad[2].experts = 12;
	bad[3].took_ms = -1;
	bad[4].voices = "0000";
	predictor_init(&predictor);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(predict_load_outcome(&predictor, &bad[i], &error));
		assert_int_equal(error.code, ERROR_CORRUPT);
	}
	assert_true(predict_load_outcome(&predictor, &fine, &error));
	assert_false(predict_load_guess(
	    &predictor, &(struct guess_record){ .id = 1, .key = 1, .voices = "0" }, &error));
	struct guess_record guess = { .id = 1, .key = 1, .voices = "" };
	assert_true(predict_load_guess(&predictor, &guess, &error));
	assert_false(predict_load_guess(&predictor, &guess, &error));
	predictor_free(&predictor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_expected_at_first),
		cmocka_unit_test(without_experience_the_maximum_runtime_is_expected),
		cmocka_unit_test(jobs_are_expected_to_take_what_those_of_their_name_took),
		cmocka_unit_test(users_of_a_tenant_are_told_apart),
		cmocka_unit_test(jobs_that_fail_are_learned_from),
		cmocka_unit_test(accuracy_is_counted_by_what_jobs_are_compared_by),
		cmocka_unit_test(accuracies_that_cannot_be_are_refused),
		cmocka_unit_test(no_more_than_the_maximum_runtime_is_expected),
		cmocka_unit_test(sizes_are_compared_however_they_are_asked_for),
		cmocka_unit_test(what_was_said_is_kept_until_the_job_is_over),
		cmocka_unit_test(elements_of_an_array_share_what_was_said),
		cmocka_unit_test(jobs_that_are_alike_share_what_was_said_until_one_ends),
		cmocka_unit_test(outcomes_of_the_last_jobs_are_kept),
		cmocka_unit_test(a_burst_teaches_so_many),
		cmocka_unit_test(what_was_expected_holds_for_a_start_within_a_minute),
		cmocka_unit_test(without_a_window_nothing_is_learned),
		cmocka_unit_test(runs_of_a_job_that_resumes_add_up),
		cmocka_unit_test(few_experts_are_kept_where_memory_is_short),
		cmocka_unit_test(records_that_cannot_be_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
