/* slot_test.c - slots: where they go, how they load, what nodes tell about them */
#include "core/test/slots.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

/* One tenant and a node n1 with as many GPUs of 80,000 MiB. */
static struct lab slot_lab_new(int gpus)
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

static int64_t slot_used(struct lab lab, const char *uuid)
{
	return gpu(lab.h, uuid)->books.used_mib;
}

static void a_model_goes_to_the_emptiest_gpu(void **unused)
{
	struct lab lab = slot_lab_new(2);

	(void)unused;
	load(lab.h, model_named(lab, "a", 20000));
	load(lab.h, model_named(lab, "b", 10000));
	load(lab.h, model_named(lab, "c", 5000));
	assert_int_equal(slot_used(lab, "n1-gpu0"), 20000);
	assert_int_equal(slot_used(lab, "n1-gpu1"), 15000);
	harness_free(lab.h);
}

static void a_model_that_packs_goes_where_least_is_left(void **unused)
{
	struct lab lab = slot_lab_new(2);
	struct model_record given = model_of(lab.tenant, "a", 20000);

	(void)unused;
	given.policy = SLOT_PACK;
	load(lab.h, put_model(lab.h, given));
	given.name = "b";
	load(lab.h, put_model(lab.h, given));
	assert_int_equal(slot_used(lab, "n1-gpu0"), 40000);
	harness_free(lab.h);
}

static void a_model_larger_than_a_gpu_is_split_evenly_over_as_few_as_possible(void **unused)
{
	struct lab lab = slot_lab_new(4);
	int64_t id = model_named(lab, "big", 175000);

	(void)unused;
	load(lab.h, id);
	const struct reservation *reservation = slot_of(lab.h, id)->reservation;
	assert_int_equal(reservation->part_count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(reservation->parts[i].mib, 58334);
	harness_free(lab.h);
}

static void only_gpu_counts_that_the_model_allows_are_used(void **unused)
{
	struct lab lab = slot_lab_new(4);
	const int64_t splits[] = { 1, 0, 2, 0, 4, 0 };
	struct model_record given = model_of(lab.tenant, "big", 175000);

	(void)unused;
	given.splits = (struct rows){ splits, 3 };
	int64_t id = put_model(lab.h, given);
	load(lab.h, id);
	assert_int_equal(slot_of(lab.h, id)->reservation->part_count, 4);
	harness_free(lab.h);
}

static void a_split_goes_around_a_gpu_that_is_full(void **unused)
{
	struct lab lab = slot_lab_new(4);
	int64_t full = model_named(lab, "full", 70000), id = model_named(lab, "m", 150000);

	(void)unused;
	load(lab.h, full);
	request(lab.h, full);
	load(lab.h, id);
	const struct reservation *reservation = slot_of(lab.h, id)->reservation;
	assert_int_equal(reservation->part_count, 2);
	for (int i = 0; i < 2; i++)
		assert_string_not_equal(reservation->parts[i].gpu->r.uuid, slot_gpu(lab.h, full));
	harness_free(lab.h);
}

static void a_split_takes_gpus_that_are_linked(void **unused)
{
	struct lab lab = { .h = harness_new() };
	struct device devices[] = { device_of("a", 0, 80000), device_of("b", 1, 80000),
		                    device_of("c", 2, 80000) };

	(void)unused;
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	devices[1].nvlink_group = devices[2].nvlink_group = 7;
	must(lab.h, report(lab.h, report_of("n1", devices, 3)));
	int64_t id = model_named(lab, "m", 100000);
	load(lab.h, id);
	for (int i = 0; i < 2; i++)
		assert_int_equal(slot_of(lab.h, id)->reservation->parts[i].gpu->r.nvlink_group, 7);
	harness_free(lab.h);
}

static void uneven_parts_are_as_even_as_the_gpus_allow_and_add_up(void **unused)
{
	struct lab lab = { .h = harness_new() };
	const struct device devices[] = { device_of("large", 0, 80000),
		                          device_of("small", 1, 30000) };
	struct model_record given;

	(void)unused;
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	must(lab.h, report(lab.h, report_of("n1", devices, 2)));
	given = model_of(lab.tenant, "m", 100000);
	given.uneven = true;
	int64_t id = put_model(lab.h, given);
	load(lab.h, id);
	assert_int_equal(slot_used(lab, "large"), 70000);
	assert_int_equal(slot_used(lab, "small"), 30000);
	harness_free(lab.h);
}

static void an_uneven_model_does_not_fit_evenly_by_itself(void **unused)
{
	struct lab lab = { .h = harness_new() };
	const struct device devices[] = { device_of("large", 0, 80000),
		                          device_of("small", 1, 30000) };

	(void)unused;
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	must(lab.h, report(lab.h, report_of("n1", devices, 2)));
	int64_t asked = request(lab.h, model_named(lab, "even", 100000));
	assert_int_equal(routed(lab.h, asked)->outcome, ROUTE_REFUSED);
	harness_free(lab.h);
}

static void the_size_of_a_slot_counts_from_the_moment_it_is_decided(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t loads[8], id = model_named(lab, "m", 30000);

	(void)unused;
	request(lab.h, id);
	assert_int_equal(pass_only(lab.h, loads), 1);
	assert_int_equal(slot_of(lab.h, id)->reservation->phase, PHASE_GRANTED);
	assert_int_equal(slot_used(lab, "n1-gpu0"), 30000);
	must(lab.h, to_slot(lab.h, COMMAND_SLOT_LOADING, loads[0], "", false));
	assert_int_equal(slot_of(lab.h, id)->reservation->phase, PHASE_LIVE);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_LOADING);
	ready(lab.h, loads[0]);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_READY);
	assert_int_equal(slot_used(lab, "n1-gpu0"), 30000);
	harness_free(lab.h);
}

