/* evict_test.c - which idle slots go, for whom, and which never do */
#include "core/test/slots.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab evict_lab_new(int gpus)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", gpus, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static int64_t model_named(struct lab lab, const char *name, int64_t mib)
{
	return put_model(lab.h, model_of(lab.tenant, name, mib));
}

static int64_t loaded(struct lab lab, const char *name, int64_t mib)
{
	int64_t id = model_named(lab, name, mib);

	load(lab.h, id);
	return id;
}

static enum slot_state slot_state(struct lab lab, int64_t id)
{
	return (enum slot_state)slot_of(lab.h, id)->r.state;
}

static bool goes(struct lab lab, int64_t id)
{
	return slot_state(lab, id) == SLOT_STOPPING;
}

/* One pass, after which loads and stops are still open. */
static void evict_decide(struct lab lab)
{
	int64_t loads[64];

	pass_only(lab.h, loads);
}

static void an_idle_slot_goes_for_another_model_and_no_more_than_needed(void **unused)
{
	struct lab lab = evict_lab_new(2);
	int64_t a = loaded(lab, "a", 70000), b = loaded(lab, "b", 70000);
	int64_t c = model_named(lab, "c", 45000);

	(void)unused;
	grow_cold(lab.h);
	request(lab.h, c);
	evict_decide(lab);
	assert_int_equal(goes(lab, a) + goes(lab, b), 1);
	assert_int_equal(slot_state(lab, c), SLOT_WAITING);
	assert_int_equal(slot_of(lab.h, c)->reservation->phase, PHASE_CLAIM);
	harness_free(lab.h);
}

static void the_newcomer_starts_when_the_memory_is_confirmed_as_back(void **unused)
{
	struct lab lab = evict_lab_new(1);
	int64_t loads[8], a = loaded(lab, "a", 60000), b = model_named(lab, "b", 60000);

	(void)unused;
	grow_cold(lab.h);
	request(lab.h, b);
	assert_int_equal(pass_only(lab.h, loads), 0);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.used_mib, 60000);
	assert_int_equal(pass_only(lab.h, loads), 0);
	confirm_stops(lab.h);
	assert_null(slot_of(lab.h, a));
	assert_int_equal(pass_only(lab.h, loads), 1);
	assert_int_equal(loads[0], slot_of(lab.h, b)->r.id);
	harness_free(lab.h);
}

static void a_slot_is_not_evicted_before_its_time_to_live(void **unused)
{
	struct lab lab = evict_lab_new(1);
	int64_t a = loaded(lab, "a", 60000);

	(void)unused;
	time_passes(lab.h, IDLE_TTL_DEFAULT_MS - 1);
	request(lab.h, model_named(lab, "b", 60000));
	evict_decide(lab);
	assert_false(goes(lab, a));
	time_passes(lab.h, 1);
	evict_decide(lab);
	assert_true(goes(lab, a));
	harness_free(lab.h);
}

/* A model whose slots may go as soon as they are idle. */
static int64_t fleeting(struct lab lab, const char *name)
{
	struct model_record given = model_of(lab.tenant, name, 60000);

	given.idle_ttl_ms = 1;
	int64_t id = put_model(lab.h, given);
	load(lab.h, id);
	return id;
}

static void reset(struct lab lab)
{
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_RESET_REQUESTS }));
}

static void after_a_restart_no_slot_goes_before_routers_had_time_to_tell(void **unused)
{
	struct lab lab = evict_lab_new(1);
	int64_t a = fleeting(lab, "a");

	(void)unused;
	reset(lab);
	request(lab.h, model_named(lab, "b", 60000));
	time_passes(lab.h, HOLD_MS - 1);
	evict_decide(lab);
	assert_false(goes(lab, a));
	time_passes(lab.h, 1);
	evict_decide(lab);
	assert_true(goes(lab, a));
	harness_free(lab.h);
}

