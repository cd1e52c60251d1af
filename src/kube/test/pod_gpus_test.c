/* pod_gpus_test.c - GPUs, groups and ranks of pods, in the ways that are in use */
#include "kube/pod_gpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/pod_group.h"

static json_t *pod(const char *metadata, const char *limits)
{
	struct buffer text = { 0 };
	json_error_t error;

	buffer_print(&text,
	             "{\"metadata\":{%s},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":"
	             "{\"limits\":{%s},\"requests\":{%s}}}]}}",
	             metadata, limits, limits);
	json_t *object = json_loads(text.data, 0, &error);
	assert_non_null(object);
	buffer_free(&text);
	return object;
}

static void asks(const char *metadata, const char *limits, enum pod_gpu_kind kind, int64_t count,
                 int64_t fraction, int64_t memory_mib)
{
	json_t *object = pod(metadata, limits);
	struct pod_gpus gpus;
	struct error error;

	assert_true(pod_gpus_read(object, &gpus, &error));
	assert_int_equal(gpus.kind, kind);
	assert_int_equal(gpus.count, count);
	assert_int_equal(gpus.fraction, fraction);
	assert_int_equal(gpus.memory_mib, memory_mib);
	json_decref(object);
}

static void gpus_are_refused(const char *metadata, const char *limits, const char *reason)
{
	json_t *object = pod(metadata, limits);
	struct pod_gpus gpus;
	struct error error;

	assert_false(pod_gpus_read(object, &gpus, &error));
	assert_string_equal(error.text, reason);
	json_decref(object);
}

static void whole_gpus_are_those_of_the_limits(void **state)
{
	(void)state;
	asks("", "", POD_GPU_NONE, 0, 0, 0);
	asks("", "\"nvidia.com/gpu\":\"2\"", POD_GPU_WHOLE, 2, 0, 0);
}

static void parts_are_asked_for_as_in_kai(void **state)
{
	(void)state;
	asks("\"annotations\":{\"gpu-fraction\":\"0.5\"}", "", POD_GPU_FRACTION, 1, 500, 0);
	asks("\"annotations\":{\"gpu-memory\":\"2000\"}", "", POD_GPU_MEMORY, 1, 0, 2000);
	asks("\"annotations\":{\"gpu-fraction\":\"0.25\",\"gpu-fraction-num-devices\":\"3\"}", "",
	     POD_GPU_FRACTION, 3, 250, 0);
	asks("\"annotations\":{\"gpu-fraction\":\"1\"}", "", POD_GPU_WHOLE, 1, 1000, 0);
}

static void parts_are_asked_for_as_in_hami_and_volcano(void **state)
{
	(void)state;
	asks("", "\"nvidia.com/gpu\":\"2\",\"nvidia.com/gpumem\":\"3000\"", POD_GPU_MEMORY, 2, 0,
	     3000);
	asks("", "\"nvidia.com/gpumem-percentage\":\"40\"", POD_GPU_FRACTION, 1, 400, 0);
	asks("", "\"volcano.sh/vgpu-number\":\"1\",\"volcano.sh/vgpu-memory\":\"1024\"",
	     POD_GPU_MEMORY, 1, 0, 1024);
}

static void what_contradicts_itself_is_refused(void **state)
{
	(void)state;
	gpus_are_refused(
	    "\"annotations\":{\"gpu-fraction\":\"0.5\"}", "\"nvidia.com/gpu\":\"1\"",
	    "the pod asks for a part of a GPU by annotation and for GPUs in its resources: use "
	    "one of them");
	gpus_are_refused(
	    "\"annotations\":{\"gpu-fraction\":\"1.5\"}", "",
	    "the annotation gpu-fraction is '1.5': it must be a number above 0 and up to 1");
	gpus_are_refused("\"annotations\":{\"gpu-memory\":\"2Gi\"}", "",
	                 "the annotation gpu-memory is '2Gi': it must be 1 to 1099511627776");
	gpus_are_refused("", "\"nvidia.com/gpu\":\"17\"",
	                 "the pod asks for 17 GPUs: one pod can have 16");
}

static json_t *node(const char *metadata, int gpus)
{
	struct buffer text = { 0 };
	json_error_t error;

	buffer_print(&text,
	             "{\"metadata\":{\"name\":\"n\"%s},\"status\":{\"allocatable\":"
	             "{\"nvidia.com/gpu\":\"%d\"}}}",
	             metadata, gpus);
	json_t *object = json_loads(text.data, 0, &error);
	buffer_free(&text);
	return object;
}