static void loads_on_one_gpu_go_one_after_the_other(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t loads[8], a = model_named(lab, "a", 10000), b = model_named(lab, "b", 10000);

	(void)unused;
	request(lab.h, a);
	request(lab.h, b);
	assert_int_equal(pass_only(lab.h, loads), 1);
	assert_int_equal(loads[0], slot_of(lab.h, a)->r.id);
	assert_int_equal(slot_of(lab.h, b)->r.state, SLOT_PLACED);
	ready(lab.h, loads[0]);
	assert_int_equal(effects_of(lab.h, EFFECT_LOAD), 1);
	assert_int_equal(slot_of(lab.h, b)->r.state, SLOT_LOADING);
	harness_free(lab.h);
}

static void nothing_is_loaded_on_a_node_that_has_not_reported_since_a_restart(void **unused)
{
	struct lab lab = slot_lab_new(1);
	const struct device device = device_of("n1-gpu0", 0, 80000);
	int64_t loads[8], a = model_named(lab, "a", 10000), b = model_named(lab, "b", 10000);

	(void)unused;
	request(lab.h, a);
	request(lab.h, b);
	pass_only(lab.h, loads);
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_START }));
	ready(lab.h, loads[0]);
	assert_int_equal(slot_of(lab.h, b)->r.state, SLOT_PLACED);
	struct node_report_command node = report_of("n1", &device, 1);
	node.running = loads;
	node.running_count = 1;
	node.snapshot = true;
	must(lab.h, report(lab.h, node));
	assert_int_equal(effects_of(lab.h, EFFECT_LOAD), 1);
	assert_int_equal(slot_of(lab.h, b)->r.state, SLOT_LOADING);
	harness_free(lab.h);
}

static void loads_on_different_gpus_go_at_the_same_time(void **unused)
{
	struct lab lab = slot_lab_new(4);
	int64_t loads[8];

	(void)unused;
	request(lab.h, model_named(lab, "a", 10000));
	request(lab.h, model_named(lab, "b", 10000));
	request(lab.h, model_named(lab, "c", 100000));
	assert_int_equal(pass_only(lab.h, loads), 3);
	harness_free(lab.h);
}

