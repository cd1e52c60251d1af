/* slot_report_test.c - slots as nodes report them: known, unknown, vanished */
#include "core/test/slots.h"

struct lab {
	struct harness *h;
	int64_t tenant;
	struct device devices[2];
	struct measurement measurements[4];
	int64_t measurement_count;
};

static struct lab slot_report_lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	lab.devices[0] = device_of("g0", 0, 80000);
	lab.devices[1] = device_of("g1", 1, 80000);
	must(lab.h, report(lab.h, report_of("n1", lab.devices, 2)));
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static int64_t model_named(struct lab *lab, const char *name, int64_t mib)
{
	return put_model(lab->h, model_of(lab->tenant, name, mib));
}

static void slot_report_measured(struct lab *lab, int64_t id, const char *uuid, int64_t mib)
{
	lab->measurements[lab->measurement_count++] = (struct measurement){ id, uuid, mib };
}

/* The node has just these slots. */
static void slot_report_snapshot(struct lab *lab, const struct slot_report *slots, int64_t count)
{
	struct node_report_command node = report_of("n1", lab->devices, 2);

	node.slots = slots;
	node.slot_count = count;
	node.measurements = lab->measurements;
	node.measurement_count = lab->measurement_count;
	node.snapshot = true;
	must(lab->h, report(lab->h, node));
}

static void an_unknown_slot_that_matches_a_model_is_adopted_and_serves(void **unused)
{
	struct lab lab = slot_report_lab_new();
	int64_t id = model_named(&lab, "m", 30000), asked = request(lab.h, id);
	const struct slot_report slot = { 77, "m", "10.0.0.9:1", true };

	(void)unused;
	slot_report_measured(&lab, 77, "g1", 29000);
	slot_report_snapshot(&lab, &slot, 1);
	assert_int_equal(routed(lab.h, asked)->slot_id, 77);
	assert_string_equal(routed(lab.h, asked)->address, "10.0.0.9:1");
	assert_int_equal(gpu(lab.h, "g1")->books.used_mib, 30000);
	assert_int_equal(gpu(lab.h, "g1")->r.foreign_mib, 0);
	assert_true(slot_of(lab.h, id)->r.adopted);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 0);
	assert_non_null(decided(lab.h, DECISION_ADOPT, 0));
	load(lab.h, model_named(&lab, "next", 1000));
	assert_true(slot_of(lab.h, id)->model->slots[0]->r.id <
	            lab.h->sched->meta.last_reservation_id);
	harness_free(lab.h);
}

/* It may grow to that, and its node keeps others off as much. */
static void an_adopted_slot_of_uneven_parts_counts_with_all_that_its_model_takes(void **unused)
{
	struct lab lab = slot_report_lab_new();
	struct model_record given = model_of(lab.tenant, "m", 100000);
	const struct slot_report slot = { 77, "m", "a", true };

	(void)unused;
	given.uneven = true;
	put_model(lab.h, given);
	slot_report_measured(&lab, 77, "g0", 4000);
	slot_report_measured(&lab, 77, "g1", 300);
	slot_report_snapshot(&lab, &slot, 1);
	assert_int_equal(gpu(lab.h, "g0")->books.used_mib, 50000);
	assert_int_equal(gpu(lab.h, "g1")->books.used_mib, 50000);
	harness_free(lab.h);
}

static void an_adopted_slot_that_does_not_fit_closes_its_gpu(void **unused)
{
	struct lab lab = slot_report_lab_new();
	int64_t id = model_named(&lab, "m", 30000), loads[8];
	const struct slot_report slot = { 77, "m", "a", true };

	(void)unused;
	slot_report_measured(&lab, 77, "g0", 90000);
	slot_report_snapshot(&lab, &slot, 1);
	assert_int_equal(ready_slots(lab.h, id), 1);
	assert_true(gpu_is_over(gpu(lab.h, "g0")));
	request(lab.h, model_named(&lab, "other", 1000));
	pass_only(lab.h, loads);
	assert_int_equal(gpu(lab.h, "g1")->books.used_mib, 1000);
	harness_free(lab.h);
}

