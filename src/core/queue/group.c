/* group.c - the waiting jobs of a tenant that ask for the same thing */
#include "core/queue/group.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/queue/job.h"

static bool head_before(const struct queue_head *a, const struct queue_head *b)
{
	return a->effective != b->effective ? a->effective > b->effective : a->number < b->number;
}

static bool ageing_before(const void *a, const void *b)
{
	const struct job_class *one = a, *other = b;
	return head_before(&one->heads.ageing, &other->heads.ageing);
}

static bool aged_before(const void *a, const void *b)
{
	const struct job_class *one = a, *other = b;
	return head_before(&one->heads.aged, &other->heads.aged);
}

static bool due_before(const void *a, const void *b)
{
	const struct job_class *one = a, *other = b;
	return one->heads.due_ms < other->heads.due_ms;
}

void group_init(struct job_group *group)
{
	group->ageing = HEAP(struct job_class, ageing_index, ageing_before);
	group->aged = HEAP(struct job_class, aged_index, aged_before);
	group->due = HEAP(struct job_class, due_index, due_before);
	group->shape_index = group->tenant_index = -1;
}

void group_free(struct job_group *group)
{
	heap_free(&group->ageing);
	heap_free(&group->aged);
	heap_free(&group->due);
	free(group->classes);
	free(group);
}

void class_init(struct job_class *class, struct queue_rule rule)
{
	queue_init(&class->queue, rule);
	class->heads = queue_heads(&class->queue);
	class->group_index = -1;
	class->ageing_index = class->aged_index = class->due_index = class->pass_index = -1;
}

void class_free(struct job_class *class)
{
	queue_free(&class->queue);
	ranktree_free(&class->by_service);
	ranktree_free(&class->by_wait);
	free(class);
}

static void settle_in(struct heap *heap, struct job_class *class, bool in)
{
	bool was_in = heap_has(heap, class);

	if (in && was_in)
		heap_update(heap, class);
	else if (in)
		heap_push(heap, class);
	else if (was_in)
		heap_remove(heap, class);
}

static bool same_head(const struct queue_head *a, const struct queue_head *b)
{
	return a->present == b->present && a->effective == b->effective && a->number == b->number;
}

/* After a job of the class came, went or moved on. */
static void settle_heads(struct job_class *class)
{
	struct job_group *group = class->group;
	const struct queue_heads before = class->heads;

	class->heads = queue_heads(&class->queue);
	if (!same_head(&before.ageing, &class->heads.ageing))
		settle_in(&group->ageing, class, class->heads.ageing.present);
	if (!same_head(&before.aged, &class->heads.aged))
		settle_in(&group->aged, class, class->heads.aged.present);
	if (before.due_ms != class->heads.due_ms)
		settle_in(&group->due, class, class->heads.due_ms != INT64_MAX);
}

static struct job *group_job_of(struct queue_entry *entry)
{
	return (struct job *)(void *)((char *)entry - offsetof(struct job, entry));
}

static void list_turn(struct job_class *class, struct job *job)
{
	if (!class->queue.rule.shares || !job_takes_turns(job))
		return;
	INVARIANT(ranktree_insert(&class->by_service, job->entry.behind_ms, job->r.id, job));
	INVARIANT(ranktree_insert(&class->by_wait, job->entry.queued_ms, job->r.id, job));
}

static void unlist_turn(struct job_class *class, const struct job *job)
{
	if (!class->queue.rule.shares || !job_takes_turns(job))
		return;
	INVARIANT(ranktree_remove(&class->by_service, job->entry.behind_ms, job->r.id) == job);
	INVARIANT(ranktree_remove(&class->by_wait, job->entry.queued_ms, job->r.id) == job);
}

void class_rerule(struct job_class *class, struct queue_rule rule, int64_t now_ms)
{
	struct queue_entry *entry;

	queue_rerule(&class->queue, rule, now_ms);
	settle_heads(class);
	ranktree_free(&class->by_service);
	ranktree_free(&class->by_wait);
	struct queue_cursor cursor = queue_walk(&class->queue, now_ms);
	while (rule.shares && (entry = queue_walk_next(&cursor)))
		list_turn(class, group_job_of(entry));
}

static void list_active(struct shapes *shapes, struct shape *shape)
{
	array_reserve(shapes->active, shapes->active_capacity, shapes->active_count + 1);
	shape->active_index = (int64_t)shapes->active_count;
	shapes->active[shapes->active_count++] = shape;
}

static void unlist_active(struct shapes *shapes, struct shape *shape)
{
	struct shape *last = shapes->active[--shapes->active_count];
	shapes->active[shape->active_index] = last;
	last->active_index = shape->active_index;
	shape->active_index = -1;
}

static void list_group(struct shapes *shapes, struct job_group *group)
{
	struct shape *shape = group->shape;
	struct tenant *tenant = group->tenant;

	if (shape->group_count == 0)
		list_active(shapes, shape);
	array_reserve(shape->groups, shape->group_capacity, shape->group_count + 1);
	group->shape_index = (int64_t)shape->group_count;
	shape->groups[shape->group_count++] = group;
	array_reserve(tenant->groups, tenant->group_capacity, tenant->group_count + 1);
	group->tenant_index = (int64_t)tenant->group_count;
	tenant->groups[tenant->group_count++] = group;
}

static void note_spent(struct shapes *shapes, struct job_group *group)
{
	if (group->anchor == 0 || group->spent)
		return;
	group->spent = true;
	array_reserve(shapes->spent, shapes->spent_capacity, shapes->spent_count + 1);
	shapes->spent[shapes->spent_count++] = group;
}

