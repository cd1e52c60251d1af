/* close_test.c - jobs of several GPUs: near each other as preferred or required */
#include "core/test/harness.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab close_lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static struct job_record gang(const struct lab lab, int64_t tasks, int64_t min_available,
                              int32_t gpus_each)
{
	struct job_record job_record = whole(lab.tenant, gpus_each);

	job_record.tasks = tasks;
	job_record.min_available = min_available;
	return job_record;
}

static void add_in_rack(struct harness *h, const char *name, const char *rack, int gpus)
{
	struct device devices[GPUS_PER_NODE_MAX];
	char uuids[GPUS_PER_NODE_MAX][64];

	for (int i = 0; i < gpus; i++) {
		strcpy(uuids[i], name);
		strcat(uuids[i], "-gpu0");
		uuids[i][strlen(uuids[i]) - 1] = (char)('0' + i);
		devices[i] = device_of(uuids[i], i, 80000);
	}
	struct node_report_command node = report_of(name, devices, gpus);
	node.rack = rack;
	must(h, report(h, node));
}

/* A node of eight GPUs in two NVLink groups of four: gpu0 to gpu3 and gpu4 to gpu7. */
static void add_linked(struct harness *h, const char *name)
{
	struct device devices[8];
	char uuids[8][64];

	for (int i = 0; i < 8; i++) {
		strcpy(uuids[i], name);
		strcat(uuids[i], "-gpu0");
		uuids[i][strlen(uuids[i]) - 1] = (char)('0' + i);
		devices[i] = device_of(uuids[i], i, 80000);
		devices[i].nvlink_group = 1 + i / 4;
	}
	must(h, report(h, report_of(name, devices, 8)));
}

static const struct reservation *right(const struct harness *h, int64_t id, int task)
{
	return job(h, id)->tasks[task].reservation;
}

static const char *node_of_task(const struct harness *h, int64_t id, int task)
{
	return right(h, id, task) ? right(h, id, task)->node->r.name : "";
}

static int64_t link_of_task(const struct harness *h, int64_t id, int task)
{
	return right(h, id, task)->parts[0].gpu->r.nvlink_group;
}

static void a_gang_goes_onto_one_node_if_it_can(void **unused)
{
	struct lab lab = close_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 4, 80000);
	int64_t id = submit(lab.h, gang(lab, 4, 4, 1));
	assert_int_equal(pass(lab.h), 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(node_of_task(lab.h, id, i), "n2");
	harness_free(lab.h);
}

static void a_gang_goes_onto_the_node_with_the_least_to_spare(void **unused)
{
	struct lab lab = close_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	add_node(lab.h, "n2", 3, 80000);
	int64_t id = submit(lab.h, gang(lab, 2, 2, 1));
	assert_int_equal(pass(lab.h), 2);
	assert_string_equal(node_of_task(lab.h, id, 0), "n2");
	assert_string_equal(node_of_task(lab.h, id, 1), "n2");
	harness_free(lab.h);
}

static void a_gang_that_no_node_can_take_stays_in_one_rack_if_it_can(void **unused)
{
	struct lab lab = close_lab_new();

	(void)unused;
	add_in_rack(lab.h, "a1", "r1", 2);
	add_in_rack(lab.h, "b1", "r2", 2);
	add_in_rack(lab.h, "c1", "r1", 1);
	add_in_rack(lab.h, "d1", "r2", 2);
	int64_t id = submit(lab.h, gang(lab, 4, 4, 1));
	assert_int_equal(pass(lab.h), 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(right(lab.h, id, i)->node->r.rack, "r2");
	harness_free(lab.h);
}

static void a_gang_goes_anywhere_if_it_must(void **unused)
{
	struct lab lab = close_lab_new();
	struct job_record near = gang(lab, 3, 3, 1);

	(void)unused;
	add_in_rack(lab.h, "a1", "r1", 2);
	add_in_rack(lab.h, "b1", "r2", 1);
	near.closeness = CLOSE_NODE;
	submit(lab.h, near);
	assert_int_equal(pass(lab.h), 3);
	harness_free(lab.h);
}

static void a_gang_that_requires_one_node_waits_for_one(void **unused)
{
	struct lab lab = close_lab_new();
	struct job_record near = gang(lab, 3, 3, 1);

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 2, 80000);
	near.closeness = CLOSE_NODE;
	near.closeness_required = true;
	int64_t id = submit(lab.h, near);
	assert_int_equal(pass(lab.h), 0);
	add_node(lab.h, "n3", 3, 80000);
	assert_int_equal(pass(lab.h), 3);
	for (int i = 0; i < 3; i++)
		assert_string_equal(node_of_task(lab.h, id, i), "n3");
	harness_free(lab.h);
}

static void a_gang_that_requires_one_rack_waits_for_one(void **unused)
{
	struct lab lab = close_lab_new();
	struct job_record near = gang(lab, 3, 3, 1);

	(void)unused;
	add_in_rack(lab.h, "a1", "r1", 2);
	add_in_rack(lab.h, "b1", "r2", 2);
	near.closeness = CLOSE_RACK;
	near.closeness_required = true;
	int64_t id = submit(lab.h, near);
	assert_int_equal(pass(lab.h), 0);
	add_in_rack(lab.h, "c1", "r1", 1);
	assert_int_equal(pass(lab.h), 3);
	for (int i = 0; i < 3; i++)
		assert_string_equal(right(lab.h, id, i)->node->r.rack, "r1");
	harness_free(lab.h);
}