static void as_many_load_onto_one_gpu_at_once_as_the_setting_says(void **unused)
{
	struct lab lab = slot_lab_new(1);
	struct command configure = { .kind = COMMAND_CONFIGURE, .configure = config_default() };
	int64_t loads[8];

	(void)unused;
	configure.configure.loads_per_gpu = 2;
	must(lab.h, harness_apply(lab.h, configure));
	request(lab.h, model_named(lab, "a", 10000));
	request(lab.h, model_named(lab, "b", 10000));
	request(lab.h, model_named(lab, "c", 10000));
	assert_int_equal(pass_only(lab.h, loads), 2);
	ready(lab.h, loads[1]);
	assert_int_equal(effects_of(lab.h, EFFECT_LOAD), 1);
	harness_free(lab.h);
}

static void a_load_that_takes_longer_than_usual_no_longer_holds_others_up(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t loads[8], a = model_named(lab, "a", 10000), b = model_named(lab, "b", 10000);
	int64_t c = model_named(lab, "c", 10000);

	(void)unused;
	request(lab.h, a);
	request(lab.h, b);
	request(lab.h, c);
	pass_only(lab.h, loads);
	must(lab.h, to_slot(lab.h, COMMAND_SLOT_LOADING, loads[0], "", false));
	time_passes(lab.h, 29999); /* it has no history: half a minute at the least */
	assert_int_equal(effects_of(lab.h, EFFECT_LOAD), 0);
	time_passes(lab.h, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_LOAD), 1);
	assert_int_equal(slot_of(lab.h, a)->r.state, SLOT_LOADING);
	assert_int_equal(slot_of(lab.h, b)->r.state, SLOT_LOADING);
	assert_int_equal(slot_of(lab.h, c)->r.state, SLOT_PLACED);
	/* When it is ready at last, that lets nobody else begin: b still loads. */
	ready(lab.h, loads[0]);
	assert_int_equal(slot_of(lab.h, c)->r.state, SLOT_PLACED);
	ready(lab.h, slot_of(lab.h, b)->r.id);
	assert_int_equal(slot_of(lab.h, c)->r.state, SLOT_LOADING);
	harness_free(lab.h);
}

static void what_is_usual_follows_from_earlier_loads_of_the_model(void **unused)
{
	struct lab lab = slot_lab_new(2);
	int64_t loads[8], slow = model_named(lab, "slow", 10000);

	(void)unused;
	request(lab.h, slow);
	pass_only(lab.h, loads);
	time_passes(lab.h, 100000);
	ready(lab.h, loads[0]);
	must(lab.h, to_slot(lab.h, COMMAND_SLOT_EXITED, loads[0], "gone", true));
	time_passes(lab.h, 20000);
	request(lab.h, slow);
	assert_int_equal(pass_only(lab.h, loads), 1);
	assert_int_equal(slot_of(lab.h, slow)->r.overdue_ms - lab.h->now_ms, 200000);
	harness_free(lab.h);
}

static void a_load_that_fails_frees_its_gpu_for_the_next(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t loads[8], a = model_named(lab, "a", 10000), b = model_named(lab, "b", 10000);

	(void)unused;
	request(lab.h, a);
	request(lab.h, b);
	pass_only(lab.h, loads);
	must(lab.h, to_slot(lab.h, COMMAND_SLOT_EXITED, loads[0], "out of memory", false));
	assert_int_equal(slot_of(lab.h, b)->r.state, SLOT_LOADING);
	assert_int_equal(slot_used(lab, "n1-gpu0"), 20000); /* until its memory is confirmed */
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, loads[0], 0, false));
	assert_int_equal(slot_used(lab, "n1-gpu0"), 10000);
	harness_free(lab.h);
}

