/* use_test.c - what nodes say about tasks: what they used, and what people should know */
#include "core/test/harness.h"

struct lab {
	struct harness *h;
	int64_t tenant, job;
};

static struct lab use_lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", 2, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	lab.job = submit(lab.h, memory(lab.tenant, 1000));
	pass(lab.h);
	return lab;
}

static struct command task_command(struct lab lab, enum command_kind kind)
{
	struct command command = { .kind = kind };

	command.task.reservation_id = right_of(lab.h, lab.job, 0);
	command.task.message = "";
	return command;
}

static const struct task_use *use(struct lab lab)
{
	return &job(lab.h, lab.job)->tasks[0].use;
}

static void what_all_runs_of_a_task_used_is_kept(void **unused)
{
	struct lab lab = use_lab_new();
	struct command command = task_command(lab, COMMAND_TASK_EXITED);

	(void)unused;
	must(lab.h,
	     harness_apply(lab.h, (struct command){ .kind = COMMAND_REQUEUE, .id = lab.job }));
	command.task.use = (struct task_use){ .peak_mib = 900,
		                              .gpu_ms = 100,
		                              .energy_mj = 5,
		                              .limit_mib = 1000,
		                              .guard_peak_mib = 950,
		                              .refusals = 2,
		                              .refused_mib = 70 };
	command.task.released = true;
	must(lab.h, harness_apply(lab.h, command));
	pass(lab.h);
	command = task_command(lab, COMMAND_TASK_EXITED);
	command.task.use =
	    (struct task_use){ .peak_mib = 500, .gpu_ms = 11, .energy_mj = 6, .unguarded = true };
	must(lab.h, harness_apply(lab.h, command));
	assert_int_equal(use(lab)->peak_mib, 900);
	assert_int_equal(use(lab)->gpu_ms, 111);
	assert_int_equal(use(lab)->energy_mj, 11);
	assert_int_equal(use(lab)->limit_mib, 1000);
	assert_int_equal(use(lab)->guard_peak_mib, 950);
	assert_int_equal(use(lab)->refusals, 2);
	assert_int_equal(use(lab)->refused_mib, 70);
	assert_true(use(lab)->unguarded);
	harness_free(lab.h);
}

static void numbers_out_of_all_reason_count_for_nothing(void **unused)
{
	struct lab lab = use_lab_new();
	struct command command = task_command(lab, COMMAND_TASK_EXITED);

	(void)unused;
	command.task.use = (struct task_use){ .peak_mib = -1, .gpu_ms = INT64_MAX };
	command.task.ago_ms = INT64_MIN;
	must(lab.h, harness_apply(lab.h, command));
	assert_int_equal(use(lab)->peak_mib, 0);
	assert_int_equal(use(lab)->gpu_ms, 0);
	assert_int_equal(job(lab.h, lab.job)->tasks[0].ended_ms, lab.h->now_ms);
	harness_free(lab.h);
}

static void a_task_ended_when_its_node_says_so(void **unused)
{
	struct lab lab = use_lab_new();
	struct command command = task_command(lab, COMMAND_TASK_EXITED);

	(void)unused;
	int64_t started_ms = job(lab.h, lab.job)->tasks[0].started_ms;
	time_passes(lab.h, 10000);
	command.task.ago_ms = 4000;
	must(lab.h, harness_apply(lab.h, command));
	assert_int_equal(job(lab.h, lab.job)->tasks[0].ended_ms, lab.h->now_ms - 4000);
	assert_true(job(lab.h, lab.job)->tasks[0].ended_ms > started_ms);
	harness_free(lab.h);
}

static void no_task_ended_before_it_started(void **unused)
{
	struct lab lab = use_lab_new();
	struct command command = task_command(lab, COMMAND_TASK_EXITED);

	(void)unused;
	command.task.ago_ms = 1000000;
	must(lab.h, harness_apply(lab.h, command));
	assert_int_equal(job(lab.h, lab.job)->tasks[0].ended_ms,
	                 job(lab.h, lab.job)->tasks[0].started_ms);
	harness_free(lab.h);
}

static bool has_event(const struct lab *lab, enum event_kind kind)
{
	bool told = false;

	for (size_t i = 0; i < lab->h->effects.count; i++)
		told = told || (lab->h->effects.at[i].kind == EFFECT_EVENT &&
		                lab->h->effects.at[i].event.kind == kind);
	return told;
}

static void a_notice_is_an_event_and_the_jobs_message(void **unused)
{
	struct lab lab = use_lab_new();
	struct command command = task_command(lab, COMMAND_TASK_NOTICE);

	(void)unused;
	command.task.notice = NOTICE_CROWDED;
	command.task.message = "others have its memory";
	must(lab.h, harness_apply(lab.h, command));
	assert_true(has_event(&lab, EVENT_TASK_CROWDED));
	command.task.notice = NOTICE_UNGUARDED;
	command.task.message = "it runs without";
	must(lab.h, harness_apply(lab.h, command));
	assert_true(has_event(&lab, EVENT_TASK_UNGUARDED));
	assert_string_equal(job(lab.h, lab.job)->s.message, "task 0: it runs without");
	command.task.notice = NOTICES;
	assert_false(harness_apply(lab.h, command));
	harness_free(lab.h);
}

static void why_a_node_stopped_a_task_is_why_its_job_failed(void **unused)
{
	struct lab lab = use_lab_new();
	struct command command = task_command(lab, COMMAND_TASK_EXITED);

	(void)unused;
	command.task.exit_code = 137;
	command.task.message = "it used too much";
	must(lab.h, harness_apply(lab.h, command));
	assert_string_equal(job(lab.h, lab.job)->s.message,
	                    "task 0 ended with 137: it used too much");
	harness_free(lab.h);
}

