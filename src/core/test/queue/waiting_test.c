/* waiting_test.c - what jobs wait for, and what their owners may do meanwhile */
#include "core/test/harness.h"

/* A tenant and one node of four GPUs. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab waiting_lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", 4, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static bool submit_array(struct harness *h, struct job_record job, int64_t from, int64_t to,
                         bool hold)
{
	struct submit_command submit = {
		.job = job, .array_from = from, .array_to = to, .hold = hold
	};

	return harness_apply(h, (struct command){ .kind = COMMAND_SUBMIT, .submit = submit });
}

static int64_t submit_held(struct harness *h, struct job_record job)
{
	struct submit_command submit = { .job = job, .hold = true };

	must(h, harness_apply(h, (struct command){ .kind = COMMAND_SUBMIT, .submit = submit }));
	return h->effects.reply_id;
}

static int64_t submit_after(struct lab lab, int64_t other, enum dependency kind)
{
	const int64_t row[] = { other, kind };
	struct job_record job = whole(lab.tenant, 1);

	job.depends = (struct rows){ row, 1 };
	return submit(lab.h, job);
}

/* Arrays. */

static void an_array_is_one_job_per_index(void **unused)
{
	struct lab lab = waiting_lab_new();

	(void)unused;
	must(lab.h, submit_array(lab.h, whole(lab.tenant, 1), 3, 5, false));
	int64_t first = lab.h->effects.reply_id;
	assert_int_equal(lab.h->effects.reply_count, 3);
	for (int64_t i = 0; i < 3; i++) {
		assert_int_equal(job(lab.h, first + i)->r.array_id, first);
		assert_int_equal(job(lab.h, first + i)->r.array_index, 3 + i);
	}
	assert_int_equal(pass(lab.h), 3);
	harness_free(lab.h);
}

static void an_array_that_does_not_rise_or_is_too_long_is_refused(void **unused)
{
	struct lab lab = waiting_lab_new();
	struct job_record job_with_limit = whole(lab.tenant, 1);

	(void)unused;
	must_not(lab.h, submit_array(lab.h, whole(lab.tenant, 1), 5, 3, false), ERROR_INVALID,
	         "array 5-3");
	must_not(lab.h, submit_array(lab.h, whole(lab.tenant, 1), INT64_MIN, INT64_MAX, false),
	         ERROR_INVALID, "array");
	must_not(lab.h, submit_array(lab.h, whole(lab.tenant, 1), 1, 10001, false), ERROR_INVALID,
	         "at most 10000");
	job_with_limit.array_limit = -1;
	must_not(lab.h, submit_array(lab.h, job_with_limit, 1, 2, false), ERROR_INVALID, "limit");
	harness_free(lab.h);
}

/* Elements 1 to `count` with at most `limit` of them at once; the id of the first. */
static int64_t submit_limited(struct lab lab, int64_t count, int64_t limit)
{
	struct job_record element = whole(lab.tenant, 1);

	element.array_limit = limit;
	must(lab.h, submit_array(lab.h, element, 1, count, false));
	return lab.h->effects.reply_id;
}

static int running_of(const struct lab lab, int64_t first, int64_t count)
{
	int running = 0;

	for (int64_t id = first; id < first + count; id++)
		running += placed(lab.h, id) > 0;
	return running;
}

static void an_array_with_a_limit_never_runs_more_than_that_at_once(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit_limited(lab, 7, 2);

	(void)unused;
	for (int64_t id = first; id < first + 7; id++) {
		pass(lab.h);
		assert_int_equal(running_of(lab, first, 7), id < first + 6 ? 2 : 1);
		assert_int_equal(state(lab.h, id), JOB_RUNNING);
		end_job(lab.h, id, 0);
	}
	harness_free(lab.h);
}

static void elements_of_a_limited_array_start_in_the_order_of_their_index(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit_limited(lab, 4, 2);

	(void)unused;
	assert_int_equal(pass(lab.h), 2);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	assert_int_equal(state(lab.h, first + 1), JOB_RUNNING);
	end_job(lab.h, first + 1, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, first + 2), JOB_RUNNING);
	assert_int_equal(state(lab.h, first + 3), JOB_PENDING);
	harness_free(lab.h);
}

