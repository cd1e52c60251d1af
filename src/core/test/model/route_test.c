/* route_test.c - requests: where they go, what they hold, and that none is lost */
#include "core/test/slots.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab route_lab_new(int gpus)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", gpus, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static int64_t model_with(struct lab lab, const char *name, int64_t concurrency)
{
	struct model_record given = model_of(lab.tenant, name, 10000);

	given.concurrency = concurrency;
	return put_model(lab.h, given);
}

/* A model with as many replicas, all ready. */
static int64_t replicated(struct lab lab, const char *name, int64_t replicas, int64_t concurrency)
{
	struct model_record given = model_of(lab.tenant, name, 10000);

	given.min_replicas = replicas;
	given.concurrency = concurrency;
	int64_t id = put_model(lab.h, given);
	settle(lab.h);
	assert_int_equal(ready_slots(lab.h, id), replicas);
	return id;
}

static enum route_outcome outcome(struct lab lab, int64_t asked)
{
	return (enum route_outcome)routed(lab.h, asked)->outcome;
}

static void a_request_for_a_warm_model_goes_to_its_slot_and_address(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 2);

	(void)unused;
	load(lab.h, id);
	int64_t asked = request(lab.h, id);
	const struct route_effect *route = routed(lab.h, asked);
	assert_int_equal(route->outcome, ROUTE_GRANTED);
	assert_int_equal(route->slot_id, slot_of(lab.h, id)->r.id);
	assert_string_equal(route->address, "10.0.0.1:8000");
	assert_int_equal(route->until_ms, lab.h->now_ms + config_default().lease_ms);
	harness_free(lab.h);
}

static void a_warm_route_writes_no_record(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 2);

	(void)unused;
	load(lab.h, id);
	lab.h->now_ms += 1;
	int64_t asked = request(lab.h, id);
	assert_int_equal(lab.h->effects.count, 1);
	lab.h->now_ms += 1;
	done(lab.h, asked);
	assert_int_equal(lab.h->effects.count, 0);
	harness_free(lab.h);
}

static void a_slot_takes_as_many_requests_at_once_as_its_concurrency(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 2);

	(void)unused;
	load(lab.h, id);
	int64_t first = request(lab.h, id);
	request(lab.h, id);
	int64_t third = request(lab.h, id);
	assert_int_equal(outcome(lab, third), ROUTE_QUEUED);
	assert_int_equal(slot_of(lab.h, id)->active, 2);
	done(lab.h, first);
	assert_int_equal(outcome(lab, third), ROUTE_GRANTED);
	assert_int_equal(slot_of(lab.h, id)->active, 2);
	harness_free(lab.h);
}

static void the_slot_with_the_fewest_requests_comes_first(void **unused)
{
	struct lab lab = route_lab_new(2);
	int64_t id = replicated(lab, "m", 2, 4), first = request(lab.h, id);
	int64_t used = routed(lab.h, first)->slot_id, second = request(lab.h, id);

	(void)unused;
	assert_int_not_equal(routed(lab.h, second)->slot_id, used);
	done(lab.h, first);
	int64_t third = request(lab.h, id);
	assert_int_equal(routed(lab.h, third)->slot_id, used);
	harness_free(lab.h);
}

static void among_equal_slots_the_node_with_the_fewest_requests_comes_first(void **unused)
{
	struct lab lab = route_lab_new(1);
	struct model_record given = model_of(lab.tenant, "noise", 1000);

	(void)unused;
	add_node(lab.h, "n2", 1, 80000);
	int64_t id = replicated(lab, "m", 2, 4);
	given.concurrency = 4;
	int64_t noise = put_model(lab.h, given);
	load(lab.h, noise);
	request(lab.h, noise);
	const struct node *busy = slot_of(lab.h, noise)->reservation->node;
	int64_t asked = request(lab.h, id);
	assert_int_not_equal(routed(lab.h, asked)->node_id, busy->r.id);
	harness_free(lab.h);
}

