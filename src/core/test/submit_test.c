/* submit_test.c - taking jobs in, and what their owners may do with them while they wait */
#include "harness.h"

/* A tenant and one node of four GPUs. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", 4, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static bool submit_array(struct harness *h, struct job_record job, int64_t from, int64_t to,
                         bool hold)
{
	struct submit_command submit = { .job = job, .array_from = from, .array_to = to, .hold = hold };

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

/* Validation. */

static void what_makes_no_sense_is_refused_with_the_field_that_is_wrong(void **unused)
{
	struct lab lab = lab_new();
	struct job_record job;

	(void)unused;
	job = whole(lab.tenant, 0);
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "gpu_count is 0");
	job = whole(lab.tenant, PARTS_MAX + 1);
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "gpu_count is 17");
	job = job_of(lab.tenant, GPU_NONE, 1);
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "gpu_count is 1 for a job without");
	job = fraction(lab.tenant, 1001);
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "gpu_fraction is 1001/1000");
	job = fraction(lab.tenant, 0);
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "gpu_fraction is 0/1000");
	job = memory(lab.tenant, 0);
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "gpu_memory is 0 MiB");
	job = whole(lab.tenant, 1);
	job.memory_mib = -1;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "gpu_memory is -1");
	job = whole(lab.tenant, 1);
	job.cpu_milli = -1;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "cpu_cores is -1");
	job = whole(lab.tenant, 1);
	job.host_bytes = -1;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "memory is -1");
	job = whole(lab.tenant, 1);
	job.tasks = TASKS_MAX + 1;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "tasks is 4097");
	job = whole(lab.tenant, 1);
	job.tasks = 2;
	job.min_available = 3;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "min_available is 3");
	job = whole(lab.tenant, 1);
	job.deadline_ms = lab.h->now_ms;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "deadline");
	job = whole(lab.tenant, 1);
	job.closeness = CLOSE_RACK + 1;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "closeness");
	job = whole(lab.tenant, 1);
	job.lease_loss = LEASE_STOP + 1;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "on_lease_loss");
	job = whole(lab.tenant, 1);
	job.priority = INT64_C(1) << 40;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "priority");
	job = job_of(lab.tenant, GPU_WHOLE + 100, 1);
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "unknown way");
	job = fraction(lab.tenant, 500);
	job.split_gpus = 20;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "only whole GPUs can be split");
	job = whole(lab.tenant + 1, 1);
	must_not(lab.h, try_submit(lab.h, job), ERROR_NOT_FOUND, "tenant-2 is not known");
	harness_free(lab.h);
}

static void uneven_parts_must_be_as_many_as_the_gpus_and_positive(void **unused)
{
	struct lab lab = lab_new();
	static const int64_t parts[] = { 1000, 0 };
	struct job_record job = job_of(lab.tenant, GPU_UNEVEN, 2);

	(void)unused;
	job.uneven = (struct rows){ parts, 1 };
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "1 amounts of memory for 2 GPUs");
	job.uneven = (struct rows){ parts, 2 };
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "part 1 is 0 MiB");
	harness_free(lab.h);
}

static void amounts_that_no_cluster_has_are_refused(void **unused)
{
	struct lab lab = lab_new();
	static const int64_t parts[] = { INT64_MAX };
	struct job_record job;

	(void)unused;
	job = memory(lab.tenant, INT64_MAX);
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "gpu_memory");
	job = job_of(lab.tenant, GPU_UNEVEN, 1);
	job.uneven = (struct rows){ parts, 1 };
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "GPU memory of part 0");
	job = whole(lab.tenant, 1);
	job.cpu_milli = INT64_MAX;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "cpu_cores");
	job = whole(lab.tenant, 1);
	job.host_bytes = INT64_MAX;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "memory");
	job = whole(lab.tenant, 1);
	job.max_runtime_ms = INT64_MAX;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "max_runtime");
	job = whole(lab.tenant, 1);
	job.deadline_ms = INT64_MAX;
	must_not(lab.h, try_submit(lab.h, job), ERROR_INVALID, "deadline");
	harness_free(lab.h);
}

