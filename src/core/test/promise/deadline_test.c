/* deadline_test.c - jobs that may miss their deadline are told so, and go first */
#include "core/test/harness.h"

#define MINUTE INT64_C(60000)

/* A node with one GPU, a tenant, and jobs that take ten minutes. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab deadline_lab_new(bool first)
{
	struct lab lab = { .h = harness_new() };
	struct config_record config = config_default();

	config.deadline_first = first;
	configure(lab.h, config);
	add_node(lab.h, "n1", 1, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	for (int i = 0; i < 20; i++) {
		int64_t id = submit(lab.h, whole(lab.tenant, 1));
		assert_int_equal(pass(lab.h), 1);
		time_passes(lab.h, 10 * MINUTE);
		end_job(lab.h, id, 0);
	}
	return lab;
}

static int64_t submit_due(struct lab lab, int64_t within_ms)
{
	struct job_record job_record = whole(lab.tenant, 1);

	job_record.deadline_ms = lab.h->now_ms + within_ms;
	return submit(lab.h, job_record);
}

static int64_t risk(struct lab lab, int64_t id)
{
	return job(lab.h, id)->s.deadline_risk;
}

static bool was_told(const struct harness *h, int64_t id)
{
	for (size_t i = 0; i < h->effects.count; i++)
		if (h->effects.at[i].kind == EFFECT_EVENT &&
		    h->effects.at[i].event.kind == EVENT_JOB_DEADLINE &&
		    h->effects.at[i].event.job_id == id)
			return true;
	return false;
}

static void the_risk_is_known_at_submission(void **unused)
{
	struct lab lab = deadline_lab_new(false);

	(void)unused;
	int64_t late = submit_due(lab, 2 * MINUTE);
	assert_true(was_told(lab.h, late));
	assert_in_range(risk(lab, late), 900, 1000);
	assert_non_null(strstr(why(lab.h, late), "it misses its deadline of "));
	int64_t early = submit_due(lab, 200 * MINUTE);
	assert_false(was_told(lab.h, early));
	assert_in_range(risk(lab, early), 1, 100);
	assert_null(strstr(why(lab.h, early), "deadline"));
	int64_t none = submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(risk(lab, none), 0);
	harness_free(lab.h);
}

/* It would have been in time, but the GPU is not given back. */
static void a_job_that_waits_too_long_is_told_when_that_is_so(void **unused)
{
	struct lab lab = deadline_lab_new(false);
	bool told = false;

	(void)unused;
	submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 1);
	int64_t id = submit_due(lab, 60 * MINUTE);
	assert_true(risk(lab, id) < 200);
	for (int i = 0; i < 58; i++) {
		time_passes(lab.h, MINUTE);
		told = told || was_told(lab.h, id);
		pass(lab.h);
	}
	assert_true(told);
	assert_in_range(risk(lab, id), 800, 1000);
	harness_free(lab.h);
}

static void a_running_job_is_looked_at_until_its_deadline(void **unused)
{
	struct lab lab = deadline_lab_new(false);

	(void)unused;
	int64_t id = submit_due(lab, 30 * MINUTE);
	assert_int_equal(pass(lab.h), 1);
	for (int i = 0; i < 35; i++)
		time_passes(lab.h, MINUTE);
	assert_int_equal(risk(lab, id), 1000);
	assert_int_equal(job(lab.h, id)->s.look_ms, 0);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

/* Any risk counts here; long before the deadline its age decides otherwise. */
static void by_policy_it_goes_before_others_of_its_priority(void **unused)
{
	(void)unused;
	for (int first = 0; first < 2; first++) {
		struct lab lab = deadline_lab_new(first == 1);
		struct config_record config = lab.h->sched->config;
		config.deadline_risk = 1;
		configure(lab.h, config);
		int64_t runs = submit(lab.h, whole(lab.tenant, 1));
		assert_int_equal(pass(lab.h), 1);
		int64_t other = submit(lab.h, whole(lab.tenant, 1));
		int64_t due = submit_due(lab, 300 * MINUTE);
		assert_int_equal(job(lab.h, due)->s.urgent_ms > 0, first);
		end_job(lab.h, runs, 0);
		assert_int_equal(pass(lab.h), 1);
		assert_int_equal(state(lab.h, first ? due : other), JOB_RUNNING);
		harness_free(lab.h);
	}
}

static void nothing_is_told_where_that_is_switched_off(void **unused)
{
	struct lab lab = deadline_lab_new(false);
	struct config_record config = config_default();

	(void)unused;
	int64_t id = submit_due(lab, 60 * MINUTE);
	config.deadline_risk = 0;
	configure(lab.h, config);
	for (int i = 0; i < 10; i++)
		time_passes(lab.h, MINUTE);
	assert_int_equal(job(lab.h, id)->s.look_ms, 0);
	int64_t late = submit_due(lab, 2 * MINUTE);
	assert_false(was_told(lab.h, late));
	assert_int_equal(risk(lab, late), 0);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_risk_is_known_at_submission),
		cmocka_unit_test(a_job_that_waits_too_long_is_told_when_that_is_so),
		cmocka_unit_test(a_running_job_is_looked_at_until_its_deadline),
		cmocka_unit_test(by_policy_it_goes_before_others_of_its_priority),
		cmocka_unit_test(nothing_is_told_where_that_is_switched_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
