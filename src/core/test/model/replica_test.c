/* replica_test.c - how many slots models have, after load, restarts and returns */
#include "core/test/slots.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab replica_lab_new(int gpus)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", gpus, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static int64_t replica_put(struct lab lab, const char *name, int64_t mib, int64_t least,
                           int64_t most)
{
	struct model_record given = model_of(lab.tenant, name, mib);

	given.min_replicas = least;
	given.max_replicas = most;
	given.concurrency = 2;
	return put_model(lab.h, given);
}

static int64_t put_prewarmed(struct lab lab, const char *name, int64_t mib)
{
	struct model_record given = model_of(lab.tenant, name, mib);

	given.prewarm = true;
	return put_model(lab.h, given);
}

/* A full report in which the node has just these reservations. */
static void replica_snapshot(struct harness *h, const char *name, const int64_t *running,
                             int64_t count)
{
	const struct device device = device_of("n1-gpu0", 0, 80000);
	struct node_report_command node = report_of(name, &device, 1);

	node.running = running;
	node.running_count = count;
	node.snapshot = true;
	must(h, report(h, node));
}

static void more_load_than_places_adds_replicas_up_to_the_maximum(void **unused)
{
	struct lab lab = replica_lab_new(4);
	int64_t id = replica_put(lab, "m", 10000, 0, 3);

	(void)unused;
	for (int i = 0; i < 2; i++)
		request(lab.h, id);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, id), 1);
	request(lab.h, id);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, id), 2);
	for (int i = 0; i < 9; i++)
		request(lab.h, id);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, id), 3);
	harness_free(lab.h);
}

static void replicas_that_are_coming_count_so_nothing_piles_up(void **unused)
{
	struct lab lab = replica_lab_new(4);
	int64_t loads[8], id = replica_put(lab, "m", 10000, 0, 9);

	(void)unused;
	for (int i = 0; i < 3; i++)
		request(lab.h, id);
	assert_int_equal(pass_only(lab.h, loads), 2); /* two have places for all three */
	for (int i = 0; i < 5; i++)
		assert_int_equal(pass_only(lab.h, loads), 0);
	harness_free(lab.h);
}

static void two_replicas_go_to_different_gpus(void **unused)
{
	struct lab lab = replica_lab_new(2);
	int64_t id = replica_put(lab, "m", 15000, 2, 2);

	(void)unused;
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, id), 2);
	assert_ptr_not_equal(model(lab.h, id)->slots[0]->reservation->parts[0].gpu,
	                     model(lab.h, id)->slots[1]->reservation->parts[0].gpu);
	harness_free(lab.h);
}

static void idle_replicas_go_when_others_need_the_memory(void **unused)
{
	struct lab lab = replica_lab_new(2);
	int64_t id = replica_put(lab, "m", 60000, 0, 2), asked[3];

	(void)unused;
	for (int i = 0; i < 3; i++)
		asked[i] = request(lab.h, id);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, id), 2);
	for (int i = 0; i < 3; i++)
		done(lab.h, asked[i]);
	grow_cold(lab.h);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, id), 2); /* nobody needs it yet */
	int64_t other = replica_put(lab, "o", 60000, 0, 1);
	request(lab.h, other);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, id), 1);
	assert_int_equal(ready_slots(lab.h, other), 1);
	harness_free(lab.h);
}

static void prewarmed_models_are_loaded_before_anyone_asks_where_there_is_room(void **unused)
{
	struct lab lab = replica_lab_new(1);
	int64_t large = put_prewarmed(lab, "large", 90000);
	int64_t small = put_prewarmed(lab, "small", 1000);

	(void)unused;
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, small), 1);
	assert_int_equal(model(lab.h, large)->slot_count, 0);
	harness_free(lab.h);
}

static void prewarming_evicts_nothing(void **unused)
{
	struct lab lab = replica_lab_new(1);
	int64_t a = replica_put(lab, "a", 60000, 0, 1);

	(void)unused;
	load(lab.h, a);
	grow_cold(lab.h);
	put_prewarmed(lab, "b", 60000);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, a), 1);
	harness_free(lab.h);
}

static void a_minimum_of_replicas_evicts_what_is_idle(void **unused)
{
	struct lab lab = replica_lab_new(1);
	int64_t a = replica_put(lab, "a", 60000, 0, 1);

	(void)unused;
	load(lab.h, a);
	grow_cold(lab.h);
	int64_t b = replica_put(lab, "b", 60000, 1, 1);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, b), 1);
	assert_null(slot_of(lab.h, a));
	harness_free(lab.h);
}