static void after_a_restart_a_slot_on_a_drained_node_waits_for_routers_too(void **unused)
{
	struct lab lab = evict_lab_new(1);
	int64_t a = fleeting(lab, "a"), asked = request(lab.h, a);

	(void)unused;
	drain(lab.h, "n1", true);
	reset(lab);
	assert_false(goes(lab, a));
	time_passes(lab.h, HOLD_MS - 1);
	assert_false(goes(lab, a));
	/* What was in flight is told again, and ends later. */
	struct command again = { .kind = COMMAND_REQUEST };
	again.request = (struct request_command){ .request_id = asked,
		                                  .model_id = a,
		                                  .slot_id = slot_of(lab.h, a)->r.id };
	must(lab.h, harness_apply(lab.h, again));
	time_passes(lab.h, HOLD_MS);
	assert_false(goes(lab, a));
	done(lab.h, asked);
	assert_true(goes(lab, a));
	harness_free(lab.h);
}

static void after_a_restart_an_idle_slot_on_a_drained_node_stops_by_itself(void **unused)
{
	struct lab lab = evict_lab_new(1);
	int64_t a = fleeting(lab, "a");

	(void)unused;
	reset(lab);
	drain(lab.h, "n1", true);
	assert_false(goes(lab, a));
	time_passes(lab.h, HOLD_MS);
	assert_true(goes(lab, a));
	harness_free(lab.h);
}

static void a_slot_with_a_request_in_flight_is_never_evicted(void **unused)
{
	struct lab lab = evict_lab_new(1);
	int64_t a = loaded(lab, "a", 60000), b = model_named(lab, "b", 60000);

	(void)unused;
	grow_cold(lab.h);
	int64_t flying = request(lab.h, a);
	grow_cold(lab.h);
	int64_t waiting = request(lab.h, b);
	evict_decide(lab);
	assert_false(goes(lab, a));
	done(lab.h, flying);
	grow_cold(lab.h);
	settle(lab.h);
	assert_null(slot_of(lab.h, a));
	assert_int_equal(ready_slots(lab.h, b), 1);
	done(lab.h, waiting);
	harness_free(lab.h);
}

static void a_pinned_slot_is_never_evicted(void **unused)
{
	struct lab lab = evict_lab_new(1);
	struct model_record given = model_of(lab.tenant, "a", 60000);

	(void)unused;
	given.pinned = true;
	int64_t a = put_model(lab.h, given);
	load(lab.h, a);
	grow_cold(lab.h);
	request(lab.h, model_named(lab, "b", 60000));
	evict_decide(lab);
	assert_false(goes(lab, a));
	given.id = a;
	given.pinned = false;
	put_model(lab.h, given);
	evict_decide(lab);
	assert_true(goes(lab, a));
	harness_free(lab.h);
}

static void no_model_falls_below_its_minimum_of_replicas(void **unused)
{
	struct lab lab = evict_lab_new(2);
	struct model_record given = model_of(lab.tenant, "a", 60000);

	(void)unused;
	given.min_replicas = 2;
	int64_t a = put_model(lab.h, given);
	settle(lab.h);
	given.id = a;
	given.min_replicas = 1;
	put_model(lab.h, given);
	grow_cold(lab.h);
	request(lab.h, model_named(lab, "b", 120000)); /* would need both to go */
	evict_decide(lab);
	assert_int_equal(ready_slots(lab.h, a), 2);
	request(lab.h, model_named(lab, "c", 60000));
	evict_decide(lab);
	assert_int_equal(ready_slots(lab.h, a), 1);
	harness_free(lab.h);
}

static void a_slot_on_a_drained_node_does_not_count_for_the_minimum(void **unused)
{
	struct lab lab = evict_lab_new(1);
	struct model_record given = model_of(lab.tenant, "a", 60000);

	(void)unused;
	add_node(lab.h, "n2", 1, 80000);
	given.min_replicas = 2;
	given.id = put_model(lab.h, given);
	settle(lab.h);
	given.min_replicas = 1;
	put_model(lab.h, given);
	int64_t serving = routed(lab.h, request(lab.h, given.id))->slot_id;
	const struct model *a = model(lab.h, given.id);
	const struct slot *busy = a->slots[a->slots[0]->r.id != serving];
	const struct slot *idle = a->slots[a->slots[0] == busy];
	drain(lab.h, busy->reservation->node->r.name, true);
	grow_cold(lab.h);
	request(lab.h, model_named(lab, "b", 60000));
	evict_decide(lab);
	assert_int_equal(idle->r.state, SLOT_READY);
	harness_free(lab.h);
}

