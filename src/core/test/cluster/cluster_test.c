/* cluster_test.c - which reports are believed, and how nodes and GPUs are kept */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/cluster/cluster.h"

static struct device a_device(const char *uuid)
{
	return (struct device){
		.uuid = uuid,
		.model = "A100",
		.mig_parent = "",
		.capacity_mib = 81920,
		.overhead_mib = 600,
		.healthy = true,
	};
}

static struct node_report_command report_of(const struct device *devices, int64_t count)
{
	return (struct node_report_command){
		.name = "n1",
		.boot = "b",
		.zone = "z",
		.rack = "r",
		.labels = "",
		.cpu_milli = 64000,
		.host_bytes = INT64_C(1) << 38,
		.devices = devices,
		.device_count = count,
	};
}

static struct node *cluster_insert_node(struct cluster *cluster, int64_t id, const char *name)
{
	return cluster_add_node(cluster, &(struct node_record){
					     .id = id,
					     .name = name,
					     .boot = "b",
					     .zone = "z",
					     .rack = "r",
					     .labels = "",
					     .cpu_milli = 64000,
					     .host_bytes = 1000,
					     .state = NODE_ONLINE,
					     .reported = true,
					 });
}

static struct gpu_record a_gpu(const struct node *node, int64_t id, const char *uuid)
{
	return (struct gpu_record){
		.id = id,
		.node_id = node->r.id,
		.uuid = uuid,
		.model = "A100",
		.mig_parent = "",
		.capacity_mib = 81920,
		.overhead_mib = 600,
		.aliases = 1,
		.healthy = true,
		.present = true,
	};
}

static struct gpu *cluster_insert_gpu(struct cluster *cluster, struct node *node, int64_t id,
                                      const char *uuid)
{
	struct gpu_record record = a_gpu(node, id, uuid);
	return cluster_add_gpu(cluster, node, &record);
}

static void assert_accepted(const struct cluster *cluster, const struct node_report_command *report)
{
	struct error error;
	error_clear(&error);
	if (!cluster_check_report(cluster, report, &error))
		fail_msg("refused: %s", error.text);
}

static void cluster_assert_refused(const struct cluster *cluster,
                                   const struct node_report_command *report, enum error_code code,
                                   const char *words)
{
	struct error error;
	error_clear(&error);
	assert_false(cluster_check_report(cluster, report, &error));
	assert_int_equal(error.code, code);
	if (!strstr(error.text, words))
		fail_msg("'%s' does not say '%s'", error.text, words);
}

static void refused_device(struct device device, const char *words)
{
	struct cluster cluster = { 0 };
	struct node_report_command report = report_of(&device, 1);
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, words);
}

static void a_hundred_replicas_of_one_gpu_are_believed(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct device devices[100];
	for (int i = 0; i < 100; i++) {
		devices[i] = a_device("GPU-1");
		devices[i].place = i;
		devices[i].temperature_c = i;
	}
	struct node_report_command report = report_of(devices, 100);
	assert_accepted(&cluster, &report);
}

static void a_parent_in_mig_mode_has_no_memory_and_is_believed(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct device device = a_device("GPU-1");
	device.mig_mode = true;
	device.capacity_mib = device.overhead_mib = 0;
	struct node_report_command report = report_of(&device, 1);
	assert_accepted(&cluster, &report);
}

static void a_node_without_gpus_is_believed(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node_report_command report = report_of(NULL, 0);
	assert_accepted(&cluster, &report);
}

static void a_report_without_its_texts_is_refused(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node_report_command report = report_of(NULL, 0);
	report.name = "";
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "without a name");
	report.name = NULL;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "without a name");
	report.name = "n1";
	report.rack = NULL;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "n1: boot, zone, rack or labels");
	report = report_of(NULL, 1);
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "1 devices without a list");
}