static void a_minimum_comes_back_when_a_node_returns_without_its_slots(void **unused)
{
	struct lab lab = replica_lab_new(1);
	int64_t loads[8], id = replica_put(lab, "m", 10000, 1, 1);

	(void)unused;
	settle(lab.h);
	set_node_state(lab.h, "n1", NODE_LOST);
	assert_null(slot_of(lab.h, id));
	assert_int_equal(pass_only(lab.h, loads), 0);
	replica_snapshot(lab.h, "n1", NULL, 0);
	assert_int_equal(pass_only(lab.h, loads), 1);
	assert_int_equal(pass_only(lab.h, loads), 0);
	harness_free(lab.h);
}

static void a_restart_waits_for_the_nodes_and_loads_nothing_twice(void **unused)
{
	struct lab lab = replica_lab_new(1);
	int64_t loads[8], id = replica_put(lab, "m", 10000, 1, 1);

	(void)unused;
	settle(lab.h);
	int64_t slot = slot_of(lab.h, id)->r.id;
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_START }));
	assert_int_equal(pass_only(lab.h, loads), 0);
	int64_t asked = request(lab.h, id);
	assert_int_equal(routed(lab.h, asked)->outcome, ROUTE_QUEUED);
	replica_snapshot(lab.h, "n1", &slot, 1);
	assert_int_equal(routed(lab.h, asked)->outcome, ROUTE_GRANTED);
	assert_int_equal(pass_only(lab.h, loads), 0);
	harness_free(lab.h);
}

static void waiting_models_are_served_by_priority_and_then_by_age(void **unused)
{
	struct lab lab = replica_lab_new(1);
	struct model_record given = model_of(lab.tenant, "first", 50000);
	int64_t loads[8], first = put_model(lab.h, given), second, high;

	(void)unused;
	given.name = "second";
	second = put_model(lab.h, given);
	given.name = "high";
	given.priority = 600;
	high = put_model(lab.h, given);
	request(lab.h, second);
	request(lab.h, first);
	request(lab.h, high);
	assert_int_equal(pass_only(lab.h, loads), 1);
	assert_non_null(slot_of(lab.h, high));
	must(lab.h, apply_to(lab.h, COMMAND_REMOVE_MODEL, high));
	confirm_stops(lab.h);
	assert_int_equal(pass_only(lab.h, loads), 1);
	assert_non_null(slot_of(lab.h, second));
	assert_null(slot_of(lab.h, first));
	harness_free(lab.h);
}

static void a_claim_lapses_when_the_release_is_late_and_is_planned_anew(void **unused)
{
	struct lab lab = replica_lab_new(1);
	struct config_record config = config_default();
	int64_t loads[8], a = replica_put(lab, "a", 60000, 0, 1),
			  b = replica_put(lab, "b", 60000, 0, 1);

	(void)unused;
	load(lab.h, a);
	grow_cold(lab.h);
	request(lab.h, b);
	pass_only(lab.h, loads);
	assert_int_equal(slot_of(lab.h, b)->r.state, SLOT_WAITING);
	time_passes(lab.h, config.grace_ms + config.release_timeout_ms);
	pass_only(lab.h, loads);
	assert_null(slot_of(lab.h, b));
	assert_non_null(decided(lab.h, DECISION_LAPSED, 0));
	add_node(lab.h, "n2", 1, 80000);
	assert_int_equal(pass_only(lab.h, loads), 1);
	harness_free(lab.h);
}

static void why_says_what_a_model_has_and_wants(void **unused)
{
	struct lab lab = replica_lab_new(1);
	int64_t a = replica_put(lab, "a", 60000, 0, 1), b = replica_put(lab, "b", 70000, 0, 1);

	(void)unused;
	load(lab.h, a);
	request(lab.h, a);
	request(lab.h, b);
	settle(lab.h);
	assert_non_null(strstr(why_model(lab.h, a), "1 of 2 requests in flight"));
	assert_non_null(strstr(why_model(lab.h, b), "requests wait and it has none"));
	assert_non_null(strstr(why_model(lab.h, b), "50000 MiB short"));
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_load_than_places_adds_replicas_up_to_the_maximum),
		cmocka_unit_test(replicas_that_are_coming_count_so_nothing_piles_up),
		cmocka_unit_test(two_replicas_go_to_different_gpus),
		cmocka_unit_test(idle_replicas_go_when_others_need_the_memory),
		cmocka_unit_test(
		    prewarmed_models_are_loaded_before_anyone_asks_where_there_is_room),
		cmocka_unit_test(prewarming_evicts_nothing),
		cmocka_unit_test(a_minimum_of_replicas_evicts_what_is_idle),
		cmocka_unit_test(a_minimum_comes_back_when_a_node_returns_without_its_slots),
		cmocka_unit_test(a_restart_waits_for_the_nodes_and_loads_nothing_twice),
		cmocka_unit_test(waiting_models_are_served_by_priority_and_then_by_age),
		cmocka_unit_test(a_claim_lapses_when_the_release_is_late_and_is_planned_anew),
		cmocka_unit_test(why_says_what_a_model_has_and_wants),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