static void nothing_is_evicted_when_that_would_not_be_enough(void **unused)
{
	struct lab lab = evict_lab_new(2);
	int64_t a = loaded(lab, "a", 60000), b = loaded(lab, "b", 60000);

	(void)unused;
	grow_cold(lab.h);
	request(lab.h, b);
	request(lab.h, model_named(lab, "c", 150000));
	evict_decide(lab);
	assert_false(goes(lab, a));
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 0);
	harness_free(lab.h);
}

static void a_split_slot_is_evicted_once_and_frees_all_its_gpus(void **unused)
{
	struct lab lab = evict_lab_new(2);
	int64_t small = loaded(lab, "small", 30000), split = loaded(lab, "split", 100000);
	int64_t c = model_named(lab, "c", 100000);

	(void)unused;
	assert_int_equal(slot_of(lab.h, split)->reservation->part_count, 2);
	grow_cold(lab.h);
	request(lab.h, c);
	evict_decide(lab);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	assert_true(goes(lab, split));
	assert_false(goes(lab, small));
	confirm_stops(lab.h);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, c), 1);
	assert_int_equal(slot_of(lab.h, c)->reservation->part_count, 2);
	harness_free(lab.h);
}

static void slots_on_all_gpus_of_a_split_go_in_one_plan(void **unused)
{
	struct lab lab = evict_lab_new(2);
	int64_t a = loaded(lab, "a", 60000), b = loaded(lab, "b", 60000);
	int64_t c = model_named(lab, "c", 100000);

	(void)unused;
	grow_cold(lab.h);
	request(lab.h, c);
	evict_decide(lab);
	assert_true(goes(lab, a) && goes(lab, b));
	const struct decision_record *decision = decided(lab.h, DECISION_EVICT, 0);
	assert_int_equal(decision->model_id, c);
	assert_int_equal(decision->evicted.count, 2);
	harness_free(lab.h);
}

static void one_large_slot_goes_rather_than_two_small_ones(void **unused)
{
	struct lab lab = evict_lab_new(1);
	int64_t a = loaded(lab, "a", 10000), b = loaded(lab, "b", 10000);
	int64_t large = loaded(lab, "large", 50000);

	(void)unused;
	grow_cold(lab.h);
	request(lab.h, model_named(lab, "new", 25000));
	evict_decide(lab);
	assert_true(goes(lab, large));
	assert_false(goes(lab, a) || goes(lab, b));
	harness_free(lab.h);
}

static void of_as_many_slots_those_go_that_load_fastest_again(void **unused)
{
	struct lab lab = evict_lab_new(2);
	int64_t loads[8], slow = model_named(lab, "slow", 60000), fast;

	(void)unused;
	request(lab.h, slow);
	pass_only(lab.h, loads);
	lab.h->now_ms += 90000;
	ready(lab.h, loads[0]);
	lab.h->now_ms += 600000;
	fast = loaded(lab, "fast", 60000); /* used later, but back in no time */
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_RESET_REQUESTS }));
	grow_cold(lab.h);
	request(lab.h, model_named(lab, "new", 60000));
	evict_decide(lab);
	assert_true(goes(lab, fast));
	assert_false(goes(lab, slow));
	harness_free(lab.h);
}