static void among_equal_nodes_the_slot_used_last_comes_first(void **unused)
{
	struct lab lab = route_lab_new(1);

	(void)unused;
	add_node(lab.h, "n2", 1, 80000);
	int64_t id = replicated(lab, "m", 2, 4), first = request(lab.h, id);
	int64_t second = request(lab.h, id), last = routed(lab.h, second)->slot_id;
	lab.h->now_ms += 1;
	done(lab.h, first);
	lab.h->now_ms += 1;
	done(lab.h, second);
	int64_t asked = request(lab.h, id);
	assert_int_equal(routed(lab.h, asked)->slot_id, last);
	harness_free(lab.h);
}

/* The slot that the next request should go to, by looking at all of them. */
static const struct slot *best_of(struct lab lab, int64_t id)
{
	const struct slot *best = NULL;

	for (size_t i = 0; i < model(lab.h, id)->slot_count; i++) {
		const struct slot *slot = model(lab.h, id)->slots[i];
		if (slot->routable && slot->active < slot->r.concurrency &&
		    (!best || route_before(slot, best)))
			best = slot;
	}
	return best;
}

static void many_replicas_are_used_in_order_however_busy_their_nodes_are(void **unused)
{
	struct lab lab = route_lab_new(4);
	int64_t flying[256];
	uint64_t seed = 1;
	int count = 0;

	(void)unused;
	add_node(lab.h, "n2", 4, 80000);
	int64_t id = replicated(lab, "m", ROUTE_SCAN + 4, 3);
	int64_t few = replicated(lab, "few", 3, 20);
	for (int i = 0; i < 600; i++) {
		lab.h->now_ms += (int64_t)random_below(&seed, 3);
		if (count > 0 && (count == 50 || random_below(&seed, 5) < 2)) {
			int at = (int)random_below(&seed, (uint64_t)count);
			done(lab.h, flying[at]);
			flying[at] = flying[--count];
			continue;
		}
		int64_t asks = random_below(&seed, 4) ? id : few;
		const struct slot *best = best_of(lab, asks);
		flying[count++] = request(lab.h, asks);
		assert_int_equal(routed(lab.h, flying[count - 1])->slot_id, best->r.id);
	}
	harness_free(lab.h);
}

static void a_request_without_a_slot_waits_and_is_served_when_one_is_ready(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t loads[8], id = model_with(lab, "m", 2), asked[3];

	(void)unused;
	for (int i = 0; i < 3; i++) {
		asked[i] = request(lab.h, id);
		assert_int_equal(outcome(lab, asked[i]), ROUTE_QUEUED);
		assert_int_equal(routed(lab.h, asked[i])->waiting, i + 1);
	}
	assert_int_equal(pass_only(lab.h, loads), 1);
	ready(lab.h, loads[0]);
	assert_int_equal(outcome(lab, asked[0]), ROUTE_GRANTED);
	assert_int_equal(outcome(lab, asked[1]), ROUTE_GRANTED);
	assert_null(routed(lab.h, asked[2]));
	done(lab.h, asked[0]);
	assert_int_equal(outcome(lab, asked[2]), ROUTE_GRANTED);
	harness_free(lab.h);
}

static void a_model_that_could_never_fit_is_refused_at_once_with_the_figures(void **unused)
{
	struct lab lab = route_lab_new(2);
	int64_t id = put_model(lab.h, model_of(lab.tenant, "huge", 200000));
	int64_t asked = request(lab.h, id);

	(void)unused;
	assert_int_equal(outcome(lab, asked), ROUTE_REFUSED);
	assert_string_equal(routed(lab.h, asked)->reason,
	                    "model huge can never be loaded: it takes 200000 MiB, the largest GPU "
	                    "has 80000 MiB and the largest node 160000 MiB for it in all");
	must_not(lab.h, try_done(lab.h, asked, REQUEST_GONE), ERROR_NOT_FOUND, "has ended");
	harness_free(lab.h);
}

static void a_model_that_its_tenants_limit_never_allows_is_refused_at_once(void **unused)
{
	struct lab lab = { .h = harness_new() };
	struct tenant_record tenant = tenant_named("poor");

	(void)unused;
	add_node(lab.h, "n1", 1, 80000);
	tenant.limit_gpu_memory = 5000;
	int64_t id = put_model(lab.h, model_of(put_tenant(lab.h, tenant), "m", 10000));
	int64_t asked = request(lab.h, id);
	assert_int_equal(outcome(lab, asked), ROUTE_REFUSED);
	assert_non_null(strstr(routed(lab.h, asked)->reason, "quota=5000"));
	harness_free(lab.h);
}

