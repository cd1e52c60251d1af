/* queue_test.c - Queues and PodGroups of KAI as tenants, gangs and ranks */
#include "pods/test/pods_lab.h"

static void put_queue(struct lab *lab, const char *name, const char *spec)
{
	json_t *queue = lab_json("{\"metadata\": {\"name\": \"%s\"}, \"spec\": %s}", name, spec);

	pods_queue(lab->pods, REFLECTOR_PUT, queue);
	json_decref(queue);
}

static const struct tenant_record *tenant(const struct lab *lab, const char *name)
{
	for (int i = 0; i < lab->tenant_count; i++)
		if (strcmp(lab->tenant_names[i], name) == 0)
			return &lab->tenants[i];
	fail_msg("there is no tenant %s", name);
	return NULL;
}

static void put_pod(struct lab *lab, const char *name, const char *labels, const char *annotations)
{
	lab_pod(lab, REFLECTOR_PUT,
	        lab_json("{\"metadata\": {\"name\": \"%s\", \"namespace\": \"default\", \"uid\": "
	                 "\"uid-%s\", \"labels\": {%s}, \"annotations\": {%s}}, \"spec\": "
	                 "{\"schedulerName\": \"gpu-scheduler\", \"containers\": []}, "
	                 "\"status\": {\"phase\": \"Pending\"}}",
	                 name, name, labels, annotations));
}

static void queues_are_tenants_with_their_amounts(void **state)
{
	struct lab *lab = lab_new();

	(void)state;
	put_queue(lab, "team",
	          "{\"parentQueue\": \"all\", \"priority\": 7, \"resources\": {\"gpu\": "
	          "{\"quota\": 2.5, \"limit\": 4, \"overQuotaWeight\": 3}, \"cpu\": {\"quota\": "
	          "4000, \"limit\": -1}, \"memory\": {\"quota\": 10}}}");
	put_queue(lab, "all", "{\"resources\": {\"gpu\": {\"quota\": -1, \"limit\": -1}}}");
	lab_begin(lab);
	lab_round(lab, 2000);
	const struct tenant_record *team = tenant(lab, "team"), *all = tenant(lab, "all");
	assert_int_equal(team->parent_id, all->id);
	assert_int_equal(team->quota_gpu, 2500);
	assert_int_equal(team->limit_gpu, 4000);
	assert_int_equal(team->weight, 3000);
	assert_int_equal(team->priority, 7);
	assert_int_equal(team->quota_cpu, 4000);
	assert_true(team->limit_cpu == UNLIMITED);
	/* Megabytes; no limit of its own: nothing beyond the quota. */
	assert_int_equal(team->limit_host, 10000000);
	assert_true(all->quota_gpu == UNLIMITED && all->limit_gpu == UNLIMITED);
	assert_true(all->limit_host == UNLIMITED);
	lab_free(lab);
}

static void a_queue_is_asked_for_again_only_if_its_tenant_differs(void **state)
{
	struct lab *lab = lab_new();

	(void)state;
	put_queue(lab, "team", "{\"resources\": {\"gpu\": {\"quota\": 1, \"limit\": 1}}}");
	lab_begin(lab);
	lab_round(lab, 10000);
	assert_int_equal(lab_count(lab, COMMAND_PUT_TENANT, 0), 1);
	lab->tenants[0].quota_gpu = 0;
	lab->tenants[0].cost_per_gpu_hour = 5;
	lab_round(lab, 10000);
	assert_int_equal(lab_count(lab, COMMAND_PUT_TENANT, 0), 2);
	assert_int_equal(tenant(lab, "team")->quota_gpu, 1000);
	assert_int_equal(tenant(lab, "team")->cost_per_gpu_hour, 5);
	lab_free(lab);
}

static void a_queue_below_one_that_is_not_there_is_no_tenant(void **state)
{
	struct lab *lab = lab_new();

	(void)state;
	put_queue(lab, "team", "{\"parentQueue\": \"nobody\"}");
	lab_begin(lab);
	put_pod(lab, "p", "\"kai.scheduler/queue\": \"team\"", "");
	lab_round(lab, 10000);
	assert_int_equal(lab->tenant_count, 0);
	assert_int_equal(lab_count(lab, COMMAND_SUBMIT, 0), 0);
	put_queue(lab, "nobody", "{}");
	lab_round(lab, 20000);
	assert_int_equal(lab_last(lab, COMMAND_SUBMIT)->tenant_id, tenant(lab, "team")->id);
	lab_free(lab);
}

