/* model_test.c - models: what can be put, who may use them, how they go */
#include "core/test/slots.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

/* One tenant and a node n1 with two GPUs of 80,000 MiB. */
static struct lab model_lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", 2, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static void what_is_left_out_of_a_model_is_filled_in(void **unused)
{
	struct lab lab = model_lab_new();
	struct model_record given = model_of(lab.tenant, "m", 1000);

	(void)unused;
	given.runtime = RUNTIME_VLLM;
	assert_int_equal(model(lab.h, put_model(lab.h, given))->r.concurrency, 256);
	given.name = "o";
	given.runtime = RUNTIME_OLLAMA;
	const struct model_record *model_record = &model(lab.h, put_model(lab.h, given))->r;
	assert_int_equal(model_record->concurrency, 2);
	assert_int_equal(model_record->idle_ttl_ms, 10000);
	assert_int_equal(model_record->max_replicas, 1);
	assert_int_equal(model_record->policy, SLOT_SPREAD);
	given.name = "l";
	given.runtime = RUNTIME_LLAMA_CPP;
	given.min_replicas = 3;
	model_record = &model(lab.h, put_model(lab.h, given))->r;
	assert_int_equal(model_record->concurrency, 1);
	assert_int_equal(model_record->max_replicas, 3);
	harness_free(lab.h);
}

static void a_model_that_makes_no_sense_is_refused_with_a_reason(void **unused)
{
	struct lab lab = model_lab_new();
	const int64_t falling[] = { 4, 0, 2, 0 };
	struct model_record given = model_of(lab.tenant, "m", 0);

	(void)unused;
	must_not(lab.h, try_put_model(lab.h, given, false), ERROR_INVALID, "memory_mib");
	given = model_of(99, "m", 1000);
	must_not(lab.h, try_put_model(lab.h, given, false), ERROR_NOT_FOUND, "tenant-99");
	given = model_of(lab.tenant, "", 1000);
	must_not(lab.h, try_put_model(lab.h, given, false), ERROR_INVALID, "name");
	given = model_of(lab.tenant, "m", 1000);
	given.min_replicas = 3;
	given.max_replicas = 2;
	must_not(lab.h, try_put_model(lab.h, given, false), ERROR_INVALID, "min_replicas");
	given = model_of(lab.tenant, "m", 1000);
	given.splits = (struct rows){ falling, 2 };
	must_not(lab.h, try_put_model(lab.h, given, false), ERROR_INVALID, "rise");
	given = model_of(lab.tenant, "m", 1000);
	given.runtime = 77;
	must_not(lab.h, try_put_model(lab.h, given, false), ERROR_INVALID, "runtime");
	put_model(lab.h, model_of(lab.tenant, "m", 1000));
	given = model_of(lab.tenant, "m", 2000);
	must_not(lab.h, try_put_model(lab.h, given, false), ERROR_CONFLICT, "already");
	harness_free(lab.h);
}

static void a_custom_command_is_for_administrators(void **unused)
{
	struct lab lab = model_lab_new();
	struct model_record given = model_of(lab.tenant, "m", 1000);

	(void)unused;
	given.runtime = RUNTIME_CUSTOM;
	must_not(lab.h, try_put_model(lab.h, given, true), ERROR_INVALID, "command");
	given.command = "serve --port 1";
	must_not(lab.h, try_put_model(lab.h, given, false), ERROR_FORBIDDEN, "administrator");
	must(lab.h, try_put_model(lab.h, given, true));
	given = model_of(lab.tenant, "v", 1000);
	given.command = "rm -rf /";
	must_not(lab.h, try_put_model(lab.h, given, true), ERROR_INVALID, "custom");
	harness_free(lab.h);
}

static void a_model_is_for_its_tenant_those_below_and_those_it_is_shared_with(void **unused)
{
	struct lab lab = model_lab_new();
	struct tenant_record child = tenant_named("child");
	child.parent_id = lab.tenant;
	int64_t below = put_tenant(lab.h, child), guest = put_tenant(lab.h, tenant_named("guest"));
	int64_t other = put_tenant(lab.h, tenant_named("other")), users[] = { guest };
	struct model_record given = model_of(lab.tenant, "m", 1000);

	(void)unused;
	given.users = (struct rows){ users, 1 };
	int64_t id = put_model(lab.h, given);
	for (int i = 0; i < 4; i++) {
		int64_t asking = (int64_t[]){ lab.tenant, below, guest, other }[i];
		int64_t asked = next_request();
		must(lab.h, try_request(lab.h, id, asking, asked));
		assert_int_equal(routed(lab.h, asked)->outcome,
		                 asking == other ? ROUTE_REFUSED : ROUTE_QUEUED);
	}
	given.id = id;
	given.shared = true;
	put_model(lab.h, given);
	int64_t asked = next_request();
	must(lab.h, try_request(lab.h, id, other, asked));
	assert_int_equal(routed(lab.h, asked)->outcome, ROUTE_QUEUED);
	harness_free(lab.h);
}

