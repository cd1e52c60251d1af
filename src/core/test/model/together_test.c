/* together_test.c - jobs and models on the same GPUs: who goes first, who goes */
#include "core/test/slots.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab together_lab_new(int gpus)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", gpus, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static int64_t model_at(struct lab lab, const char *name, int64_t mib, int64_t priority)
{
	struct model_record given = model_of(lab.tenant, name, mib);

	given.priority = priority;
	return put_model(lab.h, given);
}

static int64_t job_at(struct lab lab, int64_t priority, int32_t gpus)
{
	struct job_record given = whole(lab.tenant, gpus);

	given.priority = priority;
	return submit(lab.h, given);
}

static void together_decide(struct lab lab)
{
	int64_t loads[64];

	pass_only(lab.h, loads);
}

static bool goes(struct lab lab, int64_t id)
{
	return slot_of(lab.h, id)->r.state == SLOT_STOPPING;
}

static void a_job_evicts_idle_slots_and_starts_when_the_memory_is_back(void **unused)
{
	struct lab lab = together_lab_new(1);
	int64_t a = model_at(lab, "a", 30000, 500), b = model_at(lab, "b", 30000, 500);

	(void)unused;
	load(lab.h, a);
	load(lab.h, b);
	int64_t id = job_at(lab, 500, 1);
	together_decide(lab);
	assert_false(goes(lab, a) || goes(lab, b));
	grow_cold(lab.h);
	together_decide(lab);
	assert_true(goes(lab, a) && goes(lab, b));
	assert_true(has_claim(lab.h, id));
	const struct decision_record *decision = decided(lab.h, DECISION_EVICT, id);
	assert_int_equal(decision->evicted.count, 2);
	confirm_stops(lab.h);
	together_decide(lab);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_job_of_a_part_evicts_only_what_it_needs(void **unused)
{
	struct lab lab = together_lab_new(1);
	int64_t a = model_at(lab, "a", 50000, 500), b = model_at(lab, "b", 30000, 500);

	(void)unused;
	load(lab.h, a);
	load(lab.h, b);
	grow_cold(lab.h);
	submit(lab.h, memory(lab.tenant, 30000));
	together_decide(lab);
	assert_int_equal(goes(lab, a) + goes(lab, b), 1);
	assert_true(goes(lab, b)); /* enough, and cheaper to load again */
	harness_free(lab.h);
}

static void a_gang_evicts_what_is_in_its_way_and_lets_the_rest_stay(void **unused)
{
	struct lab lab = together_lab_new(3);
	struct job_record gang = whole(lab.tenant, 1);
	int64_t models[3];

	(void)unused;
	models[0] = model_at(lab, "a", 60000, 500);
	models[1] = model_at(lab, "b", 60000, 500);
	models[2] = model_at(lab, "c", 60000, 500);
	for (int i = 0; i < 3; i++)
		load(lab.h, models[i]);
	grow_cold(lab.h);
	gang.tasks = gang.min_available = 2;
	int64_t id = submit(lab.h, gang);
	together_decide(lab);
	assert_int_equal(goes(lab, models[0]) + goes(lab, models[1]) + goes(lab, models[2]), 2);
	confirm_stops(lab.h);
	together_decide(lab);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_job_never_evicts_what_is_busy(void **unused)
{
	struct lab lab = together_lab_new(1);
	int64_t a = model_at(lab, "a", 30000, 1);

	(void)unused;
	load(lab.h, a);
	request(lab.h, a);
	grow_cold(lab.h);
	job_at(lab, 900, 1);
	together_decide(lab);
	assert_false(goes(lab, a));
	harness_free(lab.h);
}

static void idle_slots_go_before_jobs_are_preempted(void **unused)
{
	struct lab lab = together_lab_new(2);
	int64_t low = job_at(lab, 100, 1), a;

	(void)unused;
	together_decide(lab);
	a = model_at(lab, "a", 30000, 900);
	load(lab.h, a);
	grow_cold(lab.h);
	job_at(lab, 800, 1);
	together_decide(lab);
	assert_true(goes(lab, a));
	assert_int_equal(state(lab.h, low), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_model_preempts_jobs_of_lower_priority_of_its_tenant(void **unused)
{
	struct lab lab = together_lab_new(1);
	int64_t low = job_at(lab, 100, 1), a;

	(void)unused;
	together_decide(lab);
	a = model_at(lab, "a", 30000, 500);
	int64_t asked = request(lab.h, a);
	together_decide(lab);
	assert_int_equal(state(lab.h, low), JOB_PREEMPTED);
	assert_int_equal(slot_of(lab.h, a)->r.state, SLOT_WAITING);
	const struct decision_record *decision = decided(lab.h, DECISION_PREEMPT, 0);
	assert_int_equal(decision->model_id, a);
	assert_int_equal(decision->victims.at[0], low);
	settle(lab.h);
	done(lab.h, asked);
	harness_free(lab.h);
}

static void a_model_preempts_no_job_of_its_own_priority_or_of_others(void **unused)
{
	struct lab lab = together_lab_new(2);
	int64_t same = job_at(lab, 500, 1), other = put_tenant(lab.h, tenant_named("other"));
	struct job_record given = whole(other, 1);

	(void)unused;
	given.priority = 1;
	int64_t low = submit(lab.h, given);
	together_decide(lab);
	request(lab.h, model_at(lab, "a", 30000, 500));
	together_decide(lab);
	assert_int_equal(state(lab.h, same), JOB_RUNNING);
	assert_int_equal(state(lab.h, low), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_model_preempts_nothing_if_its_tenant_may_not(void **unused)
{
	struct lab lab = { .h = harness_new() };
	struct tenant_record tenant = tenant_named("meek");

	(void)unused;
	add_node(lab.h, "n1", 1, 80000);
	tenant.can_preempt_others = false;
	lab.tenant = put_tenant(lab.h, tenant);
	int64_t low = job_at(lab, 100, 1);
	together_decide(lab);
	request(lab.h, model_at(lab, "a", 30000, 500));
	together_decide(lab);
	assert_int_equal(state(lab.h, low), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_model_preempts_only_the_jobs_that_are_in_its_way(void **unused)
{
	struct lab lab = together_lab_new(2);
	int64_t first = job_at(lab, 100, 1), second = job_at(lab, 200, 1);

	(void)unused;
	together_decide(lab);
	request(lab.h, model_at(lab, "a", 70000, 500));
	together_decide(lab);
	assert_int_equal(state(lab.h, first), JOB_PREEMPTED);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	harness_free(lab.h);
}

static void an_elastic_job_gives_a_model_what_it_can_do_without(void **unused)
{
	struct lab lab = together_lab_new(2);
	struct job_record given = whole(lab.tenant, 1);

	(void)unused;
	given.priority = 100;
	given.tasks = 2;
	given.min_available = 1;
	int64_t id = submit(lab.h, given), a = model_at(lab, "a", 70000, 500);
	settle(lab.h);
	assert_int_equal(placed(lab.h, id), 2);
	request(lab.h, a);
	together_decide(lab);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_int_equal(placed(lab.h, id), 1);
	assert_int_equal(slot_of(lab.h, a)->r.state, SLOT_WAITING);
	harness_free(lab.h);
}

static void a_job_in_the_way_of_a_model_moves_if_it_may(void **unused)
{
	struct lab lab = together_lab_new(1);
	struct job_record given = job_of(lab.tenant, GPU_MEMORY, 1);

	(void)unused;
	given.priority = 100;
	given.memory_mib = 30000;
	given.movable = true;
	int64_t id = submit(lab.h, given), a = model_at(lab, "a", 70000, 500);
	together_decide(lab);
	add_node(lab.h, "n2", 1, 40000);
	request(lab.h, a);
	together_decide(lab);
	assert_int_equal(slot_of(lab.h, a)->r.state, SLOT_WAITING);
	assert_true(has_claim(lab.h, id));
	const struct decision_record *decision = decided(lab.h, DECISION_PREEMPT, 0);
	assert_int_equal(decision->victims.at[0], id);
	assert_true(decision->victims.at[2]);
	harness_free(lab.h);
}

static void a_job_that_has_not_started_yet_is_not_preempted_for_a_model(void **unused)
{
	const struct command pass_command = { .kind = COMMAND_PASS, .units = INT64_MAX };
	struct lab lab = together_lab_new(1);
	int64_t id = job_at(lab, 100, 1), a = model_at(lab, "a", 70000, 500);

	(void)unused;
	must(lab.h, harness_apply(lab.h, pass_command));
	request(lab.h, a);
	must(lab.h, harness_apply(lab.h, pass_command));
	assert_int_equal(state(lab.h, id), JOB_SCHEDULED);
	assert_null(slot_of(lab.h, a));
	harness_free(lab.h);
}

static void a_claim_on_a_gpu_needs_no_host_memory_where_it_asks_for_none(void **unused)
{
	struct lab lab = together_lab_new(1);
	struct job_record given = job_of(lab.tenant, GPU_MEMORY, 1);
	struct device device = device_of("n1-gpu0", 0, 80000);
	struct node_report_command node = report_of("n1", &device, 1);

	(void)unused;
	given.memory_mib = 10000;
	given.host_bytes = INT64_C(1) << 35;
	submit(lab.h, given);
	int64_t leaving = model_at(lab, "a", 60000, 500);
	load(lab.h, leaving);
	node.host_bytes = INT64_C(1) << 34; /* half of what the job has */
	must(lab.h, report(lab.h, node));
	must(lab.h, apply_to(lab.h, COMMAND_REMOVE_MODEL, leaving));
	int64_t b = model_at(lab, "b", 60000, 500);
	request(lab.h, b);
	together_decide(lab);
	together_decide(lab);
	assert_int_equal(slot_of(lab.h, b)->r.state, SLOT_WAITING);
	harness_free(lab.h);
}

static void the_one_of_higher_priority_gets_the_last_gpu_job_or_model(void **unused)
{
	for (int job_first = 0; job_first < 2; job_first++) {
		struct lab lab = together_lab_new(1);
		int64_t id = job_at(lab, job_first ? 600 : 400, 1);
		int64_t a = model_at(lab, "a", 70000, 500);
		request(lab.h, a);
		together_decide(lab);
		assert_int_equal(placed(lab.h, id), job_first ? 1 : 0);
		assert_int_equal(model(lab.h, a)->slot_count, job_first ? 0 : 1);
		harness_free(lab.h);
	}
	(void)unused;
}

static void a_waiting_model_takes_the_room_that_a_job_leaves(void **unused)
{
	struct lab lab = together_lab_new(1);
	int64_t id = job_at(lab, 900, 1), asked;

	(void)unused;
	together_decide(lab);
	int64_t a = model_at(lab, "a", 70000, 500);
	asked = request(lab.h, a);
	together_decide(lab);
	assert_null(slot_of(lab.h, a));
	end_job(lab.h, id, 0);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, a), 1);
	done(lab.h, asked);
	harness_free(lab.h);
}

static void a_pinned_model_is_bound_by_the_quota_of_its_tenant(void **unused)
{
	struct lab lab = { .h = harness_new() };
	struct tenant_record tenant = tenant_named("lab");

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	tenant.quota_gpu = 500;
	lab.tenant = put_tenant(lab.h, tenant);
	struct model_record given = model_of(lab.tenant, "a", 30000);
	given.pinned = true;
	load(lab.h, put_model(lab.h, given));
	given.name = "b";
	int64_t loads[8], b = put_model(lab.h, given);
	request(lab.h, b);
	assert_int_equal(pass_only(lab.h, loads), 0);
	given.id = b;
	given.pinned = false;
	put_model(lab.h, given);
	assert_int_equal(pass_only(lab.h, loads), 1);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_evicts_idle_slots_and_starts_when_the_memory_is_back),
		cmocka_unit_test(a_job_of_a_part_evicts_only_what_it_needs),
		cmocka_unit_test(a_gang_evicts_what_is_in_its_way_and_lets_the_rest_stay),
		cmocka_unit_test(a_job_never_evicts_what_is_busy),
		cmocka_unit_test(idle_slots_go_before_jobs_are_preempted),
		cmocka_unit_test(a_model_preempts_jobs_of_lower_priority_of_its_tenant),
		cmocka_unit_test(a_model_preempts_no_job_of_its_own_priority_or_of_others),
		cmocka_unit_test(a_model_preempts_nothing_if_its_tenant_may_not),
		cmocka_unit_test(a_model_preempts_only_the_jobs_that_are_in_its_way),
		cmocka_unit_test(an_elastic_job_gives_a_model_what_it_can_do_without),
		cmocka_unit_test(a_job_in_the_way_of_a_model_moves_if_it_may),
		cmocka_unit_test(a_job_that_has_not_started_yet_is_not_preempted_for_a_model),
		cmocka_unit_test(a_claim_on_a_gpu_needs_no_host_memory_where_it_asks_for_none),
		cmocka_unit_test(the_one_of_higher_priority_gets_the_last_gpu_job_or_model),
		cmocka_unit_test(a_waiting_model_takes_the_room_that_a_job_leaves),
		cmocka_unit_test(a_pinned_model_is_bound_by_the_quota_of_its_tenant),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