static void a_pod_group_ranks_its_pods(void **state)
{
	struct lab *lab = lab_new();

	(void)state;
	put_queue(lab, "team", "{}");
	json_t *class = lab_json("{\"metadata\": {\"name\": \"fine-tuning\"}, \"value\": 60}");
	json_t *group = lab_json("{\"metadata\": {\"name\": \"pair\", \"namespace\": \"default\"}, "
	                         "\"spec\": {\"minMember\": 2, \"queue\": \"team\", "
	                         "\"priorityClassName\": \"fine-tuning\", \"preemptibility\": "
	                         "\"non-preemptible\"}}");
	pods_group(lab->pods, PODS_PRIORITY_CLASSES, REFLECTOR_PUT, class);
	pods_group(lab->pods, "/apis/scheduling.run.ai/v2alpha2/podgroups", REFLECTOR_PUT, group);
	json_decref(class);
	json_decref(group);
	lab_begin(lab);
	put_pod(lab, "a", "", "\"pod-group-name\": \"pair\"");
	lab_round(lab, 3000);
	assert_int_equal(lab_count(lab, COMMAND_SUBMIT, 0), 0);
	put_pod(lab, "b", "", "\"pod-group-name\": \"pair\"");
	lab_round(lab, 3000);
	const struct lab_command *job = lab_last(lab, COMMAND_SUBMIT);
	assert_int_equal(job->least, 2);
	assert_int_equal(job->priority, 60);
	assert_false(job->preemptible);
	assert_int_equal(job->tenant_id, tenant(lab, "team")->id);
	lab_free(lab);
}

static void put_owned(struct lab *lab, const char *name)
{
	lab_pod(lab, REFLECTOR_PUT,
	        lab_json("{\"metadata\": {\"name\": \"%s\", \"namespace\": \"default\", \"uid\": "
	                 "\"uid-%s\", \"ownerReferences\": [{\"kind\": \"PyTorchJob\", \"name\": "
	                 "\"t\", \"uid\": \"t\", \"controller\": true}]}, \"spec\": "
	                 "{\"schedulerName\": \"gpu-scheduler\", \"containers\": []}, "
	                 "\"status\": {\"phase\": \"Pending\"}}",
	                 name, name));
}

static void pods_of_an_owner_wait_for_it_and_for_each_other(void **state)
{
	struct lab *lab = lab_new();

	(void)state;
	put_queue(lab, "team", "{}");
	lab_begin(lab);
	put_owned(lab, "a");
	put_owned(lab, "b");
	lab_round(lab, 20000);
	assert_int_equal(lab_count(lab, COMMAND_SUBMIT, 0), 0);
	json_t *owner = lab_json("{\"metadata\": {\"name\": \"t\", \"namespace\": \"default\", "
	                         "\"labels\": {\"kai.scheduler/queue\": \"team\"}}, \"spec\": "
	                         "{\"pytorchReplicaSpecs\": {\"Worker\": {\"replicas\": 3}}}}");
	pods_group(lab->pods, "/apis/kubeflow.org/v1/pytorchjobs", REFLECTOR_PUT, owner);
	json_decref(owner);
	lab_round(lab, 20000);
	assert_int_equal(lab_count(lab, COMMAND_SUBMIT, 0), 0);
	put_owned(lab, "c");
	lab_round(lab, 3000);
	assert_int_equal(lab_last(lab, COMMAND_SUBMIT)->least, 3);
	assert_int_equal(lab_last(lab, COMMAND_SUBMIT)->tenant_id, tenant(lab, "team")->id);
	lab_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_are_tenants_with_their_amounts),
		cmocka_unit_test(a_queue_is_asked_for_again_only_if_its_tenant_differs),
		cmocka_unit_test(a_queue_below_one_that_is_not_there_is_no_tenant),
		cmocka_unit_test(a_pod_group_ranks_its_pods),
		cmocka_unit_test(pods_of_an_owner_wait_for_it_and_for_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