static void of_equal_slots_the_one_used_longest_ago_goes(void **unused)
{
	struct lab lab = evict_lab_new(3);
	int64_t a = loaded(lab, "a", 60000), b = loaded(lab, "b", 60000);
	int64_t c = loaded(lab, "c", 60000);

	(void)unused;
	lab.h->now_ms += 1000;
	done(lab.h, request(lab.h, c));
	lab.h->now_ms += 1000;
	done(lab.h, request(lab.h, a));
	lab.h->now_ms += 1000;
	done(lab.h, request(lab.h, b));
	grow_cold(lab.h);
	request(lab.h, model_named(lab, "new", 70000));
	evict_decide(lab);
	assert_true(goes(lab, c));
	assert_false(goes(lab, a) || goes(lab, b));
	harness_free(lab.h);
}

static void all_nodes_are_looked_at_for_what_loses_least(void **unused)
{
	struct lab lab = evict_lab_new(1);
	int64_t a = loaded(lab, "a", 40000), b = loaded(lab, "b", 35000), c;

	(void)unused;
	add_node(lab.h, "n2", 1, 80000);
	c = loaded(lab, "c", 75000);
	grow_cold(lab.h);
	request(lab.h, model_named(lab, "new", 70000));
	evict_decide(lab);
	assert_true(goes(lab, c)); /* one slot there, two on the first node */
	assert_false(goes(lab, a) || goes(lab, b));
	harness_free(lab.h);
}

static void splitting_a_model_comes_before_evicting_for_it(void **unused)
{
	struct lab lab = evict_lab_new(2);
	int64_t a = loaded(lab, "a", 30000), b = loaded(lab, "b", 30000);
	int64_t c = model_named(lab, "c", 60000);

	(void)unused;
	grow_cold(lab.h);
	request(lab.h, c);
	evict_decide(lab);
	assert_false(goes(lab, a) || goes(lab, b));
	assert_int_equal(slot_of(lab.h, c)->reservation->part_count, 2);
	harness_free(lab.h);
}

static void memory_that_is_coming_back_is_used_before_more_is_evicted(void **unused)
{
	struct lab lab = evict_lab_new(2);
	int64_t a = loaded(lab, "a", 60000), b = loaded(lab, "b", 60000);

	(void)unused;
	grow_cold(lab.h);
	must(lab.h, apply_to(lab.h, COMMAND_REMOVE_MODEL, a));
	request(lab.h, model_named(lab, "c", 60000));
	evict_decide(lab);
	assert_false(goes(lab, b));
	harness_free(lab.h);
}

static void a_limit_of_the_tenant_is_met_by_evicting_what_counts_for_it(void **unused)
{
	struct lab lab = { .h = harness_new() };
	struct tenant_record tenant = tenant_named("lab");

	(void)unused;
	add_node(lab.h, "n1", 3, 80000);
	tenant.limit_gpu_memory = 100000;
	lab.tenant = put_tenant(lab.h, tenant);
	int64_t stranger = put_tenant(lab.h, tenant_named("other"));
	int64_t other = put_model(lab.h, model_of(stranger, "o", 10000));
	load(lab.h, other);
	int64_t a = loaded(lab, "a", 60000), b = model_named(lab, "b", 60000);
	grow_cold(lab.h);
	request(lab.h, b);
	evict_decide(lab);
	assert_true(goes(lab, a));
	assert_false(goes(lab, other));
	settle(lab.h);
	assert_int_equal(slot_of(lab.h, b)->model->counts.ready, 1);
	harness_free(lab.h);
}

/* One slot would have to go for the limit, the other one for room. */
static void a_limit_and_room_together_leave_a_model_its_minimum(void **unused)
{
	struct lab lab = { .h = harness_new() };
	struct tenant_record tenant = tenant_named("lab");

	(void)unused;
	add_node(lab.h, "n1", 1, 40000);
	add_node(lab.h, "n2", 1, 80000);
	tenant.limit_gpu_memory = 100000;
	lab.tenant = put_tenant(lab.h, tenant);
	struct model_record given = model_of(lab.tenant, "a", 30000);
	given.min_replicas = 2;
	int64_t a = put_model(lab.h, given);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, a), 2);
	given.id = a;
	given.min_replicas = 1;
	put_model(lab.h, given);
	grow_cold(lab.h);
	const struct slot *cheapest = ranktree_first(&lab.h->sched->cold_slots.by_cost)->value;
	assert_string_equal(cheapest->reservation->node->r.name, "n1");
	struct job_record large = job_of(lab.tenant, GPU_MEMORY, 1);
	large.memory_mib = 60000;
	submit(lab.h, large);
	evict_decide(lab);
	assert_int_equal(ready_slots(lab.h, a), 2);
	large.memory_mib = 50000; /* fits beside one of them */
	int64_t fits = submit(lab.h, large);
	evict_decide(lab);
	assert_int_equal(ready_slots(lab.h, a), 1);
	assert_int_equal(job_active(job(lab.h, fits)), 1);
	harness_free(lab.h);
}

