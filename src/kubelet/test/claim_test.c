/* claim_test.c - what a ResourceClaim allocates on this node is read, and kept as it is */
#include "kubelet/claim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kubelet/cdi.h"
#include "kubelet/slice.h"

#define HEAD                                                                                       \
	"{\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"c\",\"namespace\":\"n\",\"uid\":"    \
	"\"u-1\"},\"status\":{"
#define RESERVED "\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"p-1\"}]"
#define RESULT(device, more)                                                                       \
	"{\"request\":\"gpu\",\"driver\":\"" CLAIM_DRIVER                                          \
	"\",\"pool\":\"node-1\",\"device\":\"" device "\"" more "}"
#define ALLOCATED(results) "\"allocation\":{\"devices\":{\"results\":[" results "]}},"

static struct claim *read_claim(const char *json, struct error *error)
{
	return claim_read(text_of(json), "node-1", error);
}

static void devices_of_this_driver_and_node_are_read(void **state)
{
	struct error error = { 0 };
	(void)state;

	struct claim *claim = read_claim(
	    HEAD ALLOCATED(
		"{\"request\":\"nic\",\"driver\":\"nic.example\",\"pool\":\"node-1\",\"device\":"
		"\"eth\"}," RESULT("gpu-1", ",\"consumedCapacity\":{\"memory\":\"1.5Gi\"},"
	                                    "\"shareID\":\"s-1\"") "," RESULT("gpu-2", "")) RESERVED
	    "}}",
	    &error);
	assert_non_null(claim);
	assert_int_equal(claim->device_count, 2);
	assert_string_equal(claim->devices[0].device, "gpu-1");
	assert_string_equal(claim->devices[0].share, "s-1");
	assert_int_equal(claim->devices[0].memory_mib, 1536);
	assert_int_equal(claim->devices[1].memory_mib, 0);
	assert_int_equal(claim->pod_count, 1);
	assert_string_equal(claim->pods[0], "p-1");
	claim_free(claim);
}

static void what_is_not_usable_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *json, *reason;
	} cases[] = {
		{ "{}", "ResourceClaim : the object is not a ResourceClaim" },
		{ HEAD RESERVED "}}", "ResourceClaim c: it is not allocated" },
		{ HEAD ALLOCATED(RESULT("g", "")) "\"reservedFor\":[]}}",
		  "ResourceClaim c: it is reserved for no pod" },
		{ HEAD ALLOCATED("") RESERVED "}}",
		  "ResourceClaim c: it allocates no GPU of this node" },
		{ HEAD ALLOCATED(RESULT("g", ",\"consumedCapacity\":{\"memory\":\"-1\"}")) RESERVED
		  "}}",
		  "ResourceClaim c: a result of its allocation cannot be read" },
		{ HEAD ALLOCATED(RESULT("g", ",\"consumedCapacity\":{\"cores\":\"1\"}")) RESERVED
		  "}}",
		  "ResourceClaim c: a result of its allocation cannot be read" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct error error = { 0 };
		assert_null(read_claim(cases[i].json, &error));
		assert_string_equal(error.text, cases[i].reason);
	}
}

static struct claim *kept_claim(void)
{
	struct error error = { 0 };

	struct claim *claim = claim_load(
	    TEXT("{\"version\":1,\"uid\":\"u-1\",\"namespace\":\"n\",\"name\":\"c\",\"pods\":"
	         "[\"p-1\"],\"devices\":[{\"request\":\"a\",\"pool\":\"node-1\",\"device\":"
	         "\"gpu-1\",\"share\":\"\",\"uuid\":\"GPU-1\",\"memory_mib\":100,"
	         "\"unexplained_mib\":7},{\"request\":\"b\",\"pool\":\"node-1\",\"device\":"
	         "\"gpu-1\",\"share\":\"\",\"uuid\":\"GPU-1\",\"memory_mib\":50,"
	         "\"unexplained_mib\":7}]}"),
	    &error);
	assert_non_null(claim);
	return claim;
}

