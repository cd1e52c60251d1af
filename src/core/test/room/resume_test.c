/* resume_test.c - suspended jobs get their GPUs back, or start again elsewhere */
#include "core/test/harness.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab resume_lab_new(int64_t suspend_wait_ms)
{
	struct lab lab = { .h = harness_new() };
	struct config_record config = config_default();

	add_node(lab.h, "n1", 1, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	config.suspend = SUSPEND_ALWAYS;
	config.suspend_wait_ms = suspend_wait_ms;
	config.ageing_per_minute = 0;
	configure(lab.h, config);
	return lab;
}

static int64_t submit_ranked(struct lab lab, int64_t priority)
{
	struct job_record job_record = whole(lab.tenant, 1);

	job_record.priority = priority;
	return submit(lab.h, job_record);
}

static void confirm_suspends(struct lab lab, int64_t id)
{
	const struct reservation *reservation = job(lab.h, id)->tasks[0].reservation;

	assert_int_equal(reservation->phase, PHASE_SUSPENDING);
	must(lab.h, to_task(lab.h, COMMAND_TASK_SUSPENDED, reservation->id, 0, true));
	pass(lab.h);
}

/* A job that ran for `ran_ms` makes way for another of higher priority. */
static int64_t suspend_one(struct lab lab, int64_t ran_ms, int64_t *higher)
{
	int64_t low = submit_ranked(lab, 100);

	pass(lab.h);
	time_passes(lab.h, ran_ms);
	*higher = submit_ranked(lab, 900);
	pass(lab.h);
	confirm_suspends(lab, low);
	assert_int_equal(state(lab.h, low), JOB_SUSPENDED);
	assert_int_equal(state(lab.h, *higher), JOB_RUNNING);
	return low;
}

static void after(struct lab lab, int64_t ms)
{
	time_passes(lab.h, ms);
	pass(lab.h);
	confirm_stops(lab.h);
	pass(lab.h);
}

static void it_resumes_when_its_gpu_is_free(void **unused)
{
	struct lab lab = resume_lab_new(HOUR);
	int64_t higher, low = suspend_one(lab, 3 * HOUR, &higher);

	(void)unused;
	end_job(lab.h, higher, 0);
	pass(lab.h);
	assert_int_equal(job(lab.h, low)->tasks[0].reservation->phase, PHASE_RESUMING);
	harness_free(lab.h);
}

static void it_waits_as_long_as_the_work_that_starting_again_would_lose(void **unused)
{
	struct lab lab = resume_lab_new(HOUR);
	int64_t higher, low = suspend_one(lab, 3 * HOUR, &higher);

	(void)unused;
	after(lab, 3 * HOUR - MINUTE);
	assert_int_equal(state(lab.h, low), JOB_SUSPENDED);
	after(lab, MINUTE);
	assert_int_equal(state(lab.h, low), JOB_PENDING);
	add_node(lab.h, "n2", 1, 80000);
	pass(lab.h);
	assert_int_equal(state(lab.h, low), JOB_RUNNING);
	harness_free(lab.h);
}

static void one_with_a_checkpoint_waits_no_longer_than_the_setting_says(void **unused)
{
	struct lab lab = resume_lab_new(HOUR);
	int64_t low = submit_ranked(lab, 100);

	(void)unused;
	pass(lab.h);
	time_passes(lab.h, 3 * HOUR);
	submit_ranked(lab, 900);
	pass(lab.h);
	/* It wrote a checkpoint just before, and its node says so after the order. */
	must(lab.h, to_task(lab.h, COMMAND_TASK_CHECKPOINT,
	                    job(lab.h, low)->tasks[0].reservation->id, 0, false));
	confirm_suspends(lab, low);
	after(lab, HOUR - MINUTE);
	assert_int_equal(state(lab.h, low), JOB_SUSPENDED);
	after(lab, MINUTE);
	assert_int_equal(state(lab.h, low), JOB_PENDING);
	harness_free(lab.h);
}

static void one_that_a_person_suspended_waits_for_a_person(void **unused)
{
	struct lab lab = resume_lab_new(HOUR);
	int64_t low = submit_ranked(lab, 100);

	(void)unused;
	pass(lab.h);
	time_passes(lab.h, HOUR);
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_SUSPEND, .id = low }));
	confirm_suspends(lab, low);
	after(lab, 1000 * HOUR);
	assert_int_equal(state(lab.h, low), JOB_SUSPENDED);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_resumes_when_its_gpu_is_free),
		cmocka_unit_test(it_waits_as_long_as_the_work_that_starting_again_would_lose),
		cmocka_unit_test(one_with_a_checkpoint_waits_no_longer_than_the_setting_says),
		cmocka_unit_test(one_that_a_person_suspended_waits_for_a_person),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
