/* pod_request.c - what a pod takes of its node */
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "kube/pod.h"
#include "kube/quantity.h"
#include "json/member.h"

/* Amounts by name, in the order in which they were first met. cpu is in thousandths. */
enum { AMOUNTS_MAX = 64 };
struct amounts_of {
	const char *name[AMOUNTS_MAX];
	int64_t amount[AMOUNTS_MAX];
	int count;
};

static bool is_counted(const char *name)
{
	return strcmp(name, "ephemeral-storage") == 0 || strncmp(name, "hugepages-", 10) == 0 ||
	       strncmp(name, "attachable-volumes-", 19) == 0 || strchr(name, '/') != NULL;
}

static int64_t *amount_of(struct amounts_of *amounts, const char *name)
{
	int at = 0;

	while (at < amounts->count && strcmp(amounts->name[at], name) != 0)
		at++;
	if (at == amounts->count && at == AMOUNTS_MAX)
		return NULL;
	if (at == amounts->count) {
		amounts->name[at] = name;
		amounts->amount[at] = 0;
		amounts->count++;
	}
	return &amounts->amount[at];
}

/* Reads a map of quantities into `amounts`, which is empty. */
static bool read_quantities(const json_t *map, struct amounts_of *amounts, struct error *error)
{
	const char *name;
	json_t *value;

	amounts->count = 0;
	json_object_foreach((json_t *)map, name, value)
	{
		char text[64] = "";
		int64_t number;
		if (json_is_integer(value))
			snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT,
			         json_integer_value(value));
		const char *written = json_is_string(value) ? json_string_value(value) : text;
		bool right = strcmp(name, "cpu") == 0 ? quantity_milli(written, &number)
		                                      : quantity_units(written, &number);
		int64_t *amount = right ? amount_of(amounts, name) : NULL;
		if (!amount)
			return error_set(error, ERROR_INVALID,
			                 right ? "there are more than 64 resources, as of %.80s"
			                       : "the quantity of %.80s is malformed",
			                 name);
		*amount = number;
	}
	return true;
}

static void add_all(struct amounts_of *sum, const struct amounts_of *other)
{
	for (int i = 0; i < other->count; i++) {
		int64_t *amount = amount_of(sum, other->name[i]);
		if (amount)
			*amount += other->amount[i];
	}
}

static void raise_to(struct amounts_of *sum, const struct amounts_of *other)
{
	for (int i = 0; i < other->count; i++) {
		int64_t *amount = amount_of(sum, other->name[i]);
		if (amount)
			*amount = max64(*amount, other->amount[i]);
	}
}

static const json_t *status_of(const json_t *pod, const char *list, const char *name)
{
	const json_t *statuses = json_object_get(json_object_get(pod, "status"), list), *status;
	size_t i;

	json_array_foreach(statuses, i, status) if (strcmp(member_text(status, "name"), name) ==
	                                            0) return status;
	return NULL;
}

/* A container's requests, and no less than what it has while it is being resized. */
static bool read_container(const json_t *pod, const json_t *container, const char *statuses,
                           struct amounts_of *amounts, struct error *error)
{
	const json_t *resources = json_object_get(container, "resources");
	const json_t *status = status_of(pod, statuses, member_text(container, "name"));
	struct amounts_of has;

	if (!read_quantities(json_object_get(resources, "requests"), amounts, error))
		return false;
	if (!status)
		return true;
	if (!read_quantities(json_object_get(status, "allocatedResources"), &has, error))
		return false;
	raise_to(amounts, &has);
	if (!read_quantities(json_object_get(json_object_get(status, "resources"), "requests"),
	                     &has, error))
		return false;
	raise_to(amounts, &has);
	return true;
}

/* Init containers run one after the other, each beside the sidecars that started before it;
 * then the sidecars and all containers run together. */
