/* pod_claims_test.c - what ResourceClaims ask for, and the writes that allocate them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/pod_claims.h"

static json_t *claim_json(const char *text)
{
	json_error_t error;
	json_t *value = json_loads(text, 0, &error);

	if (!value)
		print_error("%s: %s\n", error.text, text);
	assert_non_null(value);
	return value;
}

/* An object with two members: claims and classes, by name. */
static const json_t *find_in(const void *context, const char *resource, const char *namespace,
                             const char *name)
{
	bool is_claim = strcmp(resource, POD_CLAIMS) == 0;

	assert_string_equal(namespace, is_claim ? "default" : "");
	return json_object_get(json_object_get(context, is_claim ? "claims" : "classes"), name);
}

#define POD                                                                                        \
	"{\"metadata\": {\"name\": \"p\", \"namespace\": \"default\", \"uid\": \"u-1\"}, "         \
	"\"spec\": {\"resourceClaims\": [{\"name\": \"gpu\", \"resourceClaimName\": \"c\"}]}}"
#define CLASSES                                                                                    \
	"\"classes\": {\"ours\": {\"spec\": {\"selectors\": [{\"cel\": {\"expression\": "          \
	"\"device.driver=='gpu.gpu-scheduler.io'\"}}]}}, \"theirs\": {\"spec\": "                  \
	"{\"selectors\": [{\"cel\": {\"expression\": \"device.driver == 'gpu.nvidia.com'\"}}]}}, " \
	"\"any\": {}}"
#define CLAIM(requests, status)                                                                    \
	"{\"metadata\": {\"name\": \"c\", \"uid\": \"claim-1\", \"resourceVersion\": \"7\"}, "     \
	"\"spec\": {\"devices\": {\"requests\": [" requests "]}}, \"status\": {" status "}}"
#define EXACTLY(more) "{\"name\": \"r\", \"exactly\": {\"deviceClassName\": \"ours\"" more "}}"
#define MEMORY(amount) ", \"capacity\": {\"requests\": {\"memory\": \"" amount "\"}}"

static bool read_claims(const char *requests, struct pod_gpus *gpus, struct error *error)
{
	char text[2048];

	snprintf(text, sizeof(text),
	         "{" CLASSES ", \"claims\": {\"c\": {\"spec\": {\"devices\": {\"requests\": "
	         "[%s]}}}}}",
	         requests);
	json_t *pod = claim_json(POD), *cluster = claim_json(text);
	bool right = pod_claims_read(pod, find_in, cluster, gpus, error);
	json_decref(pod);
	json_decref(cluster);
	return right;
}

static void claims_ask_for_memory_or_for_whole_gpus(void **state)
{
	struct pod_gpus gpus;
	struct error error;

	(void)state;
	assert_true(read_claims(EXACTLY(MEMORY("10Gi") ", \"count\": 2"), &gpus, &error));
	assert_int_equal(gpus.kind, POD_GPU_MEMORY);
	assert_int_equal(gpus.count, 2);
	assert_int_equal(gpus.memory_mib, 10240);
	assert_true(read_claims(EXACTLY("") ", " EXACTLY(""), &gpus, &error));
	assert_int_equal(gpus.kind, POD_GPU_WHOLE);
	assert_int_equal(gpus.count, 2);
	/* A byte more than a MiB is two. */
	assert_true(read_claims(EXACTLY(MEMORY("1048577")), &gpus, &error));
	assert_int_equal(gpus.memory_mib, 2);
}