static void a_load_that_takes_too_long_is_stopped_and_counts_until_confirmed(void **unused)
{
	struct lab lab = slot_lab_new(1);
	struct model_record given = model_of(lab.tenant, "m", 10000);
	int64_t loads[8], asked;

	(void)unused;
	given.load_timeout_ms = 60000;
	int64_t id = put_model(lab.h, given);
	asked = request(lab.h, id);
	pass_only(lab.h, loads);
	must(lab.h, to_slot(lab.h, COMMAND_SLOT_LOADING, loads[0], "", false));
	time_passes(lab.h, 59999);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_LOADING);
	time_passes(lab.h, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_STOPPING);
	assert_int_equal(slot_used(lab, "n1-gpu0"), 10000);
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, loads[0], 0, false));
	assert_int_equal(slot_used(lab, "n1-gpu0"), 0);
	time_passes(lab.h, 10000);
	settle(lab.h);
	done(lab.h, asked); /* it was never lost */
	harness_free(lab.h);
}

static void a_model_that_fails_again_and_again_backs_off_and_says_so(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t loads[8], id = model_named(lab, "m", 10000), wait_ms = 5000;

	(void)unused;
	request(lab.h, id);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(pass_only(lab.h, loads), 1);
		must(lab.h, to_slot(lab.h, COMMAND_SLOT_EXITED, loads[0], "bad weights", true));
		assert_int_equal(model(lab.h, id)->r.failures, i);
		assert_int_equal(model(lab.h, id)->r.not_before_ms, lab.h->now_ms + wait_ms);
		assert_non_null(strstr(why_model(lab.h, id), "bad weights"));
		assert_non_null(strstr(why_model(lab.h, id), "not tried again before"));
		lab.h->now_ms += wait_ms - 1;
		assert_int_equal(pass_only(lab.h, loads), 0);
		lab.h->now_ms += 1;
		wait_ms *= 2;
	}
	assert_int_equal(pass_only(lab.h, loads), 1);
	harness_free(lab.h);
}

static void a_slot_that_a_node_would_not_load_is_planned_anew(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t loads[8], id = model_named(lab, "m", 10000);

	(void)unused;
	request(lab.h, id);
	pass_only(lab.h, loads);
	must(lab.h, to_slot(lab.h, COMMAND_SLOT_EXITED, loads[0], "", true));
	assert_non_null(strstr(why_model(lab.h, id), "(its server ended)"));
	assert_int_equal(slot_used(lab, "n1-gpu0"), 0);
	lab.h->now_ms += 5000;
	assert_int_equal(pass_only(lab.h, loads), 1);
	harness_free(lab.h);
}

static void the_order_to_load_names_what_was_reserved(void **unused)
{
	struct lab lab = slot_lab_new(2);
	struct model_record given = model_of(lab.tenant, "m", 100000);
	const struct load_order *order = NULL;

	(void)unused;
	given.runtime = RUNTIME_VLLM;
	given.context = 8192;
	given.parallel = 4;
	given.kv_cache = "fp8";
	request(lab.h, put_model(lab.h, given));
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 99 }));
	for (size_t i = 0; i < lab.h->effects.count; i++)
		if (lab.h->effects.at[i].kind == EFFECT_LOAD)
			order = &lab.h->effects.at[i].load;
	assert_non_null(order);
	assert_int_equal(order->parts.count, 2);
	assert_int_equal(order->parts.at[PART_MIB], 50000);
	assert_int_equal(order->utilisation.count, 2);
	assert_int_equal(order->utilisation.at[0], 625);
	assert_int_equal(order->tensor_parallel, 2);
	assert_int_equal(order->context, 8192);
	assert_int_equal(order->parallel, 4);
	assert_string_equal(order->kv_cache, "fp8");
	harness_free(lab.h);
}

