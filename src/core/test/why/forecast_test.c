/* forecast_test.c - what is said of a job before it is submitted is what becomes of it */
#include <stdio.h>

#include "core/test/harness.h"

#define MINUTE INT64_C(60000)

struct lab {
	struct harness *h;
	int64_t tenant;
	struct submit_forecast forecast;
	char reasons[4096];
};

static struct lab forecast_lab(void)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", 4, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static bool foretell_to(struct lab *lab, struct submit_command submit, int64_t viewer)
{
	struct buffer reasons = { 0 };
	bool taken = sched_forecast(lab->h->sched, &submit, lab->h->now_ms, viewer, &lab->forecast,
	                            &reasons, &lab->h->error);

	sched_check(lab->h->sched);
	snprintf(lab->reasons, sizeof(lab->reasons), "%s", reasons.data ? reasons.data : "");
	buffer_free(&reasons);
	return taken;
}

static bool foretell(struct lab *lab, struct submit_command submit)
{
	return foretell_to(lab, submit, 0);
}

static void must_say(const struct lab *lab, enum forecast_kind kind, const char *words)
{
	if (lab->forecast.kind != kind || !strstr(lab->reasons, words))
		fail_msg("it is '%s': %s", word_of(&forecast_kind_words, lab->forecast.kind),
		         lab->reasons);
}

static void a_job_that_fits_starts_where_it_was_said(void **unused)
{
	struct lab lab = forecast_lab();

	(void)unused;
	assert_true(foretell(&lab, (struct submit_command){ .job = whole(lab.tenant, 2) }));
	must_say(&lab, FORECAST_NOW, "");
	assert_int_equal(lab.forecast.start_ms, lab.h->now_ms);
	assert_int_equal(lab.forecast.place_count, 2);
	int64_t id = submit(lab.h, whole(lab.tenant, 2));
	pass(lab.h);
	const struct reservation *right = job(lab.h, id)->tasks[0].reservation;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lab.forecast.node_ids[i], right->node->r.id);
		assert_int_equal(lab.forecast.gpu_ids[i], right->parts[i].gpu->r.id);
	}
	harness_free(lab.h);
}

static void work_of_others_is_not_named(void **unused)
{
	struct lab lab = forecast_lab();
	int64_t rival = put_tenant(lab.h, tenant_named("rival"));

	(void)unused;
	submit(lab.h, whole(rival, 4));
	pass(lab.h);
	assert_true(
	    foretell_to(&lab, (struct submit_command){ .job = whole(lab.tenant, 1) }, lab.tenant));
	assert_non_null(strstr(lab.reasons, "another tenant 80000 MiB"));
	assert_null(strstr(lab.reasons, "job-1"));
	assert_true(foretell(&lab, (struct submit_command){ .job = whole(lab.tenant, 1) }));
	assert_non_null(strstr(lab.reasons, "job-1 80000 MiB"));
	harness_free(lab.h);
}

static void a_job_that_must_wait_is_told_when_and_where(void **unused)
{
	struct lab lab = forecast_lab();
	struct job_record running = whole(lab.tenant, 4);

	(void)unused;
	running.max_runtime_ms = 30 * MINUTE;
	submit(lab.h, running);
	pass(lab.h);
	assert_true(foretell(&lab, (struct submit_command){ .job = whole(lab.tenant, 3) }));
	must_say(&lab, FORECAST_LATER, "no node has 3 free GPUs");
	assert_in_range(lab.forecast.start_ms, lab.h->now_ms + 30 * MINUTE,
	                lab.h->now_ms + 31 * MINUTE);
	assert_int_equal(lab.forecast.place_count, 3);
	assert_true(lab.forecast.queued);
	assert_int_equal(lab.forecast.position, 0);
	harness_free(lab.h);
}

static void jobs_ahead_are_counted(void **unused)
{
	struct lab lab = forecast_lab();

	(void)unused;
	submit(lab.h, whole(lab.tenant, 4));
	pass(lab.h);
	submit(lab.h, whole(lab.tenant, 1));
	submit(lab.h, whole(lab.tenant, 1));
	assert_true(foretell(&lab, (struct submit_command){ .job = whole(lab.tenant, 1) }));
	must_say(&lab, FORECAST_WAITS, "");
	assert_int_equal(lab.forecast.position, 2);
	assert_int_equal(lab.forecast.tenant_position, 2);
	struct job_record urgent = whole(lab.tenant, 1);
	urgent.priority = 2500;
	assert_true(foretell(&lab, (struct submit_command){ .job = urgent }));
	assert_int_equal(lab.forecast.position, 0);
	assert_true(lab.forecast.may_preempt);
	harness_free(lab.h);
}