static void what_is_not_evaluated_is_refused_and_named(void **state)
{
	static const struct {
		const char *requests, *reason;
	} cases[] = {
		{ "", "asks for no device" },
		{ "{\"name\": \"r\", \"firstAvailable\": []}", "firstAvailable" },
		{ EXACTLY(", \"selectors\": []"), "has selectors" },
		{ EXACTLY(", \"adminAccess\": true"), "has adminAccess" },
		{ EXACTLY(", \"allocationMode\": \"All\""), "allocationMode All" },
		{ EXACTLY(", \"count\": 17"), "more than 16 GPUs" },
		{ EXACTLY(", \"count\": 0"), "more than 16 GPUs" },
		{ EXACTLY(", \"capacity\": {\"requests\": {\"cores\": \"1\"}}"), "capacity" },
		{ EXACTLY(MEMORY("-1")), "memory '-1'" },
		{ EXACTLY(MEMORY("1Gi")) ", " EXACTLY(MEMORY("2Gi")), "different amounts" },
		{ EXACTLY(MEMORY("1Gi")) ", " EXACTLY(""), "different amounts" },
		{ "{\"name\": \"r\", \"exactly\": {\"deviceClassName\": \"theirs\"}}", "selector" },
		{ "{\"name\": \"r\", \"exactly\": {\"deviceClassName\": \"any\"}}", "all drivers" },
		{ "{\"name\": \"r\", \"exactly\": {\"deviceClassName\": \"no\"}}",
		  "DeviceClass no does not exist" },
	};
	struct pod_gpus gpus;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct error error = { 0 };
		assert_false(read_claims(cases[i].requests, &gpus, &error));
		if (!strstr(error.text, cases[i].reason))
			print_error("'%s' is not in '%s'\n", cases[i].reason, error.text);
		assert_non_null(strstr(error.text, cases[i].reason));
	}
}

static const struct claim_result one_gpu = { "n1", "gpu-a", 1024 };

/* The step for a claim of 1 GiB in that state; its patch as text, "" if it has none. */
static enum claim_step step_of(const char *claim_text, const char *node, char *text, size_t size)
{
	struct error error = { 0 };
	json_t *pod = claim_json(POD), *claim = claim_json(claim_text), *patch;
	enum claim_step step = claim_next_step(claim, pod, node, &one_gpu, 1, &patch, &error);
	char *dumped = patch ? json_dumps(patch, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	assert_true((patch != NULL) == (step != CLAIM_STEP_NONE && step != CLAIM_STEP_REFUSED));
	assert_true((error.text[0] != '\0') == (step == CLAIM_STEP_REFUSED) || !node);
	snprintf(text, size, "%s", dumped ? dumped : "");
	free(dumped);
	json_decref(patch);
	json_decref(pod);
	json_decref(claim);
	return step;
}

#define REQUEST EXACTLY(MEMORY("1Gi"))
#define RESULT(device, amount)                                                                     \
	"\"allocation\": {\"devices\": {\"results\": [{\"request\": \"r\", \"driver\": "           \
	"\"gpu.gpu-scheduler.io\", \"pool\": \"n1\", \"device\": \"" device "\", \"shareID\": "    \
	"\"%s\", \"consumedCapacity\": {\"memory\": \"" amount "\"}}]}}"
#define RESERVED(uid) ", \"reservedFor\": [{\"uid\": \"" uid "\"}]"

static void a_claim_is_protected_and_then_allocated(void **state)
{
	char text[2048];

	(void)state;
	assert_int_equal(step_of(CLAIM(REQUEST, ""), "n1", text, sizeof(text)), CLAIM_STEP_PROTECT);
	assert_non_null(strstr(text, "\"resourceVersion\":\"7\""));
	assert_non_null(strstr(text, "delete-protection"));
	assert_int_equal(
	    step_of("{\"metadata\": {\"name\": \"c\", \"uid\": \"claim-1\", \"resourceVersion\": "
	            "\"7\", \"finalizers\": [\"resource.kubernetes.io/delete-protection\"]}, "
	            "\"spec\": {\"devices\": {\"requests\": [" REQUEST "]}}}",
	            "n1", text, sizeof(text)),
	    CLAIM_STEP_ALLOCATE);
	assert_non_null(strstr(text, "\"consumedCapacity\":{\"memory\":\"1024Mi\"}"));
	assert_non_null(strstr(text, "\"device\":\"gpu-a\""));
	assert_non_null(strstr(text, "\"uid\":\"u-1\""));
	assert_non_null(strstr(text, "\"resourceVersion\":\"7\""));
	assert_non_null(strstr(text, "\"values\":[\"n1\"]"));
}

/* The share that is made for the claim's first device. */
static void share_of(char *share, size_t size)
{
	char text[2048];

	step_of("{\"metadata\": {\"uid\": \"claim-1\", \"finalizers\": "
	        "[\"resource.kubernetes.io/delete-protection\"]}, \"spec\": {\"devices\": "
	        "{\"requests\": [" REQUEST "]}}}",
	        "n1", text, sizeof(text));
	const char *at = strstr(text, "\"shareID\":\"");
	assert_non_null(at);
	snprintf(share, size, "%.36s", at + strlen("\"shareID\":\""));
}

static enum claim_step step_of_status(const char *status, const char *node, char *text, size_t size)
{
	char claim[2048], filled[1024], share[37];