static void slots_count_against_the_limits_and_the_bill_of_their_tenant(void **unused)
{
	struct lab lab = { .h = harness_new() };
	struct tenant_record tenant = tenant_named("lab");
	int64_t loads[8];

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	tenant.limit_gpu_memory = 50000;
	tenant.cost_per_gpu_hour = 1000000;
	lab.tenant = put_tenant(lab.h, tenant);
	int64_t a = model_named(lab, "a", 40000), b = model_named(lab, "b", 20000);
	load(lab.h, a);
	request(lab.h, a);
	request(lab.h, b);
	assert_int_equal(pass_only(lab.h, loads), 0);
	assert_non_null(strstr(why_model(lab.h, b),
	                       "tenant lab is at its limit of 50000 MiB of GPU "
	                       "memory (40000 in use, 20000 requested)"));
	const struct tenant *payer = tenants_find(&lab.h->sched->tenants, lab.tenant);
	assert_int_equal(payer->allocated.of[AMOUNT_GPU], 500);
	assert_int_equal(payer->allocated.of[AMOUNT_JOBS], 0);
	int64_t before = tenant_cost(payer, lab.h->now_ms);
	assert_int_equal(tenant_cost(payer, lab.h->now_ms + 3600000) - before, 500000);
	harness_free(lab.h);
}

static void tokens_are_charged_up_the_tree_and_credited_to_the_models_tenant(void **unused)
{
	struct lab lab = slot_lab_new(1);
	struct tenant_record below = tenant_named("below");

	(void)unused;
	below.parent_id = put_tenant(lab.h, tenant_named("above"));
	int64_t asker = put_tenant(lab.h, below);
	const int64_t rows[] = { asker, lab.tenant, 300,        lab.tenant, lab.tenant,
		                 70,    999,        lab.tenant, 1 };
	must(lab.h, harness_apply(
			lab.h, (struct command){ .kind = COMMAND_CHARGE, .charges = { rows, 3 } }));
	const struct tenant *payer = tenants_find(&lab.h->sched->tenants, asker);
	const struct tenant *owner = tenants_find(&lab.h->sched->tenants, lab.tenant);
	assert_int_equal(tenant_month_cost(payer, lab.h->now_ms), 300);
	assert_int_equal(payer->r.token_cost, 300);
	assert_int_equal(tenant_cost(payer->parent, lab.h->now_ms), 300);
	assert_int_equal(owner->r.token_credit, 301);
	assert_int_equal(tenant_cost(owner, lab.h->now_ms), 0);
	const int64_t negative[] = { asker, lab.tenant, -1 };
	assert_false(harness_apply(
	    lab.h, (struct command){ .kind = COMMAND_CHARGE, .charges = { negative, 1 } }));
	harness_free(lab.h);
}

static void a_node_that_is_drained_loses_its_slots_when_they_are_idle(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t id = model_named(lab, "m", 10000), loads[8];

	(void)unused;
	load(lab.h, id);
	int64_t flying = request(lab.h, id);
	drain(lab.h, "n1", true);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_READY);
	add_node(lab.h, "n2", 1, 80000);
	int64_t waiting = request(lab.h, id);
	assert_int_equal(routed(lab.h, waiting)->outcome, ROUTE_QUEUED);
	assert_int_equal(pass_only(lab.h, loads), 1);
	ready(lab.h, loads[0]);
	assert_int_equal(routed(lab.h, waiting)->outcome, ROUTE_GRANTED);
	done(lab.h, flying);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_STOPPING);
	harness_free(lab.h);
}

static bool evict_model(struct harness *h, int64_t id, const char *node, bool now)
{
	struct command command = { .kind = COMMAND_EVICT_MODEL };

	command.evict.model_id = id;
	command.evict.node = node;
	command.evict.now = now;
	return harness_apply(h, command);
}