static void a_request_waits_while_no_node_has_come_yet(void **unused)
{
	struct lab lab = { .h = harness_new() };

	(void)unused;
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	int64_t asked = request(lab.h, model_with(lab, "m", 1));
	assert_int_equal(outcome(lab, asked), ROUTE_QUEUED);
	harness_free(lab.h);
}

static void a_warm_model_is_served_while_another_cannot_load(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t warm = model_with(lab, "warm", 1), loads[8];

	(void)unused;
	load(lab.h, warm);
	int64_t flying = request(lab.h, warm);
	int64_t stuck = request(lab.h, put_model(lab.h, model_of(lab.tenant, "big", 75000)));
	assert_int_equal(outcome(lab, stuck), ROUTE_QUEUED);
	assert_int_equal(pass_only(lab.h, loads), 0);
	int64_t next = request(lab.h, warm);
	done(lab.h, flying);
	assert_int_equal(outcome(lab, next), ROUTE_GRANTED);
	load(lab.h, model_with(lab, "small", 1));
	harness_free(lab.h);
}

static void a_place_is_given_back_however_the_request_ends_and_only_once(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 1);

	(void)unused;
	load(lab.h, id);
	for (enum request_end end = REQUEST_SUCCEEDED; end <= REQUEST_GONE; end++) {
		int64_t asked = request(lab.h, id);
		assert_int_equal(slot_of(lab.h, id)->active, 1);
		must(lab.h, try_done(lab.h, asked, end));
		assert_int_equal(slot_of(lab.h, id)->active, 0);
		must_not(lab.h, try_done(lab.h, asked, end), ERROR_NOT_FOUND, "has ended");
		assert_int_equal(slot_of(lab.h, id)->active, 0);
	}
	harness_free(lab.h);
}

static void a_client_that_goes_while_it_waits_is_forgotten(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 1), loads[8], asked = request(lab.h, id);

	(void)unused;
	must(lab.h, try_done(lab.h, asked, REQUEST_GONE));
	assert_int_equal(pass_only(lab.h, loads), 0);
	harness_free(lab.h);
}

static void a_request_in_flight_expires_unless_it_is_renewed(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 1), lease_ms = config_default().lease_ms;

	(void)unused;
	load(lab.h, id);
	int64_t asked = request(lab.h, id);
	time_passes(lab.h, lease_ms - 1);
	assert_null(routed(lab.h, asked));
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_REQUEST_RENEW,
	                                                   .request = { .request_id = asked } }));
	time_passes(lab.h, lease_ms - 1);
	assert_null(routed(lab.h, asked));
	time_passes(lab.h, 1);
	assert_int_equal(outcome(lab, asked), ROUTE_EXPIRED);
	assert_int_equal(slot_of(lab.h, id)->active, 0);
	must_not(lab.h, try_done(lab.h, asked, REQUEST_SUCCEEDED), ERROR_NOT_FOUND, "has ended");
	harness_free(lab.h);
}

static void an_id_that_is_in_use_is_refused(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 1), asked = request(lab.h, id);

	(void)unused;
	must_not(lab.h, try_request(lab.h, id, 0, asked), ERROR_CONFLICT, "not over");
	must_not(lab.h, try_request(lab.h, id, 0, 0), ERROR_INVALID, "positive");
	must_not(lab.h, try_request(lab.h, 99, 0, next_request()), ERROR_NOT_FOUND, "model-99");
	must_not(lab.h, try_request(lab.h, id, 77, next_request()), ERROR_NOT_FOUND, "tenant-77");
	harness_free(lab.h);
}

static void requests_of_a_slot_that_died_are_tried_elsewhere_in_their_order(void **unused)
{
	struct lab lab = route_lab_new(2);
	int64_t id = replicated(lab, "m", 2, 1), first = request(lab.h, id);
	int64_t slot = routed(lab.h, first)->slot_id, second = request(lab.h, id);
	int64_t third = request(lab.h, id);

	(void)unused;
	must(lab.h, to_slot(lab.h, COMMAND_SLOT_EXITED, slot, "segfault", true));
	assert_int_equal(outcome(lab, first), ROUTE_QUEUED);
	assert_string_equal(routed(lab.h, first)->reason, "its slot ended");
	done(lab.h, second);
	assert_int_equal(outcome(lab, first), ROUTE_GRANTED); /* it came before the third */
	assert_null(routed(lab.h, third));
	done(lab.h, first);
	assert_int_equal(outcome(lab, third), ROUTE_GRANTED);
	harness_free(lab.h);
}