static void more_than_can_be_counted_may_wait(void **unused)
{
	struct lab lab = lab_new();
	struct job_record job = whole(lab.tenant, 1);

	(void)unused;
	job.host_bytes = INT64_C(1) << 48;
	job.tasks = TASKS_MAX;
	must(lab.h, submit_array(lab.h, job, 1, 100, false));
	assert_int_equal(pass(lab.h), 0);
	int64_t small = submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, small), JOB_RUNNING);
	harness_free(lab.h);
}

/* The effects of three commands after a fourth that may have been refused. */
static void effects_after(struct buffer *effects, bool refused)
{
	struct lab lab = lab_new();
	struct job_record bad = whole(lab.tenant, 99);

	submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	lab.h->now_ms += 60000;
	if (refused)
		must_not(lab.h, try_submit(lab.h, bad), ERROR_INVALID, "gpu_count");
	lab.h->now_ms -= 30000;
	submit(lab.h, whole(lab.tenant, 2));
	effects_encode(effects, &lab.h->effects);
	pass(lab.h);
	effects_encode(effects, &lab.h->effects);
	end_job(lab.h, 1, 0);
	effects_encode(effects, &lab.h->effects);
	harness_free(lab.h);
}

static void a_refused_submission_leaves_no_trace(void **unused)
{
	struct buffer with = { 0 }, without = { 0 };

	(void)unused;
	effects_after(&with, true);
	effects_after(&without, false);
	assert_int_equal(with.size, without.size);
	assert_memory_equal(with.data, without.data, with.size);
	buffer_free(&with);
	buffer_free(&without);
}

static void gangs_are_refused_where_they_are_switched_off(void **unused)
{
	struct lab lab = lab_new();
	struct config_record config = config_default();
	struct job_record gang = whole(lab.tenant, 1);

	(void)unused;
	config.enable_gangs = false;
	configure(lab.h, config);
	gang.tasks = 2;
	must_not(lab.h, try_submit(lab.h, gang), ERROR_FORBIDDEN, "gangs are switched off");
	gang.min_available = 1;
	submit(lab.h, gang);
	harness_free(lab.h);
}

/* Defaults. */

static void what_is_left_out_gets_its_default(void **unused)
{
	struct lab lab = lab_new();
	struct job_record gang = whole(lab.tenant, 1);

	(void)unused;
	int64_t id = submit(lab.h, gang);
	assert_int_equal(job(lab.h, id)->r.priority, 500);
	assert_int_equal(job(lab.h, id)->r.tasks, 1);
	assert_int_equal(job(lab.h, id)->r.min_available, 1);
	assert_int_equal(job(lab.h, id)->r.submitted_ms, lab.h->now_ms);
	gang.tasks = 3;
	id = submit(lab.h, gang);
	assert_int_equal(job(lab.h, id)->r.min_available, 3);
	harness_free(lab.h);
}

static void a_fraction_of_1000_is_a_whole_gpu(void **unused)
{
	struct lab lab = lab_new();

	(void)unused;
	int64_t id = submit(lab.h, fraction(lab.tenant, 1000));
	assert_int_equal(job(lab.h, id)->r.gpu_kind, GPU_WHOLE);
	harness_free(lab.h);
}

/* Idempotency keys. */

static void a_key_that_is_known_answers_with_the_job_that_has_it(void **unused)
{
	struct lab lab = lab_new();
	struct job_record job_with_key = whole(lab.tenant, 1);

	(void)unused;
	job_with_key.idempotency_key = "monday";
	int64_t first = submit(lab.h, job_with_key);
	assert_false(lab.h->effects.repeated);
	assert_int_equal(submit(lab.h, job_with_key), first);
	assert_true(lab.h->effects.repeated);
	assert_int_equal(lab.h->effects.reply_count, 0);
	assert_int_equal(lab.h->sched->jobs.count, 1);
	harness_free(lab.h);
}

static void a_key_is_known_to_its_tenant_alone(void **unused)
{
	struct lab lab = lab_new();
	int64_t other = put_tenant(lab.h, tenant_named("other"));
	struct job_record mine = whole(lab.tenant, 1), theirs = whole(other, 1);

	(void)unused;
	mine.idempotency_key = theirs.idempotency_key = "monday";
	assert_int_not_equal(submit(lab.h, mine), submit(lab.h, theirs));
	harness_free(lab.h);
}

