/* pod_owner_test.c - which pods of an owner start together */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/pod_owner.h"

static json_t *json_of(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	assert_non_null(value);
	return value;
}

static const char *resource_of(const char *plural)
{
	for (size_t i = 0; pod_owner_resources[i]; i++)
		if (strcmp(strrchr(pod_owner_resources[i], '/') + 1, plural) == 0)
			return pod_owner_resources[i];
	fail_msg("no owners are %s", plural);
	return NULL;
}

static void assert_gang(const char *plural, const char *object, const char *role, int64_t count,
                        bool whole)
{
	json_t *json = json_of(object);
	bool is_whole;

	assert_int_equal(pod_owner_gang(resource_of(plural), json, role, &is_whole), count);
	assert_int_equal(is_whole, whole);
	json_decref(json);
}

#define GPUS(n)                                                                                    \
	"{\"spec\": {\"containers\": [{\"resources\": {\"limits\": {\"nvidia.com/gpu\": " #n       \
	"}}}]}}"

static void a_pod_says_whose_it_is(void **state)
{
	static const struct {
		const char *pod, *plural, *name, *role;
	} cases[] = {
		{ "{\"metadata\": {\"labels\": {\"training.kubeflow.org/replica-type\": "
		  "\"worker\"}, \"ownerReferences\": [{\"kind\": \"PyTorchJob\", \"name\": \"t\", "
		  "\"controller\": true}]}}",
		  "pytorchjobs", "t", "worker" },
		{ "{\"metadata\": {\"labels\": {\"jobset.sigs.k8s.io/jobset-name\": \"s\", "
		  "\"jobset.sigs.k8s.io/replicatedjob-name\": \"w\"}, \"ownerReferences\": "
		  "[{\"kind\": \"Job\", \"name\": \"s-w-0\", \"controller\": true}]}}",
		  "jobsets", "s", "w" },
		{ "{\"metadata\": {\"labels\": {\"ray.io/group\": \"headgroup\"}, "
		  "\"ownerReferences\": [{\"kind\": \"RayCluster\", \"name\": \"r\", "
		  "\"controller\": true}]}}",
		  "rayclusters", "r", "headgroup" },
	};
	struct pod_owner owner;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *pod = json_of(cases[i].pod);
		assert_true(pod_owner_read(pod, &owner));
		assert_ptr_equal(owner.resource, resource_of(cases[i].plural));
		assert_string_equal(owner.name, cases[i].name);
		assert_string_equal(owner.role, cases[i].role);
		json_decref(pod);
	}
}

static void other_owners_make_no_gang(void **state)
{
	static const char *const pods[] = {
		"{}",
		"{\"metadata\": {\"ownerReferences\": [{\"kind\": \"ReplicaSet\", \"name\": \"r\", "
		"\"controller\": true}]}}",
		"{\"metadata\": {\"ownerReferences\": [{\"kind\": \"PyTorchJob\", \"name\": "
		"\"t\"}]}}",
		"{\"metadata\": {\"ownerReferences\": 3}}",
	};
	struct pod_owner owner;

	(void)state;
	for (size_t i = 0; i < sizeof(pods) / sizeof(*pods); i++) {
		json_t *pod = json_of(pods[i]);
		assert_false(pod_owner_read(pod, &owner));
		json_decref(pod);
	}
}

static void roles_that_ask_for_the_same_start_together(void **state)
{
	(void)state;
	assert_gang("pytorchjobs",
	            "{\"spec\": {\"pytorchReplicaSpecs\": {\"Master\": {\"replicas\": 1, "
	            "\"template\": " GPUS(1) "}, \"Worker\": {\"replicas\": 3, \"template\": " GPUS(
			1) "}}}}",
	            "worker", 4, true);
	assert_gang("jobsets",
	            "{\"spec\": {\"replicatedJobs\": [{\"name\": \"w\", \"replicas\": 2, "
	            "\"template\": {\"spec\": {\"parallelism\": 4, \"completions\": 3, "
	            "\"template\": " GPUS(2) "}}}]}}",
	            "w", 6, true);
}

static void roles_that_ask_for_other_things_start_each_by_itself(void **state)
{
	static const char ray[] = "{\"spec\": {\"headGroupSpec\": {\"template\": " GPUS(
	    0) "}, \"workerGroupSpecs\": [{\"groupName\": \"big\", \"replicas\": 5, "
	       "\"minReplicas\": 2, \"numOfHosts\": 2, \"template\": " GPUS(8) "}]}}";

	(void)state;
	assert_gang("rayclusters", ray, "big", 4, false);
	assert_gang("rayclusters", ray, "headgroup", 1, false);
	assert_gang("rayclusters", ray, "unheard-of", 1, false);
}

static void the_launcher_of_an_mpi_job_is_not_waited_for(void **state)
{
	(void)state;
	assert_gang("mpijobs",
	            "{\"spec\": {\"mpiReplicaSpecs\": {\"Launcher\": {\"replicas\": 1, "
	            "\"template\": " GPUS(0) "}, \"Worker\": {\"replicas\": 4, \"template\": " GPUS(
			1) "}}}}",
	            "worker", 4, true);
}

static void an_owner_may_say_with_how_many_it_begins(void **state)
{
	(void)state;
	assert_gang(
	    "pytorchjobs",
	    "{\"spec\": {\"runPolicy\": {\"schedulingPolicy\": {\"minAvailable\": 2}}, "
	    "\"pytorchReplicaSpecs\": {\"Worker\": {\"replicas\": 8, \"template\": " GPUS(1) "}}}}",
	    "worker", 2, true);
	assert_gang("pytorchjobs", "{\"spec\": 7}", "worker", 1, true);
	assert_gang("pytorchjobs",
	            "{\"spec\": {\"pytorchReplicaSpecs\": {\"Worker\": {\"replicas\": -4}}}}",
	            "worker", 1, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_says_whose_it_is),
		cmocka_unit_test(other_owners_make_no_gang),
		cmocka_unit_test(roles_that_ask_for_the_same_start_together),
		cmocka_unit_test(roles_that_ask_for_other_things_start_each_by_itself),
		cmocka_unit_test(the_launcher_of_an_mpi_job_is_not_waited_for),
		cmocka_unit_test(an_owner_may_say_with_how_many_it_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