static void a_device_without_its_texts_is_refused(void **state)
{
	(void)state;
	struct device device = a_device("");
	refused_device(device, "no UUID");
	device.uuid = NULL;
	refused_device(device, "no UUID");
	device.uuid = "GPU-1";
	device.model = NULL;
	refused_device(device, "MIG parent of GPU-1 is missing");
}

static void amounts_that_no_machine_has_are_refused_with_their_numbers(void **state)
{
	(void)state;
	struct device device = a_device("GPU-1");
	device.capacity_mib = -5;
	refused_device(device, "n1: capacity (MiB) of GPU-1 is -5,");
	device.capacity_mib = INT64_MAX;
	refused_device(device, "capacity (MiB) of GPU-1 is 9223372036854775807,");
	device = a_device("GPU-1");
	device.overhead_mib = -1;
	refused_device(device, "overhead (MiB) of GPU-1 is -1,");
	device = a_device("GPU-1");
	device.foreign_mib = -7;
	refused_device(device, "foreign memory (MiB) of GPU-1 is -7,");
	device = a_device("GPU-1");
	device.place = -2;
	refused_device(device, "place of GPU-1 is -2,");
}

static void a_host_with_less_than_nothing_is_refused(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node_report_command report = report_of(NULL, 0);
	report.cpu_milli = -1;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID,
	                       "CPU (thousandths) of the host is -1,");
	report = report_of(NULL, 0);
	report.host_bytes = -3;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID,
	                       "memory (bytes) of the host is -3,");
}

static void a_measurement_below_nothing_is_refused(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct measurement measurement = { .reservation_id = 4, .uuid = "GPU-1", .memory_mib = -9 };
	struct node_report_command report = report_of(NULL, 0);
	report.measurements = &measurement;
	report.measurement_count = 1;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID,
	                       "memory used (MiB) of GPU-1 is -9,");
	measurement.uuid = NULL;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "reservation 4 has no UUID");
}

static void overhead_above_capacity_is_refused(void **state)
{
	(void)state;
	struct device device = a_device("GPU-1");
	device.overhead_mib = 81921;
	refused_device(device, "overhead of GPU-1 is 81921 MiB, its capacity only 81920 MiB");
	struct cluster cluster = { 0 };
	device.overhead_mib = 81920;
	struct node_report_command report = report_of(&device, 1);
	assert_accepted(&cluster, &report);
}

static void replicas_that_contradict_each_other_are_refused(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct device devices[2] = { a_device("GPU-1"), a_device("GPU-1") };
	struct node_report_command report = report_of(devices, 2);

	devices[1].capacity_mib = 40960;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "81920 and 40960 MiB of capacity");
	devices[1] = a_device("GPU-1");
	devices[1].overhead_mib = 1;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "600 and 1 MiB of overhead");
	devices[1] = a_device("GPU-1");
	devices[1].foreign_mib = 9;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "0 and 9 MiB of foreign memory");
	devices[1] = a_device("GPU-1");
	devices[1].model = "H100";
	cluster_assert_refused(&cluster, &report, ERROR_INVALID,
	                       "GPU-1 is there twice, as 'A100' and as 'H100'");
	devices[1] = a_device("GPU-1");
	devices[1].mig_parent = "GPU-0";
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "'GPU-0' as MIG parent");
	devices[1] = a_device("GPU-1");
	devices[1].mig_mode = true;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "in MIG mode and not");
}

static void a_gpu_cannot_be_on_two_online_nodes(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node *other = cluster_insert_node(&cluster, 1, "n0");
	struct gpu *gpu = cluster_insert_gpu(&cluster, other, 1, "GPU-1");
	struct device device = a_device("GPU-1");
	struct node_report_command report = report_of(&device, 1);

	cluster_assert_refused(&cluster, &report, ERROR_CONFLICT,
	                       "node n1 reports GPU-1, which is on node n0, and that is online");
	report.name = "n0";
	assert_accepted(&cluster, &report);
	report.name = "n1";
	other->r.state = NODE_LOST;
	assert_accepted(&cluster, &report);
	other->r.state = NODE_ONLINE;
	gpu->r.present = false;
	assert_accepted(&cluster, &report);
	gpu->books.owners = 1;
	cluster_assert_refused(&cluster, &report, ERROR_CONFLICT, "n0");
	cluster_free(&cluster);
}

