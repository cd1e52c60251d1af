/* pod_review_test.c - what an API server asks before it takes a pod, and the answers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/pod_review.h"

#define REVIEW(operation, object)                                                                  \
	"{\"apiVersion\": \"admission.k8s.io/v1\", \"kind\": \"AdmissionReview\", \"request\": "   \
	"{\"uid\": \"r-1\", \"operation\": \"" operation "\", \"namespace\": \"team\", "           \
	"\"resource\": {\"group\": \"\", \"version\": \"v1\", \"resource\": \"pods\"}, "           \
	"\"object\": " object "}}"

#define OLD_REVIEW                                                                                 \
	"{\"apiVersion\": \"admission.k8s.io/v1beta1\", \"kind\": \"AdmissionReview\", "           \
	"\"request\": {\"uid\": \"r\"}}"

static void a_review_of_a_new_pod_has_its_namespace(void **state)
{
	struct pod_review asked;
	struct error error;

	(void)state;
	assert_true(pod_review_read(TEXT(REVIEW("CREATE", "{\"metadata\": {\"name\": \"p\"}}")),
	                            &asked, &error));
	assert_true(asked.creates);
	assert_string_equal(asked.uid, "r-1");
	assert_string_equal(
	    json_string_value(json_object_get(json_object_get(asked.pod, "metadata"), "namespace")),
	    "team");
	json_decref(asked.document);
}

static void other_reviews_are_read_and_not_judged(void **state)
{
	struct pod_review asked;
	struct error error;

	(void)state;
	assert_true(pod_review_read(TEXT(REVIEW("DELETE", "null")), &asked, &error));
	assert_false(asked.creates);
	json_decref(asked.document);
	assert_true(pod_review_read(TEXT(REVIEW("CREATE", "[]")), &asked, &error));
	assert_false(asked.creates);
	json_decref(asked.document);
}

static void what_is_no_review_is_refused_with_a_reason(void **state)
{
	static const char *const texts[] = {
		"", "{", "[]", "{}", "{\"kind\": \"AdmissionReview\"}", OLD_REVIEW,
	};
	struct pod_review asked;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct error error = { 0 };
		assert_false(
		    pod_review_read((struct text){ texts[i], strlen(texts[i]) }, &asked, &error));
		assert_true(error.text[0] != '\0');
		assert_null(asked.document);
	}
}

static void a_refusal_has_its_reason_and_a_patch_its_type(void **state)
{
	struct buffer answer = { 0 };

	(void)state;
	pod_review_answer("r-1", "it asks for too much", NULL, &answer);
	assert_non_null(strstr(answer.data, "\"uid\":\"r-1\",\"allowed\":false"));
	assert_non_null(strstr(answer.data, "\"message\":\"it asks for too much\""));
	buffer_clear(&answer);
	pod_review_answer("r-1", NULL, "W10=", &answer);
	assert_non_null(strstr(answer.data, "\"allowed\":true"));
	assert_non_null(strstr(answer.data, "\"patchType\":\"JSONPatch\",\"patch\":\"W10=\""));
	buffer_free(&answer);
}

static char *patch_of_pod(const char *text)
{
	json_t *pod = json_loads(text, 0, NULL);

	assert_non_null(pod);
	json_t *patch = pod_review_patch(pod);
	char *dumped = patch ? json_dumps(patch, JSON_COMPACT) : NULL;
	json_decref(patch);
	json_decref(pod);
	return dumped;
}

static void a_pod_with_a_part_of_a_gpu_learns_which_by_its_environment(void **state)
{
	(void)state;
	assert_null(patch_of_pod("{\"metadata\": {}, \"spec\": {\"containers\": [{}]}}"));
	char *patch = patch_of_pod(
	    "{\"metadata\": {\"annotations\": {\"gpu-fraction\": \"0.5\", "
	    "\"gpu-fraction-container-name\": \"b\"}}, \"spec\": {\"containers\": [{\"name\": "
	    "\"a\"}, {\"name\": \"b\", \"env\": [{\"name\": \"CUDA_VISIBLE_DEVICES\", \"value\": "
	    "\"0\"}], \"resources\": {\"limits\": {\"cpu\": \"1\"}}}]}}");
	assert_non_null(patch);
	assert_null(strstr(patch, "/spec/containers/0"));
	assert_null(strstr(patch, "CUDA_VISIBLE_DEVICES"));
	assert_null(strstr(patch, "\"path\":\"/spec/containers/1/env\""));
	assert_non_null(strstr(patch, "\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"valueFrom\":{"
	                              "\"fieldRef\":{\"fieldPath\":\"metadata.annotations["
	                              "'gpu-scheduler.io/gpus']\"}}"));
	assert_non_null(strstr(patch, "\"path\":\"/spec/containers/1/resources/limits/"
	                              "gpu-scheduler.io~1gpu\",\"value\":\"1\""));
	assert_non_null(strstr(patch,
	                       "\"path\":\"/spec/containers/1/resources/requests\",\"value\":"
	                       "{\"gpu-scheduler.io/gpu\":\"1\"}"));
	free(patch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_review_of_a_new_pod_has_its_namespace),
		cmocka_unit_test(other_reviews_are_read_and_not_judged),
		cmocka_unit_test(what_is_no_review_is_refused_with_a_reason),
		cmocka_unit_test(a_refusal_has_its_reason_and_a_patch_its_type),
		cmocka_unit_test(a_pod_with_a_part_of_a_gpu_learns_which_by_its_environment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