static void a_decision_says_what_was_evicted_and_what_was_compared(void **unused)
{
	struct lab lab = evict_lab_new(1);
	struct buffer text = { 0 };

	(void)unused;
	loaded(lab, "a", 60000);
	grow_cold(lab.h);
	request(lab.h, model_named(lab, "b", 60000));
	evict_decide(lab);
	const struct decision_record *decision = decided(lab.h, DECISION_EVICT, 0);
	assert_true(sched_explain(lab.h->sched, decision, 0, &text));
	assert_non_null(strstr(text.data, "model b (slot 2) gets room for which idle slots go"));
	assert_non_null(strstr(text.data, "60000 used - 60000 being freed + 0 claimed + 60000 asked"
	                                  " = 60000 of 80000 MiB"));
	assert_non_null(strstr(text.data, "evicts model a (slot 1): 60000 MiB, idle for 10s, "
	                                  "loading it again takes about 7s"));
	buffer_clear(&text);
	decision = decided(lab.h, DECISION_UNLOAD, 0);
	assert_true(sched_explain(lab.h->sched, decision, 0, &text));
	assert_non_null(strstr(text.data, "model a (slot 1) is unloaded, being idle, for model b"));
	buffer_free(&text);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_slot_goes_for_another_model_and_no_more_than_needed),
		cmocka_unit_test(the_newcomer_starts_when_the_memory_is_confirmed_as_back),
		cmocka_unit_test(a_slot_is_not_evicted_before_its_time_to_live),
		cmocka_unit_test(a_slot_with_a_request_in_flight_is_never_evicted),
		cmocka_unit_test(a_pinned_slot_is_never_evicted),
		cmocka_unit_test(no_model_falls_below_its_minimum_of_replicas),
		cmocka_unit_test(after_a_restart_no_slot_goes_before_routers_had_time_to_tell),
		cmocka_unit_test(after_a_restart_a_slot_on_a_drained_node_waits_for_routers_too),
		cmocka_unit_test(after_a_restart_an_idle_slot_on_a_drained_node_stops_by_itself),
		cmocka_unit_test(a_slot_on_a_drained_node_does_not_count_for_the_minimum),
		cmocka_unit_test(nothing_is_evicted_when_that_would_not_be_enough),
		cmocka_unit_test(a_split_slot_is_evicted_once_and_frees_all_its_gpus),
		cmocka_unit_test(slots_on_all_gpus_of_a_split_go_in_one_plan),
		cmocka_unit_test(one_large_slot_goes_rather_than_two_small_ones),
		cmocka_unit_test(of_as_many_slots_those_go_that_load_fastest_again),
		cmocka_unit_test(of_equal_slots_the_one_used_longest_ago_goes),
		cmocka_unit_test(all_nodes_are_looked_at_for_what_loses_least),
		cmocka_unit_test(splitting_a_model_comes_before_evicting_for_it),
		cmocka_unit_test(memory_that_is_coming_back_is_used_before_more_is_evicted),
		cmocka_unit_test(a_limit_of_the_tenant_is_met_by_evicting_what_counts_for_it),
		cmocka_unit_test(a_limit_and_room_together_leave_a_model_its_minimum),
		cmocka_unit_test(a_decision_says_what_was_evicted_and_what_was_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