static void replicas_are_no_gpus(void **state)
{
	json_t *object = node(",\"labels\":{\"nvidia.com/gpu.replicas\":\"4\","
	                      "\"nvidia.com/gpu.memory\":\"46068\","
	                      "\"nvidia.com/gpu.product\":\"L40S\"}",
	                      8);
	struct node_gpu gpus[NODE_GPUS_MAX];
	bool shared;
	(void)state;

	assert_int_equal(node_gpus_read(object, gpus, &shared), 2);
	assert_false(shared);
	assert_string_equal(gpus[1].uuid, "n/1");
	assert_string_equal(gpus[1].model, "L40S");
	assert_int_equal(gpus[1].memory_mib, 46068);
	json_decref(object);
}

static void declared_gpus_can_be_shared(void **state)
{
	json_t *object = node(",\"annotations\":{\"gpu-scheduler.io/node-gpus\":"
	                      "\"[{\\\"uuid\\\":\\\"GPU-a\\\",\\\"memory_mib\\\":1000},{}]\"}",
	                      8);
	struct node_gpu gpus[NODE_GPUS_MAX];
	bool shared;
	(void)state;

	assert_int_equal(node_gpus_read(object, gpus, &shared), 1);
	assert_true(shared);
	assert_string_equal(gpus[0].uuid, "GPU-a");
	json_decref(object);
}

static void group_is(const char *metadata, const char *name, int64_t least)
{
	json_t *object = pod(metadata, "");
	struct pod_group group;

	pod_group_read(object, &group);
	assert_string_equal(group.name, name);
	assert_int_equal(group.least, least);
	json_decref(object);
}

static void groups_are_those_of_each_scheduler(void **state)
{
	(void)state;
	group_is("", "", 0);
	group_is("\"annotations\":{\"pod-group-name\":\"a\"}", "kai/a", 0);
	group_is("\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"b\"}", "sigs/b", 0);
	group_is("\"annotations\":{\"scheduling.k8s.io/group-name\":\"c\"}", "volcano/c", 0);
	group_is("\"annotations\":{\"gpu-scheduler.io/group\":\"d\","
	         "\"gpu-scheduler.io/group-size\":\"8\"}",
	         "own/d", 8);
	group_is("\"labels\":{\"leaderworkerset.sigs.k8s.io/group-index\":\"2\","
	         "\"leaderworkerset.sigs.k8s.io/name\":\"l\"},"
	         "\"annotations\":{\"leaderworkerset.sigs.k8s.io/size\":\"4\"}",
	         "leaderworkerset/l-2", 4);
}

static void the_minimum_is_read_of_each_kind_of_group(void **state)
{
	json_error_t error;
	json_t *kai = json_loads("{\"spec\":{\"minMember\":3}}", 0, &error);
	json_t *native =
	    json_loads("{\"spec\":{\"schedulingPolicy\":{\"gang\":{\"minCount\":5}}}}", 0, &error);
	(void)state;

	assert_int_equal(pod_group_minimum(kai), 3);
	assert_int_equal(pod_group_minimum(native), 5);
	assert_int_equal(pod_group_minimum(NULL), 1);
	json_decref(kai);
	json_decref(native);
}

static void priorities_are_those_of_kai_where_only_a_label_says_so(void **state)
{
	json_t *object = pod("\"labels\":{\"priorityClassName\":\"inference\"}", "");
	(void)state;

	assert_int_equal(pod_priority(object), 125);
	assert_false(pod_is_preemptible(object));
	json_decref(object);
	object = pod("\"labels\":{\"priorityClassName\":\"train\"}", "");
	assert_int_equal(pod_priority(object), 50);
	assert_true(pod_is_preemptible(object));
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_gpus_are_those_of_the_limits),
		cmocka_unit_test(parts_are_asked_for_as_in_kai),
		cmocka_unit_test(parts_are_asked_for_as_in_hami_and_volcano),
		cmocka_unit_test(what_contradicts_itself_is_refused),
		cmocka_unit_test(replicas_are_no_gpus),
		cmocka_unit_test(declared_gpus_can_be_shared),
		cmocka_unit_test(groups_are_those_of_each_scheduler),
		cmocka_unit_test(the_minimum_is_read_of_each_kind_of_group),
		cmocka_unit_test(priorities_are_those_of_kai_where_only_a_label_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
