/* job_sets.c - which jobs there are, by tenant and state, in the orders that lists have */
#include "api/read/job_sets.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

static struct job_group *group_of(struct job_sets *sets, int64_t tenant_id)
{
	struct job_group *group = map_get(&sets->tenants, tenant_id);
	if (!group) {
		group = NEW(struct job_group);
		map_put(&sets->tenants, tenant_id, group);
	}
	return group;
}

/* A value must not be NULL; the entry's key says all. */
static void set_add(struct job_set *set, const struct job_place *place)
{
	bool added = ranktree_insert(&set->by_id, place->id, 0, set) &&
	             ranktree_insert(&set->by_priority, -place->priority, place->id, set);
	INVARIANT(added);
}

static void set_remove(struct job_set *set, const struct job_place *place)
{
	bool removed = ranktree_remove(&set->by_id, place->id, 0) &&
	               ranktree_remove(&set->by_priority, -place->priority, place->id);
	INVARIANT(removed);
}

void job_sets_add(struct job_sets *sets, const struct job_place *place)
{
	struct job_group *group = group_of(sets, place->tenant_id);
	set_add(&sets->all.states[place->state], place);
	set_add(&sets->all.states[JOB_STATES], place);
	set_add(&group->states[place->state], place);
	set_add(&group->states[JOB_STATES], place);
}

void job_sets_remove(struct job_sets *sets, const struct job_place *place)
{
	struct job_group *group = group_of(sets, place->tenant_id);
	set_remove(&sets->all.states[place->state], place);
	set_remove(&sets->all.states[JOB_STATES], place);
	set_remove(&group->states[place->state], place);
	set_remove(&group->states[JOB_STATES], place);
}

void job_sets_move(struct job_sets *sets, const struct job_place *from, const struct job_place *to)
{
	bool same = from->tenant_id == to->tenant_id && from->priority == to->priority;
	if (same && from->state == to->state)
		return;
	if (!same) {
		job_sets_remove(sets, from);
		job_sets_add(sets, to);
		return;
	}
	struct job_group *group = group_of(sets, to->tenant_id);
	set_remove(&sets->all.states[from->state], from);
	set_add(&sets->all.states[to->state], to);
	set_remove(&group->states[from->state], from);
	set_add(&group->states[to->state], to);
}

void job_sets_archive(struct job_sets *sets, int64_t tenant_id, int state, int64_t count)
{
	struct job_group *group = group_of(sets, tenant_id);
	sets->all.states[state].archived += count;
	sets->all.states[JOB_STATES].archived += count;
	group->states[state].archived += count;
	group->states[JOB_STATES].archived += count;
}

const struct job_set *job_sets_get(const struct job_sets *sets, int64_t tenant_id, int state)
{
	const struct job_group *group =
	    tenant_id == 0 ? &sets->all : map_get(&sets->tenants, tenant_id);
	return group ? &group->states[state < 0 ? JOB_STATES : state] : NULL;
}

static void group_free(struct job_group *group)
{
	for (int i = 0; i <= JOB_STATES; i++) {
		ranktree_free(&group->states[i].by_id);
		ranktree_free(&group->states[i].by_priority);
	}
}

void job_sets_free(struct job_sets *sets)
{
	group_free(&sets->all);
	for (size_t i = 0; i < sets->tenants.capacity; i++) {
		struct job_group *group = sets->tenants.entries[i].value;
		if (group) {
			group_free(group);
			free(group);
		}
	}
	map_free(&sets->tenants);
}
