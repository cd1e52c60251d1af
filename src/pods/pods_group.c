/* pods_group.c - how many pods of a group start together, and how many have done their work */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pods/pods_local.h"

/* What was read of that resource; NULL: it is not there. */
static const json_t *object_named(const struct pods *pods, const char *resource,
                                  const char *namespace, const char *name)
{
	char *key = text_print("%s %s/%s", resource, namespace, name);
	const json_t *object = text_map_get(&pods->groups, key);

	free(key);
	return object;
}

static const json_t *object_of(const struct pods *pods, const struct unit *unit)
{
	if (!unit->is_group || !unit->group_resource)
		return NULL;
	return object_named(pods, unit->group_resource, unit->namespace,
	                    strchr(unit->group_name, '/') + 1);
}

int64_t unit_least(const struct pods *pods, const struct unit *unit)
{
	if (!unit->is_group)
		return 1;
	if (!unit->group_resource)
		return unit->declared_least;
	const json_t *object = object_of(pods, unit);
	return object ? pod_group_minimum(object) : 0;
}

struct pod_group_rank group_rank(const struct pods *pods, const struct unit *unit)
{
	return pod_group_rank(unit->group_resource, object_of(pods, unit));
}

int64_t group_priority(const struct pods *pods, const char *class)
{
	const json_t *object = object_named(pods, PODS_PRIORITY_CLASSES, "", class);

	return object ? member_integer(object, "value") : pod_priority_of_name(class);
}

const json_t *group_of_owner(const struct pods *pods, const struct pod *pod,
                             struct pod_group *group, bool *unknown)
{
	struct pod_owner owner;
	bool whole;

	*unknown = false;
	*group = (struct pod_group){ 0 };
	if (!pod_owner_read(pod->object, &owner))
		return NULL;
	const json_t *object = object_named(pods, owner.resource, pod->namespace, owner.name);
	*unknown = !object;
	if (!object)
		return NULL;
	const char *kind = strrchr(owner.resource, '/') + 1;
	group->least = pod_owner_gang(owner.resource, object, owner.role, &whole);
	if (group->least > 1 && whole)
		snprintf(group->name, sizeof(group->name), "%s/%.200s", kind, owner.name);
	else if (group->least > 1)
		snprintf(group->name, sizeof(group->name), "%s/%.180s/%.80s", kind, owner.name,
		         owner.role);
	return object;
}

/* The key of its group among pods that have succeeded; NULL: it has none. */
static char *group_key(const struct pods *pods, const struct pod *pod)
{
	struct pod_group group;
	bool unknown;

	pod_group_read(pod->object, &group);
	if (!*group.name)
		group_of_owner(pods, pod, &group, &unknown);
	return *group.name ? text_print("%s %s", pod->namespace, group.name) : NULL;
}

void group_note_success(struct pods *pods, struct pod *pod)
{
	const char *phase = member_text(json_object_get(pod->object, "status"), "phase");

	if (pod->succeeded || strcmp(phase, "Succeeded") != 0 || !pods_are_ours(pods, pod->object))
		return;
	char *key = group_key(pods, pod);
	if (!key)
		return;
	pod->succeeded = key;
	pod->next_succeeded = text_map_get(&pods->succeeded, key);
	text_map_put(&pods->succeeded, key, pod);
}

void group_forget_success(struct pods *pods, struct pod *pod)
{
	if (!pod->succeeded)
		return;
	struct pod *first = text_map_remove(&pods->succeeded, pod->succeeded), **at = &first;
	while (*at != pod)
		at = &(*at)->next_succeeded;
	*at = pod->next_succeeded;
	if (first)
		text_map_put(&pods->succeeded, pod->succeeded, first);
	free(pod->succeeded);
	pod->succeeded = NULL;
}

int64_t pod_job_id(const json_t *object, int64_t *place)
{
	const char *text = member_text(
	    json_object_get(json_object_get(object, "metadata"), "annotations"), JOB_ANNOTATION);
	char *end = NULL;
	int64_t job_id = strncmp(text, "job-", 4) == 0 ? strtoll(text + 4, &end, 10) : 0;

	*place = end && *end == '/' ? strtoll(end + 1, &end, 10) : -1;
	if (end && *end)
		*place = -1;
	return job_id > 0 && *place >= 0 ? job_id : 0;
}

static int by_number(const void *a, const void *b)
{
	const int64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

/* A group of that name may have run before: its pods are those of earlier jobs, and enough of them
 * to be complete. What is left over belongs to the present run. */
static int64_t left_over(int64_t *jobs, size_t count, int64_t least)
{
	int64_t sum = 0;

	qsort(jobs, count, sizeof(*jobs), by_number);
	for (size_t i = 0; i < count; i++) {
		sum++;
		bool job_ends = i + 1 == count || jobs[i + 1] != jobs[i];
		if (job_ends && sum >= least)
			sum = 0;
	}
	return sum;
}

int64_t group_succeeded(const struct pods *pods, const struct unit *unit, int64_t least)
{
	char *key = text_print("%s %s", unit->namespace, unit->group_name);
	const struct pod *first = text_map_get(&pods->succeeded, key);
	size_t count = 0, i = 0;

	free(key);
	for (const struct pod *pod = first; pod; pod = pod->next_succeeded)
		count++;
	int64_t *jobs = memory_zero(count + 1, sizeof(*jobs));
	for (const struct pod *pod = first; pod; pod = pod->next_succeeded) {
		int64_t place;
		jobs[i++] = pod_job_id(pod->object, &place);
	}
	int64_t sum = left_over(jobs, count, least);
	free(jobs);
	return sum;
}