static void a_node_has_no_more_gpus_than_the_core_can_hold(void **state)
{
	(void)state;
	enum { COUNT = GPUS_PER_NODE_MAX + 1 };
	struct cluster cluster = { 0 };
	struct device devices[2 * COUNT];
	char uuids[COUNT][16];
	for (int i = 0; i < 2 * COUNT; i++) {
		snprintf(uuids[i % COUNT], sizeof(uuids[0]), "GPU-%d", i % COUNT);
		devices[i] = a_device(uuids[i % COUNT]);
	}
	struct node_report_command report = report_of(devices, COUNT);
	cluster_assert_refused(&cluster, &report, ERROR_INVALID,
	                       "more than 64 GPUs: GPU-64 is one too many");
	report = report_of(devices, GPUS_PER_NODE_MAX);
	assert_accepted(&cluster, &report);

	struct node *node = cluster_insert_node(&cluster, 1, "n1");
	struct gpu *gone = cluster_insert_gpu(&cluster, node, 1, "GPU-gone");
	assert_accepted(&cluster, &report);
	gone->books.owners = 1;
	cluster_assert_refused(&cluster, &report, ERROR_INVALID,
	                       "64 GPUs, with 1 more still in use: at most 64");
	cluster_free(&cluster);
}

static void labels_are_pairs_in_order(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node_report_command report = report_of(NULL, 0);

	report.labels = "a=1\na=10\na=2\nb=";
	assert_accepted(&cluster, &report);
	report.labels = "a=1\nb";
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "label 'b' is not key=value");
	report.labels = "b=1\na=1";
	cluster_assert_refused(&cluster, &report, ERROR_INVALID,
	                       "label 'a=1' is there twice or not in order");
	report.labels = "a=1\na=1";
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "label 'a=1' is there twice");
	report.labels = "a=1\n";
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "empty line");
	report.labels = "a=1\n\nb=1";
	cluster_assert_refused(&cluster, &report, ERROR_INVALID, "label '' is not");
}

static void a_node_has_the_labels_that_it_has_and_no_others(void **state)
{
	(void)state;
	struct node node = { .r.labels = "arch=x86\nfast=1\nzone=eu" };

	assert_true(node_has_labels(&node, ""));
	assert_true(node_has_labels(&node, "arch=x86"));
	assert_true(node_has_labels(&node, "fast=1\nzone=eu"));
	assert_true(node_has_labels(&node, "arch=x86\nzone=eu"));
	assert_true(node_has_labels(&node, "fast=1\nfast=1"));
	assert_false(node_has_labels(&node, "fast=10"));
	assert_false(node_has_labels(&node, "fast="));
	assert_false(node_has_labels(&node, "a=1\nzone=eu"));
	assert_false(node_has_labels(&node, "zone=eu\nzone=us"));
	node.r.labels = "";
	assert_true(node_has_labels(&node, ""));
	assert_false(node_has_labels(&node, "arch=x86"));
}

static void nodes_and_gpus_are_found_by_their_names(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node *node = cluster_insert_node(&cluster, 7, "n7");
	struct gpu *gpu = cluster_insert_gpu(&cluster, node, 3, "GPU-3");

	assert_ptr_equal(cluster_node(&cluster, "n7"), node);
	assert_null(cluster_node(&cluster, "n8"));
	assert_ptr_equal(cluster_gpu(&cluster, "GPU-3"), gpu);
	assert_null(cluster_gpu(&cluster, "n7"));
	assert_ptr_equal(map_get(&cluster.node_by_id, 7), node);
	assert_ptr_equal(map_get(&cluster.gpu_by_id, 3), gpu);
	assert_true(gpu->promised_ms == INT64_MAX);
	cluster_free(&cluster);
}