	share_of(share, sizeof(share));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(filled, sizeof(filled), status, share);
#pragma GCC diagnostic pop
	snprintf(claim, sizeof(claim), CLAIM("%s", "%s"), REQUEST, filled);
	return step_of(claim, node, text, size);
}

static void an_allocation_that_agrees_stands_and_another_is_removed_first(void **state)
{
	char text[2048];

	(void)state;
	assert_int_equal(
	    step_of_status(RESULT("gpu-a", "1Gi") RESERVED("u-1"), "n1", text, sizeof(text)),
	    CLAIM_STEP_NONE);
	assert_int_equal(step_of_status(RESULT("gpu-a", "1Gi"), "n1", text, sizeof(text)),
	                 CLAIM_STEP_ALLOCATE);
	assert_null(strstr(text, "allocation"));
	assert_int_equal(
	    step_of_status(RESULT("gpu-b", "1Gi") RESERVED("u-1"), "n1", text, sizeof(text)),
	    CLAIM_STEP_RELEASE);
	assert_non_null(strstr(text, "\"allocation\":null"));
	assert_int_equal(
	    step_of_status(RESULT("gpu-a", "2Gi") RESERVED("u-1"), "n1", text, sizeof(text)),
	    CLAIM_STEP_RELEASE);
}

static void a_claim_of_another_pod_is_left_alone(void **state)
{
	char text[2048];

	(void)state;
	assert_int_equal(
	    step_of_status(RESULT("gpu-a", "1Gi") RESERVED("u-2"), "n1", text, sizeof(text)),
	    CLAIM_STEP_REFUSED);
	assert_int_equal(
	    step_of_status(RESULT("gpu-a", "1Gi") RESERVED("u-2"), NULL, text, sizeof(text)),
	    CLAIM_STEP_NONE);
	assert_int_equal(
	    step_of_status(RESULT("gpu-a", "1Gi") RESERVED("u-1"), NULL, text, sizeof(text)),
	    CLAIM_STEP_RELEASE);
}

static void a_claim_that_asks_for_more_than_was_given_is_refused(void **state)
{
	char text[2048];

	(void)state;
	assert_int_equal(
	    step_of(CLAIM(EXACTLY(MEMORY("1Gi") ", \"count\": 2"), ""), "n1", text, sizeof(text)),
	    CLAIM_STEP_REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claims_ask_for_memory_or_for_whole_gpus),
		cmocka_unit_test(what_is_not_evaluated_is_refused_and_named),
		cmocka_unit_test(a_claim_is_protected_and_then_allocated),
		cmocka_unit_test(an_allocation_that_agrees_stands_and_another_is_removed_first),
		cmocka_unit_test(a_claim_of_another_pod_is_left_alone),
		cmocka_unit_test(a_claim_that_asks_for_more_than_was_given_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