static void a_job_that_no_node_could_run_never_starts(void **unused)
{
	struct lab lab = forecast_lab();

	(void)unused;
	assert_true(foretell(&lab, (struct submit_command){ .job = whole(lab.tenant, 5) }));
	must_say(&lab, FORECAST_NEVER, "it can never run on this cluster: asks for 5 GPUs");
	assert_int_equal(lab.forecast.place_count, 0);
	harness_free(lab.h);
}

static void what_keeps_a_job_back_is_named(void **unused)
{
	struct lab lab = forecast_lab();
	struct job_record later = whole(lab.tenant, 1), after = whole(lab.tenant, 1);
	int64_t first = submit(lab.h, whole(lab.tenant, 1));
	int64_t depends[] = { first, AFTER_SUCCESS };

	(void)unused;
	later.begin_ms = lab.h->now_ms + 90 * MINUTE;
	assert_true(foretell(&lab, (struct submit_command){ .job = later }));
	must_say(&lab, FORECAST_WAITS, "it is to begin at ");
	assert_int_equal(lab.forecast.start_ms, later.begin_ms);
	assert_true(
	    foretell(&lab, (struct submit_command){ .job = whole(lab.tenant, 1), .hold = true }));
	must_say(&lab, FORECAST_WAITS, "it is held");
	after.depends = (struct rows){ depends, 1 };
	assert_true(foretell(&lab, (struct submit_command){ .job = after }));
	must_say(&lab, FORECAST_WAITS, "it waits for job-1 to succeed");
	harness_free(lab.h);
}

static void a_limit_keeps_it_waiting(void **unused)
{
	struct lab lab = forecast_lab();
	struct tenant_record narrow = tenant_named("narrow");

	(void)unused;
	narrow.limit_gpu = 2 * WHOLE_GPU;
	int64_t tenant = put_tenant(lab.h, narrow);
	submit(lab.h, whole(tenant, 2));
	pass(lab.h);
	assert_true(foretell(&lab, (struct submit_command){ .job = whole(tenant, 1) }));
	must_say(&lab, FORECAST_WAITS, "tenant narrow is at its limit of 2 GPUs");
	harness_free(lab.h);
}

static void what_would_be_refused_is_refused(void **unused)
{
	struct lab lab = forecast_lab();

	(void)unused;
	assert_false(foretell(&lab, (struct submit_command){ .job = whole(lab.tenant, 0) }));
	assert_int_equal(lab.h->error.code, ERROR_INVALID);
	assert_false(foretell(&lab, (struct submit_command){ .job = whole(77, 1) }));
	assert_int_equal(lab.h->error.code, ERROR_NOT_FOUND);
	harness_free(lab.h);
}

static void a_repeated_submission_names_its_job(void **unused)
{
	struct lab lab = forecast_lab();
	struct job_record keyed = whole(lab.tenant, 1);

	(void)unused;
	keyed.idempotency_key = "k";
	int64_t id = submit(lab.h, keyed);
	assert_true(foretell(&lab, (struct submit_command){ .job = keyed }));
	must_say(&lab, FORECAST_REPEATS, "");
	assert_int_equal(lab.forecast.job_id, id);
	harness_free(lab.h);
}

static void an_array_is_foretold_by_its_first_job(void **unused)
{
	struct lab lab = forecast_lab();
	struct job_record each = whole(lab.tenant, 1);

	(void)unused;
	each.array_limit = 2;
	assert_true(foretell(
	    &lab, (struct submit_command){ .job = each, .array_from = 1, .array_to = 50 }));
	must_say(&lab, FORECAST_NOW, "");
	assert_int_equal(lab.forecast.count, 50);
	assert_int_equal(submit(lab.h, whole(lab.tenant, 1)), 1);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_that_fits_starts_where_it_was_said),
		cmocka_unit_test(work_of_others_is_not_named),
		cmocka_unit_test(a_job_that_must_wait_is_told_when_and_where),
		cmocka_unit_test(jobs_ahead_are_counted),
		cmocka_unit_test(a_job_that_no_node_could_run_never_starts),
		cmocka_unit_test(what_keeps_a_job_back_is_named),
		cmocka_unit_test(a_limit_keeps_it_waiting),
		cmocka_unit_test(what_would_be_refused_is_refused),
		cmocka_unit_test(a_repeated_submission_names_its_job),
		cmocka_unit_test(an_array_is_foretold_by_its_first_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