static void requests_on_a_lost_node_are_tried_elsewhere(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 1), loads[8];

	(void)unused;
	load(lab.h, id);
	int64_t asked = request(lab.h, id);
	set_node_state(lab.h, "n1", NODE_UNKNOWN);
	assert_null(routed(lab.h, asked)); /* it may still answer */
	set_node_state(lab.h, "n1", NODE_LOST);
	assert_int_equal(outcome(lab, asked), ROUTE_QUEUED);
	add_node(lab.h, "n2", 1, 80000);
	assert_int_equal(pass_only(lab.h, loads), 1);
	ready(lab.h, loads[0]);
	assert_int_equal(outcome(lab, asked), ROUTE_GRANTED);
	harness_free(lab.h);
}

static void a_slot_on_a_silent_node_gets_no_requests(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 1);

	(void)unused;
	load(lab.h, id);
	set_node_state(lab.h, "n1", NODE_UNKNOWN);
	int64_t asked = request(lab.h, id);
	assert_int_equal(outcome(lab, asked), ROUTE_QUEUED);
	set_node_state(lab.h, "n1", NODE_ONLINE);
	assert_int_equal(outcome(lab, asked), ROUTE_GRANTED);
	harness_free(lab.h);
}

static void all_requests_end_once_when_the_routers_start_anew(void **unused)
{
	struct lab lab = route_lab_new(1);
	int64_t id = model_with(lab, "m", 1), ended = 0;

	(void)unused;
	load(lab.h, id);
	for (int i = 0; i < 3; i++)
		request(lab.h, id);
	lab.h->now_ms += 5000;
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_RESET_REQUESTS }));
	for (size_t i = 0; i < lab.h->effects.count; i++)
		ended += lab.h->effects.at[i].kind == EFFECT_ROUTE &&
		         lab.h->effects.at[i].route.outcome == ROUTE_ENDED;
	assert_int_equal(ended, 3);
	assert_int_equal(slot_of(lab.h, id)->active, 0);
	assert_int_equal(slot_of(lab.h, id)->r.used_ms, lab.h->now_ms);
	assert_int_equal(lab.h->sched->routes.by_id.count, 0);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_for_a_warm_model_goes_to_its_slot_and_address),
		cmocka_unit_test(a_warm_route_writes_no_record),
		cmocka_unit_test(a_slot_takes_as_many_requests_at_once_as_its_concurrency),
		cmocka_unit_test(the_slot_with_the_fewest_requests_comes_first),
		cmocka_unit_test(among_equal_slots_the_node_with_the_fewest_requests_comes_first),
		cmocka_unit_test(among_equal_nodes_the_slot_used_last_comes_first),
		cmocka_unit_test(many_replicas_are_used_in_order_however_busy_their_nodes_are),
		cmocka_unit_test(a_request_without_a_slot_waits_and_is_served_when_one_is_ready),
		cmocka_unit_test(a_model_that_could_never_fit_is_refused_at_once_with_the_figures),
		cmocka_unit_test(a_model_that_its_tenants_limit_never_allows_is_refused_at_once),
		cmocka_unit_test(a_request_waits_while_no_node_has_come_yet),
		cmocka_unit_test(a_warm_model_is_served_while_another_cannot_load),
		cmocka_unit_test(a_place_is_given_back_however_the_request_ends_and_only_once),
		cmocka_unit_test(a_client_that_goes_while_it_waits_is_forgotten),
		cmocka_unit_test(a_request_in_flight_expires_unless_it_is_renewed),
		cmocka_unit_test(an_id_that_is_in_use_is_refused),
		cmocka_unit_test(requests_of_a_slot_that_died_are_tried_elsewhere_in_their_order),
		cmocka_unit_test(requests_on_a_lost_node_are_tried_elsewhere),
		cmocka_unit_test(a_slot_on_a_silent_node_gets_no_requests),
		cmocka_unit_test(all_requests_end_once_when_the_routers_start_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