static void a_held_element_gives_its_turn_to_the_next(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit_limited(lab, 4, 2);

	(void)unused;
	must(lab.h, apply_to(lab.h, COMMAND_HOLD, first));
	assert_int_equal(pass(lab.h), 2);
	assert_int_equal(state(lab.h, first), JOB_PENDING);
	assert_int_equal(state(lab.h, first + 2), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_released_element_goes_before_those_with_a_higher_index(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit_limited(lab, 4, 1);

	(void)unused;
	must(lab.h, apply_to(lab.h, COMMAND_HOLD, first));
	assert_int_equal(pass(lab.h), 1);
	must(lab.h, apply_to(lab.h, COMMAND_UNHOLD, first));
	assert_int_equal(pass(lab.h), 0);
	end_job(lab.h, first + 1, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_cancelled_element_gives_its_turn_to_the_next(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit_limited(lab, 4, 2);

	(void)unused;
	assert_int_equal(pass(lab.h), 2);
	must(lab.h, cancel(lab.h, first));
	must(lab.h, cancel(lab.h, first + 2));
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, first + 3), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_requeued_element_goes_before_those_with_a_higher_index(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit_limited(lab, 3, 1);

	(void)unused;
	assert_int_equal(pass(lab.h), 1);
	must(lab.h, apply_to(lab.h, COMMAND_REQUEUE, first));
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	harness_free(lab.h);
}

static void an_element_that_was_growing_gives_its_turn_up_with_its_last_task(void **unused)
{
	struct lab lab = waiting_lab_new();
	struct job_record element = whole(lab.tenant, 1);

	(void)unused;
	element.tasks = 5;
	element.min_available = 1;
	element.array_limit = 1;
	must(lab.h, submit_array(lab.h, element, 1, 2, false));
	int64_t first = lab.h->effects.reply_id;
	must(lab.h, apply_to(lab.h, COMMAND_HOLD, first));
	pass(lab.h);
	assert_int_equal(placed(lab.h, first + 1), 4);
	must(lab.h, apply_to(lab.h, COMMAND_UNHOLD, first));
	must(lab.h, apply_to(lab.h, COMMAND_REQUEUE, first + 1));
	confirm_stops(lab.h);
	assert_non_null(job(lab.h, first)->class);
	assert_null(job(lab.h, first + 1)->class);
	harness_free(lab.h);
}

static void a_large_array_costs_no_more_for_having_a_limit(void **unused)
{
	enum { ELEMENTS = 10000 };
	struct lab lab = waiting_lab_new();
	int64_t first = submit_limited(lab, ELEMENTS, ELEMENTS / 2);

	(void)unused;
	assert_int_equal(lab.h->sched->queued, ELEMENTS / 2);
	for (int64_t i = 0; i < ELEMENTS / 2; i++)
		must(lab.h, cancel(lab.h, first + i));
	assert_int_equal(pass(lab.h), 4);
	assert_int_equal(state(lab.h, first + ELEMENTS / 2), JOB_RUNNING);
	harness_free(lab.h);
}

/* Dependencies. */

static void a_job_waits_until_what_it_depends_on_succeeded(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit(lab.h, whole(lab.tenant, 1));
	int64_t second = submit_after(lab, first, AFTER_SUCCESS);

	(void)unused;
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, second), JOB_PENDING);
	end_job(lab.h, first, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_job_whose_dependency_failed_is_cancelled_with_the_reason(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit(lab.h, whole(lab.tenant, 1));
	int64_t second = submit_after(lab, first, AFTER_SUCCESS);
	int64_t third = submit_after(lab, second, AFTER_SUCCESS);

	(void)unused;
	pass(lab.h);
	end_job(lab.h, first, 1);
	assert_int_equal(state(lab.h, second), JOB_CANCELLED);
	assert_non_null(strstr(job(lab.h, second)->s.message, "job-1, which it depends on"));
	assert_int_equal(state(lab.h, third), JOB_CANCELLED);
	harness_free(lab.h);
}

static void a_job_that_waits_for_any_end_goes_on_after_a_failure(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit(lab.h, whole(lab.tenant, 1));
	int64_t second = submit_after(lab, first, AFTER_ANY);

	(void)unused;
	must(lab.h, cancel(lab.h, first));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_job_waits_for_all_that_it_depends_on(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit(lab.h, whole(lab.tenant, 1));
	int64_t second = submit(lab.h, whole(lab.tenant, 1));
	const int64_t rows[] = { first, AFTER_SUCCESS, second, AFTER_ANY, first, AFTER_SUCCESS };
	struct job_record both = whole(lab.tenant, 1);

	(void)unused;
	both.depends = (struct rows){ rows, 3 };
	int64_t third = submit(lab.h, both);
	assert_int_equal(pass(lab.h), 2);
	end_job(lab.h, first, 0);
	assert_int_equal(pass(lab.h), 0);
	end_job(lab.h, second, 7);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, third), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_job_may_wait_for_all_of_an_array(void **unused)
{
	struct lab lab = waiting_lab_new();
	const int64_t indices[] = { 3, 5, 9 };
	struct submit_command submission = { .job = whole(lab.tenant, 1),
		                             .array_from = 3,
		                             .array_to = 9,
		                             .array_indices = { indices, 3 } };

	(void)unused;
	must(lab.h, harness_apply(
			lab.h, (struct command){ .kind = COMMAND_SUBMIT, .submit = submission }));
	int64_t first = lab.h->effects.reply_id;
	assert_int_equal(lab.h->effects.reply_count, 3);
	assert_int_equal(job(lab.h, first + 2)->r.array_index, 9);
	assert_int_equal(job(lab.h, first + 1)->r.array_count, 3);
	/* Any of its jobs stands for the array. */
	const int64_t row[] = { first + 1, AFTER_SUCCESS, 0 };
	struct job_record job_after = whole(lab.tenant, 1);
	job_after.depends_arrays = (struct rows){ row, 1 };
	int64_t last = submit(lab.h, job_after);
	assert_int_equal(pass(lab.h), 3);
	for (int64_t id = first; id < first + 3; id++) {
		assert_int_equal(pass(lab.h), 0);
		end_job(lab.h, id, 0);
	}
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, last), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_job_waits_for_the_time_that_it_is_to_begin_at(void **unused)
{
	struct lab lab = waiting_lab_new();
	struct job_record later = whole(lab.tenant, 1);

	(void)unused;
	later.begin_ms = lab.h->now_ms + 60000;
	int64_t id = submit(lab.h, later);
	assert_int_equal(pass(lab.h), 0);
	time_passes(lab.h, 60000);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void what_has_ended_already_is_not_waited_for(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t good = submit(lab.h, whole(lab.tenant, 1));
	int64_t bad = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	pass(lab.h);
	end_job(lab.h, good, 0);
	end_job(lab.h, bad, 1);
	submit_after(lab, good, AFTER_SUCCESS);
	submit_after(lab, bad, AFTER_ANY);
	assert_int_equal(pass(lab.h), 2);
	harness_free(lab.h);
}

static void the_success_of_a_job_that_failed_cannot_be_waited_for(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t bad = submit(lab.h, whole(lab.tenant, 1));
	const int64_t row[] = { bad, AFTER_SUCCESS };
	struct job_record job_after = whole(lab.tenant, 1);

	(void)unused;
	must(lab.h, cancel(lab.h, bad));
	job_after.depends = (struct rows){ row, 1 };
	must_not(lab.h, try_submit(lab.h, job_after), ERROR_CONFLICT, "did not succeed");
	harness_free(lab.h);
}

static void only_known_jobs_of_the_same_tenant_can_be_depended_on(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t other = put_tenant(lab.h, tenant_named("other"));
	int64_t theirs = submit(lab.h, whole(other, 1));
	int64_t row[] = { theirs, AFTER_ANY };
	struct job_record job_after = whole(lab.tenant, 1);

	(void)unused;
	job_after.depends = (struct rows){ row, 1 };
	must_not(lab.h, try_submit(lab.h, job_after), ERROR_NOT_FOUND, "job-1, which is not known");
	row[0] = 99;
	must_not(lab.h, try_submit(lab.h, job_after), ERROR_NOT_FOUND,
	         "job-99, which is not known");
	row[1] = 5;
	must_not(lab.h, try_submit(lab.h, job_after), ERROR_INVALID, "unknown kind of dependency");
	harness_free(lab.h);
}

static void a_chain_of_any_length_ends_with_its_first_job(void **unused)
{
	enum { LENGTH = 20000 };
	struct lab lab = waiting_lab_new();
	int64_t first = submit(lab.h, whole(lab.tenant, 1)), last = first;

	(void)unused;
	for (int i = 1; i < LENGTH; i++)
		last = submit_after(lab, last, AFTER_SUCCESS);
	must(lab.h, cancel(lab.h, first));
	assert_int_equal(state(lab.h, last), JOB_CANCELLED);
	assert_int_equal(lab.h->sched->waiting_tasks, 0);
	harness_free(lab.h);
}

/* Hold and release. */

static void a_held_job_does_not_start_until_it_is_released(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t id = submit_held(lab.h, whole(lab.tenant, 1));

	(void)unused;
	assert_int_equal(pass(lab.h), 0);
	must(lab.h, apply_to(lab.h, COMMAND_UNHOLD, id));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void only_what_is_held_can_be_released(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	must_not(lab.h, apply_to(lab.h, COMMAND_UNHOLD, id), ERROR_CONFLICT, "job-1 is not held");
	must_not(lab.h, apply_to(lab.h, COMMAND_UNHOLD, 99), ERROR_NOT_FOUND,
	         "job-99 is not known");
	harness_free(lab.h);
}

static void a_running_job_cannot_be_held(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	pass(lab.h);
	must_not(lab.h, apply_to(lab.h, COMMAND_HOLD, id), ERROR_CONFLICT, "requeue it first");
	harness_free(lab.h);
}

static void holding_a_job_gives_up_its_claim(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t first = submit(lab.h, whole(lab.tenant, 4));

	(void)unused;
	pass(lab.h);
	must(lab.h, cancel(lab.h, first));
	int64_t second = submit(lab.h, whole(lab.tenant, 4));
	pass(lab.h);
	assert_true(has_claim(lab.h, second));
	must(lab.h, apply_to(lab.h, COMMAND_HOLD, second));
	assert_false(has_claim(lab.h, second));
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.claims, 0);
	harness_free(lab.h);
}

static void a_job_that_is_held_while_it_stops_stays_when_its_memory_is_back(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	pass(lab.h);
	must(lab.h, apply_to(lab.h, COMMAND_REQUEUE, id));
	must(lab.h, apply_to(lab.h, COMMAND_HOLD, id));
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(state(lab.h, id), JOB_PENDING);
	must(lab.h, apply_to(lab.h, COMMAND_UNHOLD, id));
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void a_job_that_is_over_takes_no_more_wishes(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	must(lab.h, cancel(lab.h, id));
	must_not(lab.h, cancel(lab.h, id), ERROR_CONFLICT, "already finished");
	must_not(lab.h, apply_to(lab.h, COMMAND_HOLD, id), ERROR_CONFLICT, "already finished");
	must_not(lab.h, apply_to(lab.h, COMMAND_UNHOLD, id), ERROR_CONFLICT, "not held");
	must_not(lab.h, apply_to(lab.h, COMMAND_REQUEUE, id), ERROR_CONFLICT, "is not running");
	must_not(lab.h, reprioritise(lab.h, id, 900), ERROR_CONFLICT, "already finished");
	harness_free(lab.h);
}

/* Deadlines. */

static void a_job_that_misses_its_deadline_while_it_waits_has_failed(void **unused)
{
	struct lab lab = waiting_lab_new();
	struct job_record too_big = whole(lab.tenant, 8);

	(void)unused;
	too_big.deadline_ms = lab.h->now_ms + 60000;
	int64_t id = submit(lab.h, too_big);
	time_passes(lab.h, 59999);
	assert_int_equal(state(lab.h, id), JOB_PENDING);
	time_passes(lab.h, 1);
	assert_int_equal(state(lab.h, id), JOB_FAILED);
	assert_non_null(strstr(job(lab.h, id)->s.message, "deadline"));
	harness_free(lab.h);
}

static void a_job_that_runs_at_its_deadline_goes_on(void **unused)
{
	struct lab lab = waiting_lab_new();
	struct job_record job_with_deadline = whole(lab.tenant, 1);

	(void)unused;
	job_with_deadline.deadline_ms = lab.h->now_ms + 60000;
	int64_t id = submit(lab.h, job_with_deadline);
	pass(lab.h);
	time_passes(lab.h, 120000);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_claim_that_lapses_after_the_deadline_ends_the_job(void **unused)
{
	struct lab lab = waiting_lab_new();
	struct job_record job_with_deadline = whole(lab.tenant, 4);
	int64_t first = submit(lab.h, whole(lab.tenant, 4));

	(void)unused;
	pass(lab.h);
	must(lab.h, cancel(lab.h, first));
	job_with_deadline.deadline_ms = lab.h->now_ms + 60000;
	int64_t id = submit(lab.h, job_with_deadline);
	pass(lab.h);
	lab.h->now_ms += 60000;
	pass(lab.h);
	assert_true(has_claim(lab.h, id));
	lab.h->now_ms += config_default().grace_ms + config_default().release_timeout_ms;
	pass(lab.h);
	assert_int_equal(state(lab.h, id), JOB_FAILED);
	pass(lab.h);
	assert_int_equal(lab.h->effects.count, 0);
	harness_free(lab.h);
}

static void a_held_job_misses_its_deadline_too(void **unused)
{
	struct lab lab = waiting_lab_new();
	struct job_record job_with_deadline = whole(lab.tenant, 1);

	(void)unused;
	job_with_deadline.deadline_ms = lab.h->now_ms + 60000;
	int64_t id = submit_held(lab.h, job_with_deadline);
	time_passes(lab.h, 60000);
	assert_int_equal(state(lab.h, id), JOB_FAILED);
	harness_free(lab.h);
}

static void a_job_is_urgent_while_its_deadline_leaves_time_to_run_it_twice(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t all = submit(lab.h, whole(lab.tenant, 4));
	struct job_record urgent = whole(lab.tenant, 4), other = whole(lab.tenant, 4);

	(void)unused;
	pass(lab.h);
	other.priority = 600;
	int64_t before = submit(lab.h, other);
	urgent.max_runtime_ms = 600000;
	urgent.deadline_ms = lab.h->now_ms + 3000000;
	int64_t id = submit(lab.h, urgent);
	time_passes(lab.h, 1800000);
	end_job(lab.h, all, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_int_equal(state(lab.h, before), JOB_PENDING);
	harness_free(lab.h);
}

static void before_that_a_deadline_changes_nothing(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t all = submit(lab.h, whole(lab.tenant, 4));
	struct job_record urgent = whole(lab.tenant, 4), other = whole(lab.tenant, 4);

	(void)unused;
	pass(lab.h);
	other.priority = 600;
	int64_t before = submit(lab.h, other);
	urgent.max_runtime_ms = 600000;
	urgent.deadline_ms = lab.h->now_ms + 3000000;
	submit(lab.h, urgent);
	time_passes(lab.h, 1799999);
	end_job(lab.h, all, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, before), JOB_RUNNING);
	harness_free(lab.h);
}

/* Priority, and another try. */

static void a_raised_priority_is_served_first(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t all = submit(lab.h, whole(lab.tenant, 4));

	(void)unused;
	pass(lab.h);
	int64_t first = submit(lab.h, whole(lab.tenant, 3)),
		second = submit(lab.h, whole(lab.tenant, 3));
	must(lab.h, reprioritise(lab.h, second, 501));
	end_job(lab.h, all, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	assert_int_equal(state(lab.h, first), JOB_PENDING);
	harness_free(lab.h);
}

static void a_priority_out_of_range_is_refused(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	must_not(lab.h, reprioritise(lab.h, id, INT64_C(1) << 40), ERROR_INVALID, "out of range");
	assert_int_equal(job(lab.h, id)->r.priority, 500);
	harness_free(lab.h);
}

static void a_requeued_job_stops_and_starts_again_when_its_memory_is_back(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 4));

	(void)unused;
	pass(lab.h);
	int64_t before = right_of(lab.h, id, 0);
	must(lab.h, apply_to(lab.h, COMMAND_REQUEUE, id));
	assert_int_equal(lab.h->stop_count, 1);
	assert_int_equal(state(lab.h, id), JOB_PREEMPTED);
	assert_int_equal(pass(lab.h), 0);
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_int_not_equal(right_of(lab.h, id, 0), before);
	assert_int_equal(job(lab.h, id)->s.preempted_count, 0);
	harness_free(lab.h);
}

static void a_refused_start_is_tried_again_later_and_later(void **unused)
{
	struct lab lab = waiting_lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	int64_t started[4];

	(void)unused;
	for (int64_t wait_ms = 5000; wait_ms <= 20000; wait_ms *= 2) {
		must(lab.h,
		     harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 9 }));
		assert_int_equal(read_orders(lab.h, started), 1);
		must(lab.h, to_task(lab.h, COMMAND_TASK_REFUSED, started[0], 0, false));
		assert_int_equal(state(lab.h, id), JOB_PENDING);
		lab.h->now_ms += wait_ms - 1;
		assert_int_equal(pass(lab.h), 0);
		lab.h->now_ms++;
	}
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_is_one_job_per_index),
		cmocka_unit_test(an_array_that_does_not_rise_or_is_too_long_is_refused),
		cmocka_unit_test(an_array_with_a_limit_never_runs_more_than_that_at_once),
		cmocka_unit_test(elements_of_a_limited_array_start_in_the_order_of_their_index),
		cmocka_unit_test(a_held_element_gives_its_turn_to_the_next),
		cmocka_unit_test(a_released_element_goes_before_those_with_a_higher_index),
		cmocka_unit_test(a_cancelled_element_gives_its_turn_to_the_next),
		cmocka_unit_test(a_requeued_element_goes_before_those_with_a_higher_index),
		cmocka_unit_test(an_element_that_was_growing_gives_its_turn_up_with_its_last_task),
		cmocka_unit_test(a_large_array_costs_no_more_for_having_a_limit),
		cmocka_unit_test(a_job_waits_until_what_it_depends_on_succeeded),
		cmocka_unit_test(a_job_whose_dependency_failed_is_cancelled_with_the_reason),
		cmocka_unit_test(a_job_that_waits_for_any_end_goes_on_after_a_failure),
		cmocka_unit_test(a_job_waits_for_all_that_it_depends_on),
		cmocka_unit_test(a_job_may_wait_for_all_of_an_array),
		cmocka_unit_test(a_job_waits_for_the_time_that_it_is_to_begin_at),
		cmocka_unit_test(what_has_ended_already_is_not_waited_for),
		cmocka_unit_test(the_success_of_a_job_that_failed_cannot_be_waited_for),
		cmocka_unit_test(only_known_jobs_of_the_same_tenant_can_be_depended_on),
		cmocka_unit_test(a_chain_of_any_length_ends_with_its_first_job),
		cmocka_unit_test(a_held_job_does_not_start_until_it_is_released),
		cmocka_unit_test(only_what_is_held_can_be_released),
		cmocka_unit_test(a_running_job_cannot_be_held),
		cmocka_unit_test(holding_a_job_gives_up_its_claim),
		cmocka_unit_test(a_job_that_is_held_while_it_stops_stays_when_its_memory_is_back),
		cmocka_unit_test(a_job_that_is_over_takes_no_more_wishes),
		cmocka_unit_test(a_job_that_misses_its_deadline_while_it_waits_has_failed),
		cmocka_unit_test(a_job_that_runs_at_its_deadline_goes_on),
		cmocka_unit_test(a_claim_that_lapses_after_the_deadline_ends_the_job),
		cmocka_unit_test(a_held_job_misses_its_deadline_too),
		cmocka_unit_test(a_job_is_urgent_while_its_deadline_leaves_time_to_run_it_twice),
		cmocka_unit_test(before_that_a_deadline_changes_nothing),
		cmocka_unit_test(a_raised_priority_is_served_first),
		cmocka_unit_test(a_priority_out_of_range_is_refused),
		cmocka_unit_test(a_requeued_job_stops_and_starts_again_when_its_memory_is_back),
		cmocka_unit_test(a_refused_start_is_tried_again_later_and_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
