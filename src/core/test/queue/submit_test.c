/* submit_test.c - taking jobs in: what makes sense, and what there is room for */
#include "core/test/harness.h"

/* A tenant and one node of four GPUs. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab submit_lab_new(void)
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

/* Validation. */

static void what_makes_no_sense_is_refused_with_the_field_that_is_wrong(void **unused)
{
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, fraction(lab.tenant, 1000));
	assert_int_equal(job(lab.h, id)->r.gpu_kind, GPU_WHOLE);
	harness_free(lab.h);
}

/* Idempotency keys. */

static void a_key_that_is_known_answers_with_the_job_that_has_it(void **unused)
{
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
	int64_t other = put_tenant(lab.h, tenant_named("other"));
	struct job_record mine = whole(lab.tenant, 1), theirs = whole(other, 1);

	(void)unused;
	mine.idempotency_key = theirs.idempotency_key = "monday";
	assert_int_not_equal(submit(lab.h, mine), submit(lab.h, theirs));
	harness_free(lab.h);
}

static void a_key_of_an_array_answers_with_its_first_job(void **unused)
{
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
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

static void a_key_that_came_with_another_request_is_refused(void **unused)
{
	struct lab lab = submit_lab_new();
	struct job_record job = whole(lab.tenant, 1);

	(void)unused;
	job.idempotency_key = "monday#0";
	job.request_hash = 7;
	must(lab.h, submit_array(lab.h, job, 1, 3, false));
	int64_t first = lab.h->effects.reply_id;
	job.request_hash = 8;
	must_not(lab.h, submit_array(lab.h, job, 1, 3, false), ERROR_CONFLICT,
	         "came with another request before, which made job-1");
	job.request_hash = 7;
	must(lab.h, submit_array(lab.h, job, 1, 3, false));
	assert_true(lab.h->effects.repeated);
	assert_int_equal(lab.h->effects.reply_id, first);
	assert_int_equal(lab.h->effects.reply_count, 3);
	job.request_hash = 0;
	must(lab.h, submit_array(lab.h, job, 1, 3, false));
	assert_true(lab.h->effects.repeated);
	harness_free(lab.h);
}

static void a_repeated_submission_is_known_even_if_it_would_be_refused_by_now(void **unused)
{
	struct lab lab = submit_lab_new();
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

/* Limits of the queue. */

static void a_full_queue_takes_no_more(void **unused)
{
	struct lab lab = submit_lab_new();
	struct config_record config = config_default();

	(void)unused;
	config.queue_max = 2;
	configure(lab.h, config);
	int64_t first = submit(lab.h, whole(lab.tenant, 1));
	submit_held(lab.h, whole(lab.tenant, 1));
	must_not(lab.h, try_submit(lab.h, whole(lab.tenant, 1)), ERROR_FULL,
	         "the queue is full: 2 tasks waiting, the limit is 2");
	must(lab.h, cancel(lab.h, first));
	submit(lab.h, whole(lab.tenant, 1));
	harness_free(lab.h);
}

static void a_job_fills_the_queue_with_all_of_its_tasks(void **unused)
{
	struct lab lab = submit_lab_new();
	struct config_record config = config_default();
	struct job_record gang = whole(lab.tenant, 1);

	(void)unused;
	config.queue_max = 10;
	configure(lab.h, config);
	gang.tasks = 8;
	int64_t first = submit(lab.h, gang);
	must_not(lab.h, try_submit(lab.h, gang), ERROR_FULL,
	         "the queue is full: 8 tasks waiting, the limit is 10");
	must(lab.h, cancel(lab.h, first));
	submit(lab.h, gang);
	harness_free(lab.h);
}

static void jobs_that_run_do_not_fill_the_queue(void **unused)
{
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
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
	struct lab lab = submit_lab_new();
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
	must_not(h, try_submit(h, split), ERROR_FORBIDDEN,
	         "GPUs requested=20, quota=16, current=0");
	harness_free(h);
}

/* Tenants. */

static void a_tenant_is_deleted_only_when_its_jobs_are_forgotten(void **unused)
{
	struct lab lab = submit_lab_new();
	int64_t id = submit(lab.h, whole(lab.tenant, 1));

	(void)unused;
	must_not(lab.h, apply_to(lab.h, COMMAND_DELETE_TENANT, lab.tenant), ERROR_CONFLICT,
	         "tenant lab has jobs");
	must(lab.h, cancel(lab.h, id));
	must_not(lab.h, apply_to(lab.h, COMMAND_DELETE_TENANT, lab.tenant), ERROR_CONFLICT,
	         "tenant lab has jobs");
	time_passes(lab.h, config_default().retention_ms);
	must(lab.h, apply_to(lab.h, COMMAND_DELETE_TENANT, lab.tenant));
	must_not(lab.h, try_submit(lab.h, whole(lab.tenant, 1)), ERROR_NOT_FOUND, "not known");
	harness_free(lab.h);
}

static void a_tenant_with_others_below_it_is_not_deleted(void **unused)
{
	struct lab lab = submit_lab_new();
	struct tenant_record child = tenant_named("child");

	(void)unused;
	child.parent_id = lab.tenant;
	int64_t below = put_tenant(lab.h, child);
	must_not(lab.h, apply_to(lab.h, COMMAND_DELETE_TENANT, lab.tenant), ERROR_CONFLICT,
	         "has tenants below it, such as child");
	must(lab.h, apply_to(lab.h, COMMAND_DELETE_TENANT, below));
	must(lab.h, apply_to(lab.h, COMMAND_DELETE_TENANT, lab.tenant));
	harness_free(lab.h);
}

static void a_tenant_that_is_deleted_takes_its_id_with_it(void **unused)
{
	struct lab lab = submit_lab_new();

	(void)unused;
	must(lab.h, apply_to(lab.h, COMMAND_DELETE_TENANT, lab.tenant));
	assert_int_not_equal(put_tenant(lab.h, tenant_named("lab")), lab.tenant);
	harness_free(lab.h);
}

/* Many at once. */

static bool takes_two(struct lab *lab, struct job_record first, struct job_record second,
                      struct error errors[2])
{
	struct submit_command submits[] = { { .job = first }, { .job = second } };
	struct submit_trial trials[] = { { .submit = &submits[0], .error = &errors[0] },
		                         { .submit = &submits[1], .error = &errors[1] } };
	bool all = sched_takes_all(lab->h->sched, trials, 2, 0);

	assert_int_equal(all, trials[0].taken && trials[1].taken);
	return all;
}

static void several_are_taken_only_if_there_is_room_for_all(void **unused)
{
	struct lab lab = submit_lab_new();
	struct error errors[2];
	struct tenant_record narrow = tenant_named("narrow");

	(void)unused;
	narrow.queue_max = 1;
	int64_t tenant = put_tenant(lab.h, narrow);
	assert_true(takes_two(&lab, whole(lab.tenant, 1), whole(tenant, 1), errors));
	assert_false(takes_two(&lab, whole(tenant, 1), whole(tenant, 1), errors));
	assert_int_equal(errors[0].code, ERROR_NONE);
	assert_int_equal(errors[1].code, ERROR_FULL);
	must(lab.h, try_submit(lab.h, whole(tenant, 1)));
	harness_free(lab.h);
}

static void each_of_several_is_told_why_it_is_refused(void **unused)
{
	struct lab lab = submit_lab_new();
	struct error errors[2];

	(void)unused;
	assert_false(takes_two(&lab, whole(lab.tenant, 0), whole(77, 1), errors));
	assert_int_equal(errors[0].code, ERROR_INVALID);
	assert_int_equal(errors[1].code, ERROR_NOT_FOUND);
	harness_free(lab.h);
}

static void what_is_known_takes_no_room_again(void **unused)
{
	struct lab lab = submit_lab_new();
	struct error errors[2];
	struct tenant_record narrow = tenant_named("narrow");

	(void)unused;
	narrow.queue_max = 2;
	int64_t tenant = put_tenant(lab.h, narrow);
	struct job_record job = whole(tenant, 1);
	job.idempotency_key = "monday";
	must(lab.h, try_submit(lab.h, job));
	assert_true(takes_two(&lab, job, whole(tenant, 1), errors));
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
		cmocka_unit_test(a_key_that_came_with_another_request_is_refused),
		cmocka_unit_test(several_are_taken_only_if_there_is_room_for_all),
		cmocka_unit_test(each_of_several_is_told_why_it_is_refused),
		cmocka_unit_test(what_is_known_takes_no_room_again),
		cmocka_unit_test(a_repeated_submission_is_known_even_if_it_would_be_refused_by_now),
		cmocka_unit_test(a_full_queue_takes_no_more),
		cmocka_unit_test(a_job_fills_the_queue_with_all_of_its_tasks),
		cmocka_unit_test(jobs_that_run_do_not_fill_the_queue),
		cmocka_unit_test(one_tenant_cannot_fill_the_queue_beyond_its_part),
		cmocka_unit_test(an_array_is_taken_whole_or_not_at_all),
		cmocka_unit_test(what_a_limit_could_never_allow_is_refused_with_the_known_sentence),
		cmocka_unit_test(what_is_over_the_limit_only_now_waits),
		cmocka_unit_test(a_gang_is_refused_for_what_its_minimum_needs),
		cmocka_unit_test(a_split_job_is_refused_for_all_of_its_gpus),
		cmocka_unit_test(a_tenant_is_deleted_only_when_its_jobs_are_forgotten),
		cmocka_unit_test(a_tenant_with_others_below_it_is_not_deleted),
		cmocka_unit_test(a_tenant_that_is_deleted_takes_its_id_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