static void a_killed_task_says_so_in_place_of_its_code(void **unused)
{
	struct lab lab = use_lab_new();
	struct command command = task_command(lab, COMMAND_TASK_EXITED);

	(void)unused;
	command.task.exit_code = 137;
	command.task.message = "it was killed by signal 9 (SIGKILL)";
	must(lab.h, harness_apply(lab.h, command));
	assert_int_equal(job(lab.h, lab.job)->s.exit_code, 137);
	assert_string_equal(job(lab.h, lab.job)->s.message,
	                    "task 0 was killed by signal 9 (SIGKILL)");
	harness_free(lab.h);
}

/* The job runs and fails, while foreign memory took what it had reserved. */
static void fail_by_foreign(struct lab lab, bool released)
{
	struct command command = task_command(lab, COMMAND_TASK_STARTED);

	must(lab.h, harness_apply(lab.h, command));
	command = task_command(lab, COMMAND_TASK_EXITED);
	command.task.exit_code = 3;
	command.task.foreign = true;
	command.task.released = released;
	command.task.message = "others used 700 MiB of it";
	must(lab.h, harness_apply(lab.h, command));
}

static void what_fails_because_foreign_memory_took_its_own_is_queued_again(void **unused)
{
	struct lab lab = use_lab_new();

	(void)unused;
	fail_by_foreign(lab, true);
	assert_int_equal(job(lab.h, lab.job)->s.state, JOB_PENDING);
	assert_string_equal(
	    job(lab.h, lab.job)->s.message,
	    "task 0 ended with 3 while others used 700 MiB of it: queued again, 1 of "
	    "3 times");
	pass(lab.h);
	assert_null(job(lab.h, lab.job)->tasks[0].reservation); /* not at once */
	time_passes(lab.h, config_default().refuse_backoff_ms);
	pass(lab.h);
	assert_non_null(job(lab.h, lab.job)->tasks[0].reservation);
	harness_free(lab.h);
}

static void it_waits_for_its_memory_to_be_released_first(void **unused)
{
	struct lab lab = use_lab_new();

	(void)unused;
	fail_by_foreign(lab, false);
	int64_t right = right_of(lab.h, lab.job, 0);
	time_passes(lab.h, config_default().refuse_backoff_ms);
	pass(lab.h);
	assert_int_equal(right_of(lab.h, lab.job, 0), right);
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, right, 0, false));
	pass(lab.h);
	assert_int_not_equal(right_of(lab.h, lab.job, 0), right);
	harness_free(lab.h);
}

static void that_happens_a_few_times_and_then_it_fails(void **unused)
{
	struct lab lab = use_lab_new();

	(void)unused;
	for (int i = 0; i < 3; i++) {
		fail_by_foreign(lab, true);
		time_passes(lab.h, config_default().refuse_backoff_ms << i);
		pass(lab.h);
	}
	assert_int_equal(job(lab.h, lab.job)->s.foreign_requeues, 3);
	fail_by_foreign(lab, true);
	assert_int_equal(job(lab.h, lab.job)->s.state, JOB_FAILED);
	assert_int_equal(job(lab.h, lab.job)->s.exit_code, 3);
	harness_free(lab.h);
}

static void by_policy_it_fails_at_once(void **unused)
{
	struct lab lab = use_lab_new();
	struct command configure = { .kind = COMMAND_CONFIGURE, .configure = config_default() };

	(void)unused;
	configure.configure.foreign_requeues = 0;
	must(lab.h, harness_apply(lab.h, configure));
	fail_by_foreign(lab, true);
	assert_int_equal(job(lab.h, lab.job)->s.state, JOB_FAILED);
	harness_free(lab.h);
}

static void what_finished_while_it_was_told_to_stop_does_not_run_again(void **unused)
{
	struct lab lab = use_lab_new();
	struct job_record gang = memory(lab.tenant, 1000);

	(void)unused;
	gang.tasks = gang.min_available = 2;
	lab.job = submit(lab.h, gang);
	pass(lab.h);
	int64_t other = right_of(lab.h, lab.job, 1);
	must(lab.h, apply_to(lab.h, COMMAND_REQUEUE, lab.job));
	struct command command = task_command(lab, COMMAND_TASK_EXITED);
	command.task.finished = command.task.released = true;
	must(lab.h, harness_apply(lab.h, command));
	assert_int_equal(job(lab.h, lab.job)->tasks[0].state, TASK_ENDED);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, other, 0, true));
	pass(lab.h);
	assert_int_equal(right_of(lab.h, lab.job, 0), 0);
	assert_int_equal(state(lab.h, lab.job), JOB_RUNNING);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, lab.job, 1), 0, true));
	assert_int_equal(state(lab.h, lab.job), JOB_COMPLETED);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_all_runs_of_a_task_used_is_kept),
		cmocka_unit_test(numbers_out_of_all_reason_count_for_nothing),
		cmocka_unit_test(a_task_ended_when_its_node_says_so),
		cmocka_unit_test(no_task_ended_before_it_started),
		cmocka_unit_test(a_notice_is_an_event_and_the_jobs_message),
		cmocka_unit_test(why_a_node_stopped_a_task_is_why_its_job_failed),
		cmocka_unit_test(a_killed_task_says_so_in_place_of_its_code),
		cmocka_unit_test(what_fails_because_foreign_memory_took_its_own_is_queued_again),
		cmocka_unit_test(it_waits_for_its_memory_to_be_released_first),
		cmocka_unit_test(that_happens_a_few_times_and_then_it_fails),
		cmocka_unit_test(by_policy_it_fails_at_once),
		cmocka_unit_test(what_finished_while_it_was_told_to_stop_does_not_run_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
