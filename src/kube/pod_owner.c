/* pod_owner.c - the pods that an owner makes, as gangs: JobSet, PyTorchJob, MPIJob, RayCluster */
#include "kube/pod_owner.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "json/member.h"

enum { OWNER_JOBSET, OWNER_PYTORCH, OWNER_MPI, OWNER_RAY };
const char *const pod_owner_resources[] = {
	"/apis/jobset.x-k8s.io/v1alpha2/jobsets",
	"/apis/kubeflow.org/v1/pytorchjobs",
	"/apis/kubeflow.org/v2beta1/mpijobs",
	"/apis/ray.io/v1/rayclusters",
	NULL,
};
enum { ROLES_MAX = 32, GANG_MAX = 4096 };

/* The pods of an owner that have one template. */
struct role {
	const char *name;
	int64_t count;
	const json_t *template;
};
struct roles {
	struct role of[ROLES_MAX];
	int count;
};

static const json_t *labels_of(const json_t *pod)
{
	return json_object_get(json_object_get(pod, "metadata"), "labels");
}

static const json_t *controller_of(const json_t *pod)
{
	const json_t *owners = json_object_get(json_object_get(pod, "metadata"), "ownerReferences");
	const json_t *owner;
	size_t i;

	json_array_foreach(owners, i, owner)
	{
		if (member_flag(owner, "controller"))
			return owner;
	}
	return NULL;
}

/* Pods of a JobSet belong to its Jobs. The launcher of an MPIJob belongs to a Job too, and starts
 * by itself: it tries again until its workers are there. */
bool pod_owner_read(const json_t *pod, struct pod_owner *owner)
{
	static const struct {
		const char *kind, *label;
	} kinds[] = {
		[OWNER_PYTORCH] = { "PyTorchJob", "training.kubeflow.org/replica-type" },
		[OWNER_MPI] = { "MPIJob", "training.kubeflow.org/job-role" },
		[OWNER_RAY] = { "RayCluster", "ray.io/group" },
	};
	const json_t *labels = labels_of(pod), *controller = controller_of(pod);
	const char *kind = member_text(controller, "kind");
	const char *jobset = member_text(labels, "jobset.sigs.k8s.io/jobset-name");

	if (*jobset && strcmp(kind, "Job") == 0) {
		*owner = (struct pod_owner){ pod_owner_resources[OWNER_JOBSET], jobset,
			                     member_text(labels,
			                                 "jobset.sigs.k8s.io/replicatedjob-name") };
		return true;
	}
	for (int i = OWNER_PYTORCH; i <= OWNER_RAY; i++) {
		if (strcmp(kind, kinds[i].kind) != 0)
			continue;
		*owner =
		    (struct pod_owner){ pod_owner_resources[i], member_text(controller, "name"),
			                member_text(labels, kinds[i].label) };
		return *owner->name != '\0';
	}
	return false;
}

static int64_t count_of(const json_t *object, const char *name, int64_t unset)
{
	int64_t count = member_has(object, name) ? member_integer(object, name) : unset;

	return min64(max64(count, 0), GANG_MAX);
}

static void add_role(struct roles *roles, const char *name, int64_t count, const json_t *template)
{
	if (roles->count < ROLES_MAX)
		roles->of[roles->count++] = (struct role){ name, count, template };
}

static void jobset_roles(const json_t *spec, struct roles *roles)
{
	const json_t *replicated;
	size_t i;

	json_array_foreach(json_object_get(spec, "replicatedJobs"), i, replicated)
	{
		const json_t *job =
		    json_object_get(json_object_get(replicated, "template"), "spec");
		int64_t pods = count_of(job, "parallelism", 1);
		if (member_has(job, "completions"))
			pods = min64(pods, count_of(job, "completions", 1));
		add_role(roles, member_text(replicated, "name"),
		         count_of(replicated, "replicas", 1) * pods,
		         json_object_get(job, "template"));
	}
}