static void texts_are_copies(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	char name[] = "n1", uuid[] = "GPU-1";
	struct node *node = cluster_insert_node(&cluster, 1, name);
	struct gpu *gpu = cluster_insert_gpu(&cluster, node, 1, uuid);
	memset(name, 'x', 2);
	memset(uuid, 'x', 5);
	assert_string_equal(node->r.name, "n1");
	assert_string_equal(gpu->r.uuid, "GPU-1");
	assert_ptr_equal(cluster_gpu(&cluster, "GPU-1"), gpu);
	cluster_free(&cluster);
}

static void nodes_are_in_the_order_of_their_ids(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	cluster_insert_node(&cluster, 2, "b");
	cluster_insert_node(&cluster, 9, "a");
	cluster_insert_node(&cluster, 5, "c");
	cluster_remove_node(&cluster, cluster_node(&cluster, "b"));
	cluster_insert_node(&cluster, 1, "d");
	const int64_t ids[] = { 1, 5, 9 };
	assert_int_equal(cluster.node_count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(cluster.nodes[i]->r.id, ids[i]);
	cluster_free(&cluster);
}

static void slots_are_ranks_of_names(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	cluster_order(&cluster);
	assert_true(cluster.ordered);
	const struct node *n2 = cluster_insert_node(&cluster, 1, "n2"),
			  *n10 = cluster_insert_node(&cluster, 2, "n10");
	assert_false(cluster.ordered);
	cluster_order(&cluster);
	assert_int_equal(n10->rank, 0);
	assert_int_equal(n2->rank, 1);
	struct node *n1 = cluster_insert_node(&cluster, 3, "n1");
	cluster_order(&cluster);
	assert_int_equal(n2->rank, 2);
	assert_ptr_equal(cluster.by_rank[0], n1);
	cluster_remove_node(&cluster, n1);
	assert_false(cluster.ordered);
	cluster_order(&cluster);
	assert_int_equal(n10->rank, 0);
	cluster_free(&cluster);
}

static void assert_gpus(const struct node *node, const char *const *uuids, int count)
{
	assert_int_equal(node->gpu_count, count);
	for (int i = 0; i < count; i++)
		assert_string_equal(node->gpus[i]->r.uuid, uuids[i]);
}

static void gpus_are_in_the_order_of_their_places(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node *node = cluster_insert_node(&cluster, 1, "n1");
	const char *const added[] = { "d", "b", "a", "c" };
	for (int i = 0; i < 4; i++) {
		struct gpu_record record = a_gpu(node, i + 1, added[i]);
		record.place = i / 2;
		cluster_add_gpu(&cluster, node, &record);
	}
	assert_gpus(node, (const char *const[]){ "b", "d", "a", "c" }, 4);

	struct gpu *gpu = cluster_gpu(&cluster, "b");
	struct gpu_record moved = gpu->r;
	moved.place = 1;
	gpu_redescribe(&cluster, gpu, &moved);
	assert_gpus(node, (const char *const[]){ "d", "a", "b", "c" }, 4);
	cluster_remove_gpu(&cluster, cluster_gpu(&cluster, "a"));
	assert_gpus(node, (const char *const[]){ "d", "b", "c" }, 3);
	assert_null(cluster_gpu(&cluster, "a"));
	cluster_free(&cluster);
}

static void a_model_keeps_its_number(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node *node = cluster_insert_node(&cluster, 1, "n1");
	struct gpu *first = cluster_insert_gpu(&cluster, node, 1, "GPU-1");
	struct gpu *second = cluster_insert_gpu(&cluster, node, 2, "GPU-2");
	struct gpu_record record = second->r;
	record.model = "H100";
	gpu_redescribe(&cluster, second, &record);
	assert_int_equal(first->gpu_type, 0);
	assert_int_equal(second->gpu_type, 1);
	cluster_remove_gpu(&cluster, first);
	assert_int_equal(cluster_gpu_type(&cluster, "A100"), 0);
	assert_int_equal(cluster_gpu_type(&cluster, "H100"), 1);
	assert_int_equal(cluster_gpu_type(&cluster, "B200"), -1);
	assert_int_equal(cluster.gpu_type_count, 2);
	cluster_free(&cluster);
}

static void a_new_description_leaves_what_the_books_count_on(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node *node = cluster_insert_node(&cluster, 1, "n1");
	struct gpu *gpu = cluster_insert_gpu(&cluster, node, 1, "GPU-1");
	struct gpu_record record = gpu->r;
	record.capacity_mib = 1;
	record.overhead_mib = record.foreign_mib = 2;
	record.temperature_c = 80;
	record.hot = true;
	record.mig_parent = record.uuid;
	gpu_redescribe(&cluster, gpu, &record);
	assert_int_equal(gpu->r.capacity_mib, 81920);
	assert_int_equal(gpu->r.overhead_mib, 600);
	assert_int_equal(gpu->r.foreign_mib, 0);
	assert_int_equal(gpu->r.temperature_c, 80);
	assert_true(gpu->r.hot);
	assert_string_equal(gpu->r.mig_parent, "GPU-1");
	assert_false(node->offer.redescribed);
	cluster_free(&cluster);
}

static void a_node_says_when_its_labels_changed(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node *node = cluster_insert_node(&cluster, 1, "n1");
	struct node_record record = node->r;
	record.boot = "b2";
	record.cpu_milli = 1;
	node_rename(node, &record);
	assert_string_equal(node->r.boot, "b2");
	assert_int_equal(node->r.cpu_milli, 1);
	assert_false(node->offer.redescribed);
	record = node->r;
	record.labels = "a=1";
	node_rename(node, &record);
	assert_string_equal(node->r.labels, "a=1");
	assert_true(node->offer.redescribed);
	cluster_free(&cluster);
}

static void only_gpus_that_work_can_be_done_on_are_counted(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct node *node = cluster_insert_node(&cluster, 1, "n1"),
		    *lost = cluster_insert_node(&cluster, 2, "n2");
	cluster_insert_gpu(&cluster, node, 1, "GPU-1")->r.capacity_mib = 40600;
	cluster_insert_gpu(&cluster, node, 2, "GPU-2")->r.healthy = false;
	cluster_insert_gpu(&cluster, node, 3, "GPU-3")->r.mig_mode = true;
	cluster_insert_gpu(&cluster, node, 4, "GPU-4")->r.present = false;
	cluster_insert_gpu(&cluster, node, 5, "GPU-5")->r.capacity_mib = 0;
	cluster_insert_gpu(&cluster, lost, 6, "GPU-6")->r.capacity_mib = 1000;
	lost->r.state = NODE_LOST;
	node->r.draining = true;
	node->r.reported = false;
	cluster_count(&cluster);
	assert_int_equal(cluster.gpu_total, 2);
	assert_int_equal(cluster.total.of[AMOUNT_GPU], 2000);
	assert_int_equal(cluster.total.of[AMOUNT_CPU], 64000);
	assert_int_equal(cluster.total.of[AMOUNT_HOST], 1000);
	assert_int_equal(cluster.smallest_mib, 40000);
	node->r.state = NODE_UNKNOWN;
	cluster_count(&cluster);
	assert_int_equal(cluster.gpu_total, 0);
	assert_int_equal(cluster.total.of[AMOUNT_CPU], 0);
	assert_int_equal(cluster.smallest_mib, 0);
	cluster_free(&cluster);
}

static void a_node_takes_work_while_it_is_online_reported_and_not_draining(void **state)
{
	(void)state;
	struct node node = { .r = { .state = NODE_ONLINE, .reported = true } };
	assert_true(node_is_open(&node));
	node.r.draining = true;
	assert_false(node_is_open(&node));
	node.r.draining = false;
	node.r.reported = false;
	assert_false(node_is_open(&node));
	node.r.reported = true;
	node.r.state = NODE_UNKNOWN;
	assert_false(node_is_open(&node));
}

static void a_gpu_takes_work_unless_something_speaks_against_it(void **state)
{
	(void)state;
	struct cluster cluster = { 0 };
	struct config_record config = { .enable_thermal = true };
	struct node *node = cluster_insert_node(&cluster, 1, "n1");
	struct gpu *gpu = cluster_insert_gpu(&cluster, node, 1, "GPU-1");
	struct gpu_record good = gpu->r;

	assert_true(gpu_is_open(gpu, &config));
	gpu->r.healthy = false;
	assert_false(gpu_is_open(gpu, &config));
	gpu->r = good;
	gpu->r.present = false;
	assert_false(gpu_is_open(gpu, &config));
	gpu->r = good;
	gpu->r.mig_mode = true;
	assert_false(gpu_is_open(gpu, &config));
	gpu->r = good;
	gpu->r.capacity_mib = gpu->r.overhead_mib = 0;
	assert_false(gpu_is_open(gpu, &config));
	gpu->r = good;
	gpu->r.hot = true;
	assert_false(gpu_is_open(gpu, &config));
	config.enable_thermal = false;
	assert_true(gpu_is_open(gpu, &config));
	gpu->books.used_mib = 81320;
	assert_true(gpu_is_open(gpu, &config));
	gpu->r.foreign_mib = 1;
	assert_false(gpu_is_open(gpu, &config));
	gpu->r.foreign_mib = 0;
	node->r.draining = true;
	assert_false(gpu_is_open(gpu, &config));
	cluster_free(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hundred_replicas_of_one_gpu_are_believed),
		cmocka_unit_test(a_parent_in_mig_mode_has_no_memory_and_is_believed),
		cmocka_unit_test(a_node_without_gpus_is_believed),
		cmocka_unit_test(a_report_without_its_texts_is_refused),
		cmocka_unit_test(a_device_without_its_texts_is_refused),
		cmocka_unit_test(amounts_that_no_machine_has_are_refused_with_their_numbers),
		cmocka_unit_test(a_host_with_less_than_nothing_is_refused),
		cmocka_unit_test(a_measurement_below_nothing_is_refused),
		cmocka_unit_test(overhead_above_capacity_is_refused),
		cmocka_unit_test(replicas_that_contradict_each_other_are_refused),
		cmocka_unit_test(a_gpu_cannot_be_on_two_online_nodes),
		cmocka_unit_test(a_node_has_no_more_gpus_than_the_core_can_hold),
		cmocka_unit_test(labels_are_pairs_in_order),
		cmocka_unit_test(a_node_has_the_labels_that_it_has_and_no_others),
		cmocka_unit_test(nodes_and_gpus_are_found_by_their_names),
		cmocka_unit_test(texts_are_copies),
		cmocka_unit_test(nodes_are_in_the_order_of_their_ids),
		cmocka_unit_test(slots_are_ranks_of_names),
		cmocka_unit_test(gpus_are_in_the_order_of_their_places),
		cmocka_unit_test(a_model_keeps_its_number),
		cmocka_unit_test(a_new_description_leaves_what_the_books_count_on),
		cmocka_unit_test(a_node_says_when_its_labels_changed),
		cmocka_unit_test(only_gpus_that_work_can_be_done_on_are_counted),
		cmocka_unit_test(a_node_takes_work_while_it_is_online_reported_and_not_draining),
		cmocka_unit_test(a_gpu_takes_work_unless_something_speaks_against_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