static void a_claim_is_kept_as_it_is(void **state)
{
	struct buffer first = { 0 }, second = { 0 };
	struct error error = { 0 };
	(void)state;

	struct claim *claim = kept_claim();
	claim_write(claim, &first);
	struct claim *loaded = claim_load((struct text){ first.data, first.size }, &error);
	assert_non_null(loaded);
	claim_write(loaded, &second);
	assert_string_equal(first.data, second.data);
	assert_int_equal(loaded->devices[1].unexplained_mib, 7);
	first.data[first.size / 2] = '\0';
	assert_null(claim_load(text_of(first.data), &error));
	claim_free(claim);
	claim_free(loaded);
	buffer_free(&first);
	buffer_free(&second);
}

static void containers_get_each_gpu_once_with_all_of_its_memory(void **state)
{
	static const char *const devices[] = { "/dev/nvidia0" };
	static const struct cdi_mount mounts[] = { { "/usr/lib/libguard.so", "/run/guard.so",
		                                     true } };
	struct cdi_node node = { devices, 1, mounts, 1, NULL, 0 };
	struct buffer json = { 0 };
	(void)state;

	struct claim *claim = kept_claim();
	cdi_write(claim, &node, &json);
	json_t *spec = json_loads(json.data, 0, NULL);
	json_t *device = json_array_get(json_object_get(spec, "devices"), 0);
	json_t *edits = json_object_get(device, "containerEdits");
	json_t *environment = json_object_get(edits, "env");
	assert_string_equal(json_string_value(json_object_get(device, "name")), "u-1");
	assert_string_equal(json_string_value(json_array_get(environment, 0)),
	                    "NVIDIA_VISIBLE_DEVICES=GPU-1");
	assert_string_equal(json_string_value(json_array_get(environment, 2)),
	                    "GPU_SCHEDULER_MEMORY_MIB=GPU-1=150");
	assert_int_equal(json_array_size(json_object_get(edits, "deviceNodes")), 1);
	assert_int_equal(json_array_size(json_object_get(edits, "mounts")), 1);
	json_decref(spec);
	buffer_free(&json);
	claim_free(claim);
}

static void names_of_devices_are_labels(void **state)
{
	(void)state;

	char *name = slice_device("GPU-8F3A_1.x-");
	assert_string_equal(name, "gpu-8f3a-1-xx");
	free(name);
	name = slice_device("");
	assert_string_equal(name, "gpu");
	free(name);
}

static void a_slice_is_written_only_when_it_says_something_else(void **state)
{
	struct slice_gpu gpu = { .uuid = "GPU-1", .memory_mib = 40000, .is_healthy = true };
	(void)state;

	json_t *first = slice_make("node-1", "n-1", &gpu, 1);
	json_t *written = slice_update(first, NULL, 256);
	assert_true(json_equal(first, written));
	json_object_set_new(json_object_get(written, "metadata"), "resourceVersion",
	                    json_string("9"));
	assert_null(slice_update(first, written, 256));
	gpu.memory_mib -= 255;
	json_t *second = slice_make("node-1", "n-1", &gpu, 1);
	assert_null(slice_update(second, written, 256));
	gpu.is_hot = true;
	json_t *third = slice_make("node-1", "n-1", &gpu, 1);
	json_t *changed = slice_update(third, written, 256);
	assert_non_null(changed);
	assert_string_equal(json_string_value(json_object_get(json_object_get(changed, "metadata"),
	                                                      "resourceVersion")),
	                    "9");
	assert_int_equal(
	    json_integer_value(json_object_get(
		json_object_get(json_object_get(changed, "spec"), "pool"), "generation")),
	    2);
	json_decref(first);
	json_decref(second);
	json_decref(third);
	json_decref(written);
	json_decref(changed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_of_this_driver_and_node_are_read),
		cmocka_unit_test(what_is_not_usable_is_refused_with_a_reason),
		cmocka_unit_test(a_claim_is_kept_as_it_is),
		cmocka_unit_test(containers_get_each_gpu_once_with_all_of_its_memory),
		cmocka_unit_test(names_of_devices_are_labels),
		cmocka_unit_test(a_slice_is_written_only_when_it_says_something_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