static void a_model_that_is_removed_ends_its_requests_and_goes_with_its_last_slot(void **unused)
{
	struct lab lab = model_lab_new();
	int64_t id = put_model(lab.h, model_of(lab.tenant, "m", 1000));

	(void)unused;
	load(lab.h, id);
	int64_t flying = request(lab.h, id), waiting = request(lab.h, id);
	int64_t slot = slot_of(lab.h, id)->r.id;
	must(lab.h, apply_to(lab.h, COMMAND_REMOVE_MODEL, id));
	assert_int_equal(routed(lab.h, flying)->outcome, ROUTE_ENDED);
	assert_int_equal(routed(lab.h, waiting)->outcome, ROUTE_ENDED);
	must_not(lab.h, try_put_model(lab.h, model_of(lab.tenant, "m", 1), false), ERROR_CONFLICT,
	         "being removed");
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.used_mib, 1000);
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, slot, 0, false));
	assert_null(model(lab.h, id));
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.used_mib, 0);
	put_model(lab.h, model_of(lab.tenant, "m", 1));
	harness_free(lab.h);
}

static void what_is_put_again_changes_what_is_decided_and_not_what_is_loaded(void **unused)
{
	struct lab lab = model_lab_new();
	struct model_record given = model_of(lab.tenant, "m", 1000);
	int64_t id = put_model(lab.h, given);

	(void)unused;
	load(lab.h, id);
	given.id = id;
	given.memory_mib = 5000;
	given.concurrency = 4;
	given.name = "n";
	put_model(lab.h, given);
	assert_int_equal(slot_of(lab.h, id)->reservation->parts[0].mib, 1000);
	assert_int_equal(slot_of(lab.h, id)->r.concurrency, 1);
	assert_ptr_equal(models_named(&lab.h->sched->models, lab.tenant, "n"), model(lab.h, id));
	given.tenant_id = put_tenant(lab.h, tenant_named("rich"));
	must_not(lab.h, try_put_model(lab.h, given, false), ERROR_CONFLICT, "pays");
	harness_free(lab.h);
}

static void a_name_is_taken_within_a_tenant_alone(void **unused)
{
	struct lab lab = model_lab_new();
	int64_t other = put_tenant(lab.h, tenant_named("other"));
	int64_t mine = put_model(lab.h, model_of(lab.tenant, "m", 1000));
	const struct models *models = &lab.h->sched->models;

	(void)unused;
	assert_ptr_equal(models_only_named(models, "m"), model(lab.h, mine));
	int64_t theirs = put_model(lab.h, model_of(other, "m", 1000));
	assert_ptr_equal(models_named(models, lab.tenant, "m"), model(lab.h, mine));
	assert_ptr_equal(models_named(models, other, "m"), model(lab.h, theirs));
	assert_null(models_only_named(models, "m"));
	must_not(lab.h, try_put_model(lab.h, model_of(other, "m", 1), false), ERROR_CONFLICT,
	         "there is a model m already");
	struct model_record moved = model_of(lab.tenant, "m", 1000);
	moved.id = theirs;
	must_not(lab.h, try_put_model(lab.h, moved, false), ERROR_CONFLICT, "already");
	must(lab.h, apply_to(lab.h, COMMAND_REMOVE_MODEL, mine));
	put_model(lab.h, moved);
	assert_ptr_equal(models_named(models, lab.tenant, "m"), model(lab.h, theirs));
	harness_free(lab.h);
}

static void a_tenant_with_models_is_not_deleted(void **unused)
{
	struct lab lab = model_lab_new();

	(void)unused;
	put_model(lab.h, model_of(lab.tenant, "m", 1000));
	must_not(lab.h, apply_to(lab.h, COMMAND_DELETE_TENANT, lab.tenant), ERROR_CONFLICT,
	         "models");
	harness_free(lab.h);
}

static void a_model_is_divided_among_the_gpu_counts_it_allows(void **unused)
{
	struct lab lab = model_lab_new();
	const int64_t splits[] = { 1, 0, 4, 30000 };
	struct model_record given = model_of(lab.tenant, "m", 100001);
	int64_t any = put_model(lab.h, given);

	(void)unused;
	given.name = "s";
	given.splits = (struct rows){ splits, 2 };
	int64_t some = put_model(lab.h, given);
	assert_int_equal(model_part_mib(model(lab.h, any), 2), 50001);
	assert_int_equal(model_part_mib(model(lab.h, some), 1), 100001);
	assert_int_equal(model_part_mib(model(lab.h, some), 2), 0);
	assert_int_equal(model_part_mib(model(lab.h, some), 4), 30000);
	assert_int_equal(model(lab.h, any)->shape_count, PARTS_MAX);
	assert_int_equal(model(lab.h, some)->shape_count, 2);
	assert_int_equal(model(lab.h, some)->shapes[1].request.gpu_count, 4);
	assert_int_equal(model(lab.h, some)->shapes[1].request.memory_mib, 30000);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_out_of_a_model_is_filled_in),
		cmocka_unit_test(a_model_that_makes_no_sense_is_refused_with_a_reason),
		cmocka_unit_test(a_custom_command_is_for_administrators),
		cmocka_unit_test(a_model_is_for_its_tenant_those_below_and_those_it_is_shared_with),
		cmocka_unit_test(
		    a_model_that_is_removed_ends_its_requests_and_goes_with_its_last_slot),
		cmocka_unit_test(what_is_put_again_changes_what_is_decided_and_not_what_is_loaded),
		cmocka_unit_test(a_name_is_taken_within_a_tenant_alone),
		cmocka_unit_test(a_tenant_with_models_is_not_deleted),
		cmocka_unit_test(a_model_is_divided_among_the_gpu_counts_it_allows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