/* The last one of each list takes its place there. */
static void unlist_group(struct shapes *shapes, struct job_group *group)
{
	struct shape *shape = group->shape;
	struct tenant *tenant = group->tenant;
	struct job_group *last = shape->groups[--shape->group_count];

	shape->groups[group->shape_index] = last;
	last->shape_index = group->shape_index;
	last = tenant->groups[--tenant->group_count];
	tenant->groups[group->tenant_index] = last;
	last->tenant_index = group->tenant_index;
	group->shape_index = group->tenant_index = -1;
	if (shape->group_count == 0)
		unlist_active(shapes, shape);
	note_spent(shapes, group);
}

static void list_class(struct shapes *shapes, struct job_class *class)
{
	struct job_group *group = class->group;

	if (group->class_count == 0)
		list_group(shapes, group);
	array_reserve(group->classes, group->class_capacity, group->class_count + 1);
	class->group_index = (int64_t)group->class_count;
	group->classes[group->class_count++] = class;
	group->highest =
	    group->class_count == 1 ? class->priority : max64(group->highest, class->priority);
}

static void find_highest(struct job_group *group)
{
	group->highest = INT64_MIN;
	for (size_t i = 0; i < group->class_count; i++)
		group->highest = max64(group->highest, group->classes[i]->priority);
}

static void unlist_class(struct shapes *shapes, struct job_class *class)
{
	struct job_group *group = class->group;
	struct job_class *last = group->classes[--group->class_count];

	group->classes[class->group_index] = last;
	last->group_index = class->group_index;
	class->group_index = -1;
	if (class->priority == group->highest)
		find_highest(group);
	if (group->class_count == 0)
		unlist_group(shapes, group);
}

int64_t job_urgent_from(const struct job *job)
{
	if (job->r.deadline_ms <= 0)
		return 0;
	if (job->s.urgent_ms > 0)
		return job->s.urgent_ms;
	int64_t expected_ms = min64(job->s.expected_ms, job->r.deadline_ms / 2);
	return max64(job->r.deadline_ms - 2 * expected_ms, 1);
}

void class_push(struct shapes *shapes, struct job_class *class, struct job *job, int64_t behind_ms,
                int64_t waits, int64_t now_ms)
{
	INVARIANT(!job->class && job->tenant == class->tenant);
	INVARIANT(job->r.priority == class->priority);
	job->entry = (struct queue_entry){
		.priority = job->r.priority,
		.queued_ms = job_age_from(job),
		.number = job_turn(job),
		.urgent_ms = job_urgent_from(job),
		.behind_ms = behind_ms,
		.waits = waits,
	};
	if (queue_count(&class->queue) == 0)
		list_class(shapes, class);
	queue_push(&class->queue, &job->entry, now_ms);
	settle_heads(class);
	list_turn(class, job);
	job->class = class;
	class->tenant->queued++;
}

void class_remove(struct shapes *shapes, struct job_class *class, struct job *job)
{
	INVARIANT(job->class == class);
	queue_remove(&class->queue, &job->entry);
	settle_heads(class);
	unlist_turn(class, job);
	job->class = NULL;
	class->tenant->queued--;
	if (queue_count(&class->queue) == 0)
		unlist_class(shapes, class);
}

struct job *class_first(struct job_class *class, int64_t now_ms)
{
	struct queue_entry *entry = queue_first(&class->queue, now_ms);

	INVARIANT(entry);
	return group_job_of(entry);
}

void class_turn(struct job_class *class, int64_t now_ms)
{
	struct queue_head ageing = class->heads.ageing, aged = class->heads.aged;

	ageing.effective += class->queue.rule.per_minute * now_ms;
	bool ages = ageing.present && (!aged.present || head_before(&ageing, &aged));
	int64_t least = class->priority * PRIORITY_UNIT;
	class->pass_key = ages ? ageing.effective : aged.effective;
	class->pass_number = ages ? ageing.number : aged.number;
	class->pass_behind = max64(least - class->pass_key, 0);
	class->pass_key = max64(class->pass_key, least);
}

bool class_before(const void *a, const void *b)
{
	const struct job_class *one = a, *other = b;

	if (one->pass_key != other->pass_key)
		return one->pass_key > other->pass_key;
	return one->pass_behind != other->pass_behind ? one->pass_behind < other->pass_behind
	                                              : one->pass_number < other->pass_number;
}

/* Moves jobs on that are done with ageing. */
static void move_on(const struct job_group *group, int64_t now_ms)
{
	struct job_class *class;

	while ((class = heap_first(&group->due)) && class->heads.due_ms <= now_ms) {
		queue_move_on(&class->queue, now_ms);
		settle_heads(class);
	}
}

/* Where ages count from later for some, heads do not tell the order of classes. */
static struct job_class *first_by_turn(struct job_group *group, int64_t now_ms)
{
	struct job_class *first = NULL;

	for (size_t i = 0; i < group->class_count; i++) {
		class_turn(group->classes[i], now_ms);
		if (!first || class_before(group->classes[i], first))
			first = group->classes[i];
	}
	return first;
}

struct job_class *group_first(struct job_group *group, int64_t now_ms)
{
	move_on(group, now_ms);
	if (group->class_count > 0 && group->classes[0]->queue.rule.shares)
		return first_by_turn(group, now_ms);
	struct job_class *ageing = heap_first(&group->ageing), *aged = heap_first(&group->aged);
	if (ageing)
		class_turn(ageing, now_ms);
	if (aged)
		class_turn(aged, now_ms);
	if (!ageing || !aged)
		return ageing ? ageing : aged;
	return class_before(ageing, aged) ? ageing : aged;
}