static bool add_containers(const json_t *pod, struct amounts_of *total, struct error *error)
{
	const json_t *spec = json_object_get(pod, "spec"), *container;
	struct amounts_of one, sidecars = { .count = 0 }, most = { .count = 0 };
	size_t i;

	json_array_foreach(json_object_get(spec, "containers"), i, container)
	{
		if (!read_container(pod, container, "containerStatuses", &one, error))
			return false;
		add_all(total, &one);
	}
	json_array_foreach(json_object_get(spec, "initContainers"), i, container)
	{
		if (!read_container(pod, container, "initContainerStatuses", &one, error))
			return false;
		bool stays = strcmp(member_text(container, "restartPolicy"), "Always") == 0;
		if (stays)
			add_all(&sidecars, &one);
		struct amounts_of beside = sidecars;
		if (!stays)
			add_all(&beside, &one);
		raise_to(&most, &beside);
	}
	add_all(total, &sidecars);
	raise_to(total, &most);
	return true;
}

/* What the pod asks for as a whole stands for what its containers ask for. */
static bool apply_pod_level(const json_t *pod, struct amounts_of *total, struct error *error)
{
	const json_t *spec = json_object_get(pod, "spec"), *status = json_object_get(pod, "status");
	struct amounts_of whole, has;

	if (!read_quantities(json_object_get(json_object_get(spec, "resources"), "requests"),
	                     &whole, error) ||
	    !read_quantities(json_object_get(status, "allocatedResources"), &has, error))
		return false;
	for (int i = 0; i < whole.count; i++) {
		const char *name = whole.name[i];
		int64_t *amount = amount_of(total, name);
		if (amount && (strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
		               strncmp(name, "hugepages-", 10) == 0))
			*amount = whole.amount[i];
	}
	if (whole.count > 0)
		raise_to(total, &has);
	return true;
}

static bool is_listed(const json_t *list, const char *name, size_t size)
{
	const json_t *text;
	size_t i;

	json_array_foreach(list, i,
	                   text) if (json_is_string(text) && json_string_length(text) == size &&
	                             memcmp(json_string_value(text), name, size) == 0) return true;
	return false;
}

static bool is_ignored(const struct pod_settings *settings, const char *name)
{
	const char *slash = strchr(name, '/');

	return settings &&
	       (is_listed(settings->ignored_resources, name, strlen(name)) ||
	        (slash && is_listed(settings->ignored_groups, name, (size_t)(slash - name))));
}

static void print_counts(const struct amounts_of *amounts, const struct pod_settings *settings,
                         struct pod_request *request)
{
	for (int i = 0; i < amounts->count; i++) {
		const char *name = amounts->name[i];
		int64_t amount = min64(max64(amounts->amount[i], 0), INT64_C(1) << 53);
		if (strcmp(name, "cpu") == 0)
			request->cpu_milli = amount;
		else if (strcmp(name, "memory") == 0)
			request->memory_bytes = amount;
		else if (is_counted(name) && !is_ignored(settings, name) && !strchr(name, '=') &&
		         !strchr(name, '\n') && strlen(name) < 256)
			buffer_print(&request->counts, "%s%s=%lld",
			             request->counts.size > 0 ? "\n" : "", name, (long long)amount);
	}
}

bool pod_request_read(const json_t *pod, const struct pod_settings *settings,
                      struct pod_request *request, struct error *error)
{
	struct amounts_of total = { .count = 0 }, overhead;
	const json_t *spec = json_object_get(pod, "spec");

	*request = (struct pod_request){ 0 };
	if (!add_containers(pod, &total, error) || !apply_pod_level(pod, &total, error) ||
	    !read_quantities(json_object_get(spec, "overhead"), &overhead, error))
		return false;
	add_all(&total, &overhead);
	buffer_text(&request->counts, "pods=1");
	print_counts(&total, settings, request);
	return true;
}

bool pod_node_capacity(const json_t *node, struct pod_request *capacity, struct error *error)
{
	struct amounts_of amounts;
	const json_t *status = json_object_get(node, "status");

	*capacity = (struct pod_request){ 0 };
	if (!read_quantities(json_object_get(status, "allocatable"), &amounts, error))
		return false;
	int64_t *pods = amount_of(&amounts, "pods");
	buffer_print(&capacity->counts, "pods=%lld", (long long)(pods ? *pods : 0));
	print_counts(&amounts, NULL, capacity);
	return true;
}

bool pod_is_gated(const json_t *pod)
{
	return json_array_size(json_object_get(json_object_get(pod, "spec"), "schedulingGates")) >
	       0;
}

bool pod_has_ended(const json_t *pod)
{
	const char *phase = member_text(json_object_get(pod, "status"), "phase");

	return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}