static void a_task_that_joins_later_keeps_to_the_node_that_its_job_requires(void **unused)
{
	struct lab lab = close_lab_new();
	struct job_record near = gang(lab, 3, 2, 1);

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	near.closeness = CLOSE_NODE;
	near.closeness_required = true;
	int64_t id = submit(lab.h, near);
	assert_int_equal(pass(lab.h), 2);
	add_node(lab.h, "n2", 4, 80000);
	assert_int_equal(pass(lab.h), 0);
	add_node(lab.h, "n1", 3, 80000);
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of_task(lab.h, id, 2), "n1");
	harness_free(lab.h);
}

static void a_task_that_joins_later_keeps_to_the_rack_that_its_job_requires(void **unused)
{
	struct lab lab = close_lab_new();
	struct job_record near = gang(lab, 3, 2, 1);

	(void)unused;
	add_in_rack(lab.h, "a1", "r1", 2);
	near.closeness = CLOSE_RACK;
	near.closeness_required = true;
	int64_t id = submit(lab.h, near);
	assert_int_equal(pass(lab.h), 2);
	add_in_rack(lab.h, "b1", "r2", 4);
	assert_int_equal(pass(lab.h), 0);
	add_in_rack(lab.h, "c1", "r1", 1);
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of_task(lab.h, id, 2), "c1");
	harness_free(lab.h);
}

static void the_gpus_of_one_task_are_linked_if_they_can_be(void **unused)
{
	struct lab lab = close_lab_new();

	(void)unused;
	add_linked(lab.h, "n1");
	submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	int64_t id = submit(lab.h, whole(lab.tenant, 4));
	assert_int_equal(pass(lab.h), 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(right(lab.h, id, 0)->parts[i].gpu->r.nvlink_group, 2);
	harness_free(lab.h);
}

static void a_task_that_requires_links_waits_for_them(void **unused)
{
	struct lab lab = close_lab_new();
	struct job_record linked = whole(lab.tenant, 4);

	(void)unused;
	add_linked(lab.h, "n1");
	int64_t first = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	submit(lab.h, whole(lab.tenant, 4));
	pass(lab.h);
	linked.closeness = CLOSE_NVLINK;
	linked.closeness_required = true;
	linked.gpu_count = 3;
	int64_t id = submit(lab.h, linked);
	assert_int_equal(pass(lab.h), 1);
	linked.gpu_count = 4;
	end_job(lab.h, id, 0);
	submit(lab.h, linked);
	assert_int_equal(pass(lab.h), 0);
	end_job(lab.h, first, 0);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void a_gang_that_requires_links_has_all_of_its_gpus_in_one_group(void **unused)
{
	struct lab lab = close_lab_new();
	struct job_record linked = gang(lab, 4, 4, 1);

	(void)unused;
	add_linked(lab.h, "n1");
	submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	linked.closeness = CLOSE_NVLINK;
	linked.closeness_required = true;
	int64_t id = submit(lab.h, linked);
	assert_int_equal(pass(lab.h), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(link_of_task(lab.h, id, i), 2);
	submit(lab.h, linked);
	assert_int_equal(pass(lab.h), 0);
	harness_free(lab.h);
}

static void a_gang_has_its_gpus_in_one_group_if_it_can(void **unused)
{
	struct lab lab = close_lab_new();

	(void)unused;
	add_linked(lab.h, "n1");
	submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	int64_t id = submit(lab.h, gang(lab, 4, 4, 1));
	assert_int_equal(pass(lab.h), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(link_of_task(lab.h, id, i), 2);
	harness_free(lab.h);
}

static void links_on_another_node_are_better_than_a_node_without(void **unused)
{
	struct lab lab = close_lab_new();

	(void)unused;
	add_linked(lab.h, "n1");
	add_linked(lab.h, "n2");
	report_gpu(lab.h, "n1-gpu0", 0, 40, false);
	report_gpu(lab.h, "n1-gpu4", 0, 40, false);
	int64_t id = submit(lab.h, gang(lab, 4, 4, 1));
	assert_int_equal(pass(lab.h), 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(node_of_task(lab.h, id, i), "n2");
		assert_int_equal(link_of_task(lab.h, id, i), 1);
	}
	harness_free(lab.h);
}

static void tasks_are_numbered_by_the_names_of_their_nodes(void **unused)
{
	struct lab lab = close_lab_new();
	static const char *const names[] = { "c", "a", "b" };

	(void)unused;
	for (int i = 0; i < 3; i++)
		add_node(lab.h, names[i], 2, 80000);
	int64_t id = submit(lab.h, gang(lab, 6, 6, 1));
	assert_int_equal(pass(lab.h), 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(node_of_task(lab.h, id, i)[0], "aabbcc"[i]);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gang_goes_onto_one_node_if_it_can),
		cmocka_unit_test(a_gang_goes_onto_the_node_with_the_least_to_spare),
		cmocka_unit_test(a_gang_that_no_node_can_take_stays_in_one_rack_if_it_can),
		cmocka_unit_test(a_gang_goes_anywhere_if_it_must),
		cmocka_unit_test(a_gang_that_requires_one_node_waits_for_one),
		cmocka_unit_test(a_gang_that_requires_one_rack_waits_for_one),
		cmocka_unit_test(a_task_that_joins_later_keeps_to_the_node_that_its_job_requires),
		cmocka_unit_test(a_task_that_joins_later_keeps_to_the_rack_that_its_job_requires),
		cmocka_unit_test(the_gpus_of_one_task_are_linked_if_they_can_be),
		cmocka_unit_test(a_task_that_requires_links_waits_for_them),
		cmocka_unit_test(a_gang_that_requires_links_has_all_of_its_gpus_in_one_group),
		cmocka_unit_test(a_gang_has_its_gpus_in_one_group_if_it_can),
		cmocka_unit_test(links_on_another_node_are_better_than_a_node_without),
		cmocka_unit_test(tasks_are_numbered_by_the_names_of_their_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