static void a_key_of_an_array_answers_with_its_first_job(void **unused)
{
	struct lab lab = lab_new();
	struct job_record job_with_key = whole(lab.tenant, 1);

	(void)unused;
	job_with_key.idempotency_key = "sweep";
	must(lab.h, submit_array(lab.h, job_with_key, 1, 3, false));
	int64_t first = lab.h->effects.reply_id;
	must(lab.h, submit_array(lab.h, job_with_key, 1, 3, false));
	assert_int_equal(lab.h->effects.reply_id, first);
	assert_int_equal(lab.h->sched->jobs.count, 3);
	harness_free(lab.h);
}

static void a_key_is_known_until_its_job_is_forgotten(void **unused)
{
	struct lab lab = lab_new();
	struct job_record job_with_key = whole(lab.tenant, 1);

	(void)unused;
	job_with_key.idempotency_key = "monday";
	int64_t first = submit(lab.h, job_with_key);
	must(lab.h, cancel(lab.h, first));
	assert_int_equal(submit(lab.h, job_with_key), first);
	time_passes(lab.h, config_default().retention_ms);
	assert_null(job(lab.h, first));
	assert_int_not_equal(submit(lab.h, job_with_key), first);
	harness_free(lab.h);
}

static void a_repeated_submission_is_known_even_if_it_would_be_refused_by_now(void **unused)
{
	struct lab lab = lab_new();
	struct job_record job_with_key = whole(lab.tenant, 1);

	(void)unused;
	job_with_key.idempotency_key = "monday";
	job_with_key.deadline_ms = lab.h->now_ms + 1000;
	int64_t first = submit(lab.h, job_with_key);
	time_passes(lab.h, 2000);
	assert_int_equal(submit(lab.h, job_with_key), first);
	assert_true(lab.h->effects.repeated);
	harness_free(lab.h);
}

/* Arrays. */