static void an_evicted_model_stops_when_it_has_no_requests(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t id = model_named(lab, "m", 10000);

	(void)unused;
	load(lab.h, id);
	int64_t flying = request(lab.h, id);
	must_not(lab.h, evict_model(lab.h, id, "n9", false), ERROR_NOT_FOUND, "n9");
	must(lab.h, evict_model(lab.h, id, "n1", false));
	assert_int_equal(lab.h->effects.reply_count, 1);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_READY);
	int64_t waiting = request(lab.h, id);
	assert_int_equal(routed(lab.h, waiting)->outcome, ROUTE_QUEUED);
	done(lab.h, flying);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_STOPPING);
	must_not(lab.h, evict_model(lab.h, id, "", false), ERROR_CONFLICT, "has no replica");
	harness_free(lab.h);
}

static void an_eviction_may_stop_what_serves(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t id = model_named(lab, "m", 10000);

	(void)unused;
	load(lab.h, id);
	request(lab.h, id);
	must(lab.h, evict_model(lab.h, id, "", true));
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_STOPPING);
	harness_free(lab.h);
}

static void a_model_leaves_a_window_that_is_not_its_own(void **unused)
{
	struct lab lab = slot_lab_new(1);
	int64_t id = model_named(lab, "m", 10000), loads[8];
	struct command command = { .kind = COMMAND_PUT_WINDOW };

	(void)unused;
	load(lab.h, id);
	int64_t flying = request(lab.h, id);
	command.window.window = (struct window_record){ .name = "w",
		                                        .nodes = "n1",
		                                        .maintenance = true,
		                                        .start_ms = lab.h->now_ms + 1000,
		                                        .length_ms = 60000 };
	must(lab.h, harness_apply(lab.h, command));
	time_passes(lab.h, 2000);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_READY);
	done(lab.h, flying);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_STOPPING);
	assert_int_equal(pass_only(lab.h, loads), 0);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_model_goes_to_the_emptiest_gpu),
		cmocka_unit_test(a_model_that_packs_goes_where_least_is_left),
		cmocka_unit_test(a_model_larger_than_a_gpu_is_split_evenly_over_as_few_as_possible),
		cmocka_unit_test(only_gpu_counts_that_the_model_allows_are_used),
		cmocka_unit_test(a_split_goes_around_a_gpu_that_is_full),
		cmocka_unit_test(a_split_takes_gpus_that_are_linked),
		cmocka_unit_test(uneven_parts_are_as_even_as_the_gpus_allow_and_add_up),
		cmocka_unit_test(an_uneven_model_does_not_fit_evenly_by_itself),
		cmocka_unit_test(the_size_of_a_slot_counts_from_the_moment_it_is_decided),
		cmocka_unit_test(loads_on_one_gpu_go_one_after_the_other),
		cmocka_unit_test(nothing_is_loaded_on_a_node_that_has_not_reported_since_a_restart),
		cmocka_unit_test(loads_on_different_gpus_go_at_the_same_time),
		cmocka_unit_test(as_many_load_onto_one_gpu_at_once_as_the_setting_says),
		cmocka_unit_test(a_load_that_takes_longer_than_usual_no_longer_holds_others_up),
		cmocka_unit_test(what_is_usual_follows_from_earlier_loads_of_the_model),
		cmocka_unit_test(a_load_that_fails_frees_its_gpu_for_the_next),
		cmocka_unit_test(a_load_that_takes_too_long_is_stopped_and_counts_until_confirmed),
		cmocka_unit_test(a_model_that_fails_again_and_again_backs_off_and_says_so),
		cmocka_unit_test(a_slot_that_a_node_would_not_load_is_planned_anew),
		cmocka_unit_test(the_order_to_load_names_what_was_reserved),
		cmocka_unit_test(slots_count_against_the_limits_and_the_bill_of_their_tenant),
		cmocka_unit_test(tokens_are_charged_up_the_tree_and_credited_to_the_models_tenant),
		cmocka_unit_test(a_node_that_is_drained_loses_its_slots_when_they_are_idle),
		cmocka_unit_test(an_evicted_model_stops_when_it_has_no_requests),
		cmocka_unit_test(an_eviction_may_stop_what_serves),
		cmocka_unit_test(a_model_leaves_a_window_that_is_not_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
