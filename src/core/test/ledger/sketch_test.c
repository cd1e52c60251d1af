/* sketch_test.c - what would be free on a node if some of what is on it went */
#include "core/ledger/sketch.h"

#include "core/test/slots.h"

struct lab {
	struct harness *h;
	struct slot *slot;    /* of 60000 MiB, on the one GPU of the one node */
	struct search search; /* for a slot of 70000 MiB of another model */
};

static struct lab sketch_lab_new(void)
{
	struct lab lab = { .h = harness_new() };
	int64_t tenant, small, large;

	add_node(lab.h, "n1", 1, 80000);
	tenant = put_tenant(lab.h, tenant_named("lab"));
	small = put_model(lab.h, model_of(tenant, "small", 60000));
	large = put_model(lab.h, model_of(tenant, "large", 70000));
	load(lab.h, small);
	lab.slot = slot_of(lab.h, small);
	lab.search = applicant_slot(model(lab.h, large));
	filter_refresh(lab.search.shape->filter, &lab.h->sched->cluster,
	               lab.h->sched->cluster.version);
	return lab;
}

static bool sketch_fits(struct lab *lab, enum view view)
{
	struct choice choice;

	lab->search.view = view;
	return place_on_node(&lab->h->sched->placement, &lab->search, lab->slot->reservation->node,
	                     &choice);
}

static void what_goes_is_free_in_the_cleared_view_and_in_no_other(void **unused)
{
	struct lab lab = sketch_lab_new();

	(void)unused;
	sketch_begin(lab.slot->reservation->node);
	assert_false(sketch_fits(&lab, VIEW_CLEARED));
	sketch_go(lab.slot->reservation);
	assert_true(sketch_fits(&lab, VIEW_CLEARED));
	assert_false(sketch_fits(&lab, VIEW_NOW) || sketch_fits(&lab, VIEW_LATER));
	harness_free(lab.h);
}

static void what_stays_after_all_leaves_no_mark(void **unused)
{
	struct lab lab = sketch_lab_new();
	const struct node *node = lab.slot->reservation->node;

	(void)unused;
	sketch_begin(lab.slot->reservation->node);
	sketch_go(lab.slot->reservation);
	sketch_stay(lab.slot->reservation);
	assert_false(sketch_fits(&lab, VIEW_CLEARED));
	assert_int_equal(node->gpus[0]->mark_mib, 0);
	assert_int_equal(node->gpus[0]->mark_owners, 0);
	harness_free(lab.h);
}

static void a_sketch_changes_nothing_that_a_pass_decides(void **unused)
{
	struct lab lab = sketch_lab_new();

	(void)unused;
	sketch_begin(lab.slot->reservation->node);
	sketch_go(lab.slot->reservation);
	request(lab.h, lab.search.model->r.id);
	settle(lab.h);
	assert_int_equal(lab.slot->r.state, SLOT_READY);
	assert_int_equal(lab.search.model->slot_count, 0);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_is_free_in_the_cleared_view_and_in_no_other),
		cmocka_unit_test(what_stays_after_all_leaves_no_mark),
		cmocka_unit_test(a_sketch_changes_nothing_that_a_pass_decides),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