static void an_unknown_slot_that_matches_nothing_is_stopped_and_counts_until_gone(void **unused)
{
	struct lab lab = slot_report_lab_new();
	const struct slot_report slot = { 77, "ghost", "a", true };

	(void)unused;
	slot_report_measured(&lab, 77, "g0", 30000);
	slot_report_snapshot(&lab, &slot, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	assert_int_equal(gpu(lab.h, "g0")->r.foreign_mib, 30000);
	lab.measurement_count = 0;
	slot_report_snapshot(&lab, NULL, 0);
	assert_int_equal(gpu(lab.h, "g0")->r.foreign_mib, 0);
	harness_free(lab.h);
}

static void a_slot_over_a_gpu_count_that_its_model_does_not_allow_is_stopped(void **unused)
{
	struct lab lab = slot_report_lab_new();
	const int64_t splits[] = { 1, 0 };
	struct model_record given = model_of(lab.tenant, "m", 30000);
	const struct slot_report slot = { 77, "m", "a", true };

	(void)unused;
	given.splits = (struct rows){ splits, 1 };
	int64_t id = put_model(lab.h, given);
	slot_report_measured(&lab, 77, "g0", 15000);
	slot_report_measured(&lab, 77, "g1", 15000);
	slot_report_snapshot(&lab, &slot, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	assert_null(slot_of(lab.h, id));
	harness_free(lab.h);
}

static void a_slot_that_vanished_frees_its_requests_and_its_memory(void **unused)
{
	struct lab lab = slot_report_lab_new();
	int64_t id = model_named(&lab, "m", 30000);

	(void)unused;
	load(lab.h, id);
	int64_t asked = request(lab.h, id);
	slot_report_snapshot(&lab, NULL, 0);
	assert_int_equal(routed(lab.h, asked)->outcome, ROUTE_QUEUED);
	assert_null(slot_of(lab.h, id));
	assert_int_equal(gpu(lab.h, "g0")->books.used_mib, 0);
	settle(lab.h);
	done(lab.h, asked);
	harness_free(lab.h);
}

static void an_order_to_load_that_a_node_missed_is_sent_again(void **unused)
{
	struct lab lab = slot_report_lab_new();
	int64_t id = model_named(&lab, "m", 30000), loads[8];

	(void)unused;
	request(lab.h, id);
	pass_only(lab.h, loads);
	slot_report_snapshot(&lab, NULL, 0);
	assert_int_equal(effects_of(lab.h, EFFECT_LOAD), 1);
	assert_int_equal(slot_of(lab.h, id)->r.id, loads[0]);
	harness_free(lab.h);
}

static void an_order_to_stop_that_a_node_missed_is_sent_again(void **unused)
{
	struct lab lab = slot_report_lab_new();
	int64_t id = model_named(&lab, "m", 30000);

	(void)unused;
	load(lab.h, id);
	const struct slot_report slot = { slot_of(lab.h, id)->r.id, "m", "a", true };
	must(lab.h, apply_to(lab.h, COMMAND_REMOVE_MODEL, id));
	slot_report_snapshot(&lab, &slot, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	assert_int_equal(slot_of(lab.h, id)->r.state, SLOT_STOPPING);
	slot_report_snapshot(&lab, NULL, 0);
	assert_null(model(lab.h, id));
	harness_free(lab.h);
}

static void a_report_tells_that_a_slot_is_ready(void **unused)
{
	struct lab lab = slot_report_lab_new();
	int64_t id = model_named(&lab, "m", 30000), loads[8], asked = request(lab.h, id);

	(void)unused;
	pass_only(lab.h, loads);
	const struct slot_report slot = { loads[0], "m", "10.0.0.7:3", true };
	slot_report_snapshot(&lab, &slot, 1);
	assert_string_equal(routed(lab.h, asked)->address, "10.0.0.7:3");
	harness_free(lab.h);
}

static void what_a_slot_measures_beyond_its_size_counts(void **unused)
{
	struct lab lab = slot_report_lab_new();
	int64_t id = model_named(&lab, "m", 30000);

	(void)unused;
	load(lab.h, id);
	const struct slot_report slot = { slot_of(lab.h, id)->r.id, "m", "a", true };
	slot_report_measured(&lab, slot.reservation_id, slot_gpu(lab.h, id), 35000);
	slot_report_snapshot(&lab, &slot, 1);
	assert_int_equal(gpu(lab.h, slot_gpu(lab.h, id))->books.used_mib, 35000);
	harness_free(lab.h);
}

static void an_unknown_slot_on_a_gpu_that_a_job_was_given_whole_is_stopped(void **unused)
{
	struct lab lab = slot_report_lab_new();
	int64_t id = model_named(&lab, "m", 30000), loads[8];
	const struct slot_report slot = { 77, "m", "a", true };

	(void)unused;
	submit(lab.h, whole(lab.tenant, 2));
	pass_only(lab.h, loads);
	slot_report_measured(&lab, 77, "g0", 30000);
	slot_report_snapshot(&lab, &slot, 1);
	assert_int_equal(ready_slots(lab.h, id), 0);
	assert_int_equal(gpu(lab.h, "g0")->r.foreign_mib, 30000);
	harness_free(lab.h);
}

static void an_unknown_slot_that_loads_where_another_does_is_stopped(void **unused)
{
	struct lab lab = slot_report_lab_new();
	int64_t id = model_named(&lab, "m", 30000), loads[8];
	const struct slot_report slot = { 77, "m", "", false };

	(void)unused;
	request(lab.h, id);
	assert_int_equal(pass_only(lab.h, loads), 1);
	char *uuid = memory_text(slot_gpu(lab.h, id)); /* the report replaces the GPU's own */
	slot_report_measured(&lab, 77, uuid, 30000);
	slot_report_snapshot(&lab, &slot, 1);
	assert_int_equal(model(lab.h, id)->slot_count, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	free(uuid);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_slot_that_matches_a_model_is_adopted_and_serves),
		cmocka_unit_test(
		    an_adopted_slot_of_uneven_parts_counts_with_all_that_its_model_takes),
		cmocka_unit_test(an_adopted_slot_that_does_not_fit_closes_its_gpu),
		cmocka_unit_test(
		    an_unknown_slot_that_matches_nothing_is_stopped_and_counts_until_gone),
		cmocka_unit_test(a_slot_over_a_gpu_count_that_its_model_does_not_allow_is_stopped),
		cmocka_unit_test(a_slot_that_vanished_frees_its_requests_and_its_memory),
		cmocka_unit_test(an_order_to_load_that_a_node_missed_is_sent_again),
		cmocka_unit_test(an_order_to_stop_that_a_node_missed_is_sent_again),
		cmocka_unit_test(a_report_tells_that_a_slot_is_ready),
		cmocka_unit_test(what_a_slot_measures_beyond_its_size_counts),
		cmocka_unit_test(an_unknown_slot_on_a_gpu_that_a_job_was_given_whole_is_stopped),
		cmocka_unit_test(an_unknown_slot_that_loads_where_another_does_is_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