static void replica_roles(const json_t *specs, bool workers_alone, struct roles *roles)
{
	const char *name;
	json_t *replica;

	json_object_foreach((json_t *)specs, name, replica)
	{
		if (!workers_alone || strcmp(name, "Worker") == 0)
			add_role(roles, name, count_of(replica, "replicas", 1),
			         json_object_get(replica, "template"));
	}
}

static void ray_roles(const json_t *spec, struct roles *roles)
{
	const json_t *workers, *head = json_object_get(spec, "headGroupSpec");
	size_t i;

	add_role(roles, "headgroup", 1, json_object_get(head, "template"));
	json_array_foreach(json_object_get(spec, "workerGroupSpecs"), i, workers)
	{
		int64_t least = count_of(workers, "minReplicas", count_of(workers, "replicas", 1));
		add_role(roles, member_text(workers, "groupName"),
		         least * max64(count_of(workers, "numOfHosts", 1), 1),
		         json_object_get(workers, "template"));
	}
}

static void read_roles(const char *resource, const json_t *object, struct roles *roles)
{
	const json_t *spec = json_object_get(object, "spec");

	roles->count = 0;
	if (resource == pod_owner_resources[OWNER_JOBSET])
		jobset_roles(spec, roles);
	else if (resource == pod_owner_resources[OWNER_RAY])
		ray_roles(spec, roles);
	else if (resource == pod_owner_resources[OWNER_MPI])
		replica_roles(json_object_get(spec, "mpiReplicaSpecs"), true, roles);
	else
		replica_roles(json_object_get(spec, "pytorchReplicaSpecs"), false, roles);
}

/* What a template asks for, as a text that is equal for equal demands; to be freed. */
static char *template_demand(const json_t *template)
{
	static const char *const members[] = { "nodeSelector", "affinity", "tolerations",
		                               "overhead", "topologySpreadConstraints" };
	const json_t *spec = json_object_get(template, "spec"), *container;
	const json_t *annotations =
	    json_object_get(json_object_get(template, "metadata"), "annotations");
	json_t *demand = json_array();
	size_t i;

	json_array_foreach(json_object_get(spec, "containers"), i, container)
	{
		json_t *resources = json_object_get(container, "resources");
		json_array_append_new(demand, resources ? json_incref(resources) : json_object());
	}
	for (i = 0; i < sizeof(members) / sizeof(*members); i++) {
		json_t *value = json_object_get(spec, members[i]);
		json_array_append_new(demand, value ? json_incref(value) : json_null());
	}
	json_array_append_new(demand, json_string(member_text(annotations, "gpu-fraction")));
	json_array_append_new(demand, json_string(member_text(annotations, "gpu-memory")));
	char *text = json_dumps(demand, JSON_SORT_KEYS | JSON_COMPACT);
	json_decref(demand);
	return text;
}

static bool roles_are_alike(const struct roles *roles)
{
	char *first = roles->count > 0 ? template_demand(roles->of[0].template) : NULL;
	bool alike = true;

	for (int i = 1; alike && i < roles->count; i++) {
		char *other = template_demand(roles->of[i].template);
		alike = strcmp(first, other) == 0;
		free(other);
	}
	free(first);
	return alike;
}

int64_t pod_owner_gang(const char *resource, const json_t *object, const char *role, bool *whole)
{
	const json_t *policy = json_object_get(
	    json_object_get(json_object_get(object, "spec"), "runPolicy"), "schedulingPolicy");
	struct roles roles;
	int64_t sum = 0, its = 1;

	read_roles(resource, object, &roles);
	for (int i = 0; i < roles.count; i++) {
		sum += roles.of[i].count;
		if (strcasecmp(roles.of[i].name, role) == 0)
			its = roles.of[i].count;
	}
	*whole = roles_are_alike(&roles);
	if (*whole && member_has(policy, "minAvailable"))
		sum = count_of(policy, "minAvailable", sum);
	return min64(max64(*whole ? sum : its, 1), GANG_MAX);
}
