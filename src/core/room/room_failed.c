/* room_failed.c - searches for room that found nothing, and are not repeated */
#include "base/hash.h"
#include "core/room/room.h"
#include "core/state.h"

#define VICTIMS_PER_UNIT 32 /* looked at without success */

static int64_t search_id(const struct job_group *group, enum room_kind kind)
{
	return (int64_t)(hash_combine(group->key, kind) >> 1);
}

/* Whether one shape asks for at least what the other asks for, in the same way. */
static bool is_no_smaller(const struct shape *a, const struct shape *b)
{
	const struct shape_request *x = &a->request, *y = &b->request;

	return a == b ||
	       (a->filter == b->filter && a->closeness == b->closeness &&
	        a->closeness_required >= b->closeness_required && x->gpu_kind == y->gpu_kind &&
	        x->gpu_kind != GPU_UNEVEN && x->gpu_count >= y->gpu_count &&
	        x->fraction >= y->fraction && x->memory_mib >= y->memory_mib &&
	        x->cpu_milli >= y->cpu_milli && x->host_bytes >= y->host_bytes &&
	        x->compute >= y->compute && (x->compute > 0) == (y->compute > 0) &&
	        a->tasks >= b->tasks && a->split_gpus >= b->split_gpus);
}

/* Whether jobs of the group and priority ask for no less than what was hopeless,
 * and may take from no more. Both are of one tenant. */
static bool is_no_easier(const struct job_group *group, int64_t priority,
                         const struct hopeless *other, enum room_kind kind)
{
	return group->preemptible == other->group->preemptible &&
	       (kind != ROOM_PREEMPT || priority <= other->priority) &&
	       (group == other->group ||
	        (other->group->anchor == 0 && is_no_smaller(group->shape, other->group->shape)));
}

static void remember_hopeless(const struct sched *sched, struct job_group *group, int64_t priority)
{
	bool known = group->no_room_round == sched->room.round;

	group->no_room_priority = known ? max64(group->no_room_priority, priority) : priority;
	group->no_room_round = sched->room.round;
}

bool room_known_full(const struct sched *sched, struct job_group *group, int64_t priority,
                     enum room_kind kind)
{
	const struct tenant *tenant = group->tenant;

	if (group->no_room_round == sched->room.round &&
	    (kind != ROOM_PREEMPT || priority <= group->no_room_priority))
		return true;
	for (size_t i = 0; i < tenant->hopeless_count; i++)
		if (is_no_easier(group, priority, &tenant->hopeless[i], kind)) {
			remember_hopeless(sched, group, priority);
			return true;
		}
	return false;
}

static void note_hopeless(const struct sched *sched, struct job_group *group, int64_t priority,
                          enum room_kind kind)
{
	struct tenant *tenant = group->tenant;

	if (room_known_full(sched, group, priority, kind))
		return;
	array_reserve(tenant->hopeless, tenant->hopeless_capacity, tenant->hopeless_count + 1);
	tenant->hopeless[tenant->hopeless_count++] = (struct hopeless){ group, priority };
	remember_hopeless(sched, group, priority);
}

bool room_failed_before(const struct sched *sched, const struct job *job, enum room_kind kind)
{
	struct job_group *group = job->class->group;

	INVARIANT(kind < ROOM_KINDS);
	if (room_known_full(sched, group, job->r.priority, kind))
		return true;
	if (group->failed[kind].change_seq != sched->pass.change_seq ||
	    (kind == ROOM_PREEMPT && group->failed[kind].job_id != job->r.id) ||
	    sched_now(sched) >= group->failed[kind].retry_ms)
		return false;
	note_hopeless(sched, group, job->r.priority, kind);
	return true;
}

void room_note_pauses(const struct sched *sched, struct tenant *tenant, enum room_kind kind)
{
	int64_t priority;

	if (sched->backoffs.by_id.count == 0)
		return;
	for (size_t g = 0; g < tenant->group_count; g++)
		if (backoff_pauses(sched, search_id(tenant->groups[g], kind), &priority))
			note_hopeless(sched, tenant->groups[g], priority, kind);
}

void room_note_failure(struct sched *sched, const struct job *job, enum room_kind kind,
                       uint64_t state)
{
	struct job_group *group = job->class->group;
	size_t looked_at = kind == ROOM_EVICT ? sched->cold_slots.by_cost.count : sched->room.count;

	INVARIANT(!sched->plan.open);
	INVARIANT(kind < ROOM_KINDS && !sched->plan.open);
	note_hopeless(sched, group, job->r.priority, kind);
	if (backoff_begin(sched, search_id(group, kind), job->r.priority, (int64_t)looked_at)) {
		sched->pass.budget -= 1 + (int64_t)looked_at / VICTIMS_PER_UNIT +
		                      sched->room.work / ROOM_WORK_PER_UNIT;
		return;
	}
	group->failed[kind].change_seq = state;
	group->failed[kind].job_id = job->r.id;
	group->failed[kind].retry_ms = sched->room.retry_ms;
}