static void an_array_is_one_job_per_index(void **unused)
{
	struct lab lab = lab_new();

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
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
	int64_t first = submit_limited(lab, 4, 1);

	(void)unused;
	must(lab.h, apply_to(lab.h, COMMAND_HOLD, first));
	assert_int_equal(pass(lab.h), 1);
	must(lab.h, apply_to(lab.h, COMMAND_RELEASE, first));
	assert_int_equal(pass(lab.h), 0);
	end_job(lab.h, first + 1, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_cancelled_element_gives_its_turn_to_the_next(void **unused)
{
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
	int64_t first = submit_limited(lab, 3, 1);

	(void)unused;
	assert_int_equal(pass(lab.h), 1);
	must(lab.h, apply_to(lab.h, COMMAND_REQUEUE, first));
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	harness_free(lab.h);
}

/* Dependencies. */

static void a_job_waits_until_what_it_depends_on_succeeded(void **unused)
{
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
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

static void what_has_ended_already_is_not_waited_for(void **unused)
{
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
	int64_t other = put_tenant(lab.h, tenant_named("other"));
	int64_t theirs = submit(lab.h, whole(other, 1));
	int64_t row[] = { theirs, AFTER_ANY };
	struct job_record job_after = whole(lab.tenant, 1);

	(void)unused;
	job_after.depends = (struct rows){ row, 1 };
	must_not(lab.h, try_submit(lab.h, job_after), ERROR_NOT_FOUND, "job-1, which is not known");
	row[0] = 99;
	must_not(lab.h, try_submit(lab.h, job_after), ERROR_NOT_FOUND, "job-99, which is not known");
	row[1] = 5;
	must_not(lab.h, try_submit(lab.h, job_after), ERROR_INVALID, "unknown kind of dependency");
	harness_free(lab.h);
}

static void a_chain_of_any_length_ends_with_its_first_job(void **unused)
{
	enum { LENGTH = 20000 };
	struct lab lab = lab_new();
	int64_t first = submit(lab.h, whole(lab.tenant, 1)), last = first;

	(void)unused;
	for (int i = 1; i < LENGTH; i++)
		last = submit_after(lab, last, AFTER_SUCCESS);
	must(lab.h, cancel(lab.h, first));
	assert_int_equal(state(lab.h, last), JOB_CANCELLED);
	assert_int_equal(lab.h->sched->waiting, 0);
	harness_free(lab.h);
}

/* Hold and release. */

static void a_held_job_does_not_start_until_it_is_released(void **unused)
{
	struct lab lab = lab_new();
	int64_t id = submit_held(lab.h, whole(lab.tenant, 1));

	(void)unused;
	assert_int_equal(pass(lab.h), 0);
	must(lab.h, apply_to(lab.h, COMMAND_RELEASE, id));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void only_what_is_held_can_be_released(void **unused)
{
	struct lab lab = lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	must_not(lab.h, apply_to(lab.h, COMMAND_RELEASE, id), ERROR_CONFLICT, "job-1 is not held");
	must_not(lab.h, apply_to(lab.h, COMMAND_RELEASE, 99), ERROR_NOT_FOUND, "job-99 is not known");
	harness_free(lab.h);
}

static void a_running_job_cannot_be_held(void **unused)
{
	struct lab lab = lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	pass(lab.h);
	must_not(lab.h, apply_to(lab.h, COMMAND_HOLD, id), ERROR_CONFLICT, "requeue it first");
	harness_free(lab.h);
}

static void holding_a_job_gives_up_its_claim(void **unused)
{
	struct lab lab = lab_new();
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

static void a_job_that_is_over_takes_no_more_wishes(void **unused)
{
	struct lab lab = lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	must(lab.h, cancel(lab.h, id));
	must_not(lab.h, cancel(lab.h, id), ERROR_CONFLICT, "over already");
	must_not(lab.h, apply_to(lab.h, COMMAND_HOLD, id), ERROR_CONFLICT, "over already");
	must_not(lab.h, apply_to(lab.h, COMMAND_RELEASE, id), ERROR_CONFLICT, "not held");
	must_not(lab.h, apply_to(lab.h, COMMAND_REQUEUE, id), ERROR_CONFLICT, "does not run");
	must_not(lab.h, reprioritise(lab.h, id, 900), ERROR_CONFLICT, "over already");
	harness_free(lab.h);
}

/* Deadlines. */

static void a_job_that_misses_its_deadline_while_it_waits_has_failed(void **unused)
{
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
	struct job_record job_with_deadline = whole(lab.tenant, 1);

	(void)unused;
	job_with_deadline.deadline_ms = lab.h->now_ms + 60000;
	int64_t id = submit(lab.h, job_with_deadline);
	pass(lab.h);
	time_passes(lab.h, 120000);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_held_job_misses_its_deadline_too(void **unused)
{
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
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

/* Limits of the queue. */

static void a_full_queue_takes_no_more(void **unused)
{
	struct lab lab = lab_new();
	struct config_record config = config_default();

	(void)unused;
	config.queue_max = 2;
	configure(lab.h, config);
	int64_t first = submit(lab.h, whole(lab.tenant, 1));
	submit_held(lab.h, whole(lab.tenant, 1));
	must_not(lab.h, try_submit(lab.h, whole(lab.tenant, 1)), ERROR_FULL,
	         "the queue is full: 2 jobs wait, 2 may");
	must(lab.h, cancel(lab.h, first));
	submit(lab.h, whole(lab.tenant, 1));
	harness_free(lab.h);
}

static void jobs_that_run_do_not_fill_the_queue(void **unused)
{
	struct lab lab = lab_new();
	struct config_record config = config_default();

	(void)unused;
	config.queue_max = 1;
	configure(lab.h, config);
	for (int i = 0; i < 4; i++) {
		submit(lab.h, whole(lab.tenant, 1));
		assert_int_equal(pass(lab.h), 1);
	}
	harness_free(lab.h);
}

static void one_tenant_cannot_fill_the_queue_beyond_its_part(void **unused)
{
	struct lab lab = lab_new();
	struct config_record config = config_default();
	struct tenant_record small = tenant_named("small");

	(void)unused;
	config.tenant_queue_max = 2;
	configure(lab.h, config);
	small.queue_max = 1;
	int64_t other = put_tenant(lab.h, small);
	submit(lab.h, whole(lab.tenant, 1));
	submit(lab.h, whole(lab.tenant, 1));
	must_not(lab.h, try_submit(lab.h, whole(lab.tenant, 1)), ERROR_FULL,
	         "the queue of tenant lab is full: 2 wait, 2 may");
	submit(lab.h, whole(other, 1));
	must_not(lab.h, try_submit(lab.h, whole(other, 1)), ERROR_FULL,
	         "the queue of tenant small is full: 1 wait, 1 may");
	harness_free(lab.h);
}

static void an_array_is_taken_whole_or_not_at_all(void **unused)
{
	struct lab lab = lab_new();
	struct config_record config = config_default();

	(void)unused;
	config.queue_max = 2;
	configure(lab.h, config);
	must_not(lab.h, submit_array(lab.h, whole(lab.tenant, 1), 1, 3, false), ERROR_FULL,
	         "the queue is full");
	assert_int_equal(lab.h->sched->jobs.count, 0);
	harness_free(lab.h);
}

/* Limits of tenants. */

static void what_a_limit_could_never_allow_is_refused_with_the_known_sentence(void **unused)
{
	struct harness *h = harness_new();
	struct tenant_record limited = tenant_named("tenant-123");

	(void)unused;
	add_node(h, "n1", 8, 80000);
	limited.limit_gpu = 4 * WHOLE_GPU;
	int64_t tenant = put_tenant(h, limited);
	submit(h, whole(tenant, 2));
	assert_int_equal(pass(h), 1);
	must_not(h, try_submit(h, whole(tenant, 8)), ERROR_FORBIDDEN,
	         "quota exceeded for tenant tenant-123: GPUs requested=8, quota=4, current=2");
	harness_free(h);
}

static void what_is_over_the_limit_only_now_waits(void **unused)
{
	struct harness *h = harness_new();
	struct tenant_record limited = tenant_named("lab");

	(void)unused;
	add_node(h, "n1", 8, 80000);
	limited.limit_gpu = 4 * WHOLE_GPU;
	int64_t tenant = put_tenant(h, limited);
	int64_t first = submit(h, whole(tenant, 2)), second = submit(h, whole(tenant, 4));
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, second), JOB_PENDING);
	end_job(h, first, 0);
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, second), JOB_RUNNING);
	harness_free(h);
}

static void a_gang_is_refused_for_what_its_minimum_needs(void **unused)
{
	struct harness *h = harness_new();
	struct tenant_record limited = tenant_named("lab");

	(void)unused;
	limited.limit_gpu = 4 * WHOLE_GPU;
	int64_t tenant = put_tenant(h, limited);
	struct job_record gang = whole(tenant, 2);
	gang.tasks = 3;
	must_not(h, try_submit(h, gang), ERROR_FORBIDDEN, "GPUs requested=6, quota=4, current=0");
	gang.min_available = 2;
	submit(h, gang);
	harness_free(h);
}

static void a_split_job_is_refused_for_all_of_its_gpus(void **unused)
{
	struct harness *h = harness_new();
	struct tenant_record limited = tenant_named("lab");

	(void)unused;
	limited.limit_gpu = 16 * WHOLE_GPU;
	int64_t tenant = put_tenant(h, limited);
	struct job_record split = whole(tenant, 1);
	split.split_gpus = 20;
	must_not(h, try_submit(h, split), ERROR_FORBIDDEN, "GPUs requested=20, quota=16, current=0");
	harness_free(h);
}

/* Priority, and another try. */

static void a_raised_priority_is_served_first(void **unused)
{
	struct lab lab = lab_new();
	int64_t all = submit(lab.h, whole(lab.tenant, 4));

	(void)unused;
	pass(lab.h);
	int64_t first = submit(lab.h, whole(lab.tenant, 3)), second = submit(lab.h, whole(lab.tenant, 3));
	must(lab.h, reprioritise(lab.h, second, 501));
	end_job(lab.h, all, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	assert_int_equal(state(lab.h, first), JOB_PENDING);
	harness_free(lab.h);
}

static void a_priority_out_of_range_is_refused(void **unused)
{
	struct lab lab = lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	must_not(lab.h, reprioritise(lab.h, id, INT64_C(1) << 40), ERROR_INVALID, "out of range");
	assert_int_equal(job(lab.h, id)->r.priority, 500);
	harness_free(lab.h);
}

static void a_requeued_job_stops_and_starts_again_when_its_memory_is_back(void **unused)
{
	struct lab lab = lab_new();
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
	struct lab lab = lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	int64_t started[4];

	(void)unused;
	for (int64_t wait_ms = 5000; wait_ms <= 20000; wait_ms *= 2) {
		must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 9 }));
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
		cmocka_unit_test(what_makes_no_sense_is_refused_with_the_field_that_is_wrong),
		cmocka_unit_test(uneven_parts_must_be_as_many_as_the_gpus_and_positive),
		cmocka_unit_test(amounts_that_no_cluster_has_are_refused),
		cmocka_unit_test(more_than_can_be_counted_may_wait),
		cmocka_unit_test(a_refused_submission_leaves_no_trace),
		cmocka_unit_test(gangs_are_refused_where_they_are_switched_off),
		cmocka_unit_test(what_is_left_out_gets_its_default),
		cmocka_unit_test(a_fraction_of_1000_is_a_whole_gpu),
		cmocka_unit_test(a_key_that_is_known_answers_with_the_job_that_has_it),
		cmocka_unit_test(a_key_is_known_to_its_tenant_alone),
		cmocka_unit_test(a_key_of_an_array_answers_with_its_first_job),
		cmocka_unit_test(a_key_is_known_until_its_job_is_forgotten),
		cmocka_unit_test(a_repeated_submission_is_known_even_if_it_would_be_refused_by_now),
		cmocka_unit_test(an_array_is_one_job_per_index),
		cmocka_unit_test(an_array_that_does_not_rise_or_is_too_long_is_refused),
		cmocka_unit_test(an_array_with_a_limit_never_runs_more_than_that_at_once),
		cmocka_unit_test(elements_of_a_limited_array_start_in_the_order_of_their_index),
		cmocka_unit_test(a_held_element_gives_its_turn_to_the_next),
		cmocka_unit_test(a_released_element_goes_before_those_with_a_higher_index),
		cmocka_unit_test(a_cancelled_element_gives_its_turn_to_the_next),
		cmocka_unit_test(a_requeued_element_goes_before_those_with_a_higher_index),
		cmocka_unit_test(a_job_waits_until_what_it_depends_on_succeeded),
		cmocka_unit_test(a_job_whose_dependency_failed_is_cancelled_with_the_reason),
		cmocka_unit_test(a_job_that_waits_for_any_end_goes_on_after_a_failure),
		cmocka_unit_test(a_job_waits_for_all_that_it_depends_on),
		cmocka_unit_test(what_has_ended_already_is_not_waited_for),
		cmocka_unit_test(the_success_of_a_job_that_failed_cannot_be_waited_for),
		cmocka_unit_test(only_known_jobs_of_the_same_tenant_can_be_depended_on),
		cmocka_unit_test(a_chain_of_any_length_ends_with_its_first_job),
		cmocka_unit_test(a_held_job_does_not_start_until_it_is_released),
		cmocka_unit_test(only_what_is_held_can_be_released),
		cmocka_unit_test(a_running_job_cannot_be_held),
		cmocka_unit_test(holding_a_job_gives_up_its_claim),
		cmocka_unit_test(a_job_that_is_over_takes_no_more_wishes),
		cmocka_unit_test(a_job_that_misses_its_deadline_while_it_waits_has_failed),
		cmocka_unit_test(a_job_that_runs_at_its_deadline_goes_on),
		cmocka_unit_test(a_held_job_misses_its_deadline_too),
		cmocka_unit_test(a_job_is_urgent_while_its_deadline_leaves_time_to_run_it_twice),
		cmocka_unit_test(before_that_a_deadline_changes_nothing),
		cmocka_unit_test(a_full_queue_takes_no_more),
		cmocka_unit_test(jobs_that_run_do_not_fill_the_queue),
		cmocka_unit_test(one_tenant_cannot_fill_the_queue_beyond_its_part),
		cmocka_unit_test(an_array_is_taken_whole_or_not_at_all),
		cmocka_unit_test(what_a_limit_could_never_allow_is_refused_with_the_known_sentence),
		cmocka_unit_test(what_is_over_the_limit_only_now_waits),
		cmocka_unit_test(a_gang_is_refused_for_what_its_minimum_needs),
		cmocka_unit_test(a_split_job_is_refused_for_all_of_its_gpus),
		cmocka_unit_test(a_raised_priority_is_served_first),
		cmocka_unit_test(a_priority_out_of_range_is_refused),
		cmocka_unit_test(a_requeued_job_stops_and_starts_again_when_its_memory_is_back),
		cmocka_unit_test(a_refused_start_is_tried_again_later_and_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
