/* group.h - the waiting jobs of a tenant that ask for the same thing */
#ifndef CORE_QUEUE_GROUP_H
#define CORE_QUEUE_GROUP_H

#include "core/queue/shape.h"

/* The ways to make room; see room.h. */
enum room_kind {
	ROOM_CONSOLIDATE, /* others move, and all of them find a place */
	ROOM_RECLAIM,     /* from tenants that have more than their share */
	ROOM_PREEMPT,     /* from the same tenant's jobs of strictly lower priority */
	ROOM_EVICT,       /* idle slots go; see evict.h */
	ROOM_SHARE,       /* from the same tenant's jobs that take longer; see timeshare.c */
	ROOM_KINDS,
};

/* The waiting jobs of one tenant and shape, all of which may be preempted or none:
 * where one of them does not fit, or finds nobody to take from, no other does,
 * but for how long they take and, where they would preempt, their priority. A
 * job that has to grow where it is, is in a group by itself. */
struct job_group {
	struct tenant *tenant;
	struct shape *shape;
	bool preemptible;
	int64_t anchor;             /* the job that has to grow where it is; 0: none */
	uint64_t key;               /* the same for the same group in every run */
	struct job_class *made;     /* all its classes, linked by `next` */
	struct job_class **classes; /* with waiting jobs, in no order that decides anything */
	size_t class_count, class_capacity;
	int64_t highest;                   /* priority of those */
	struct heap ageing, aged, due;     /* those classes by their heads, where they have them */
	int64_t shape_index, tenant_index; /* in their lists of groups; -1 while empty */
	bool spent;                        /* in shapes.spent */
	/* Of a pass: what stands for the group there, and what may still do so. */
	struct job_class *open;
	int shorter_than;
	int64_t above;
	/* Of making room: see room.c. */
	struct {
		uint64_t change_seq; /* in which there was no room for this job */
		int64_t job_id;
		int64_t retry_ms; /* when time alone may have changed that */
	} failed[ROOM_KINDS];
	uint64_t no_room_round; /* in which it was found hopeless up to a priority */
	int64_t no_room_priority;
};

/* The waiting jobs of one group, of one priority and expected length. */
struct job_class {
	struct job_group *group;
	struct tenant *tenant; /* of the group, as is the shape */
	struct shape *shape;
	int64_t priority;
	int length; /* log2 of the expected seconds, rounded up; LENGTH_UNKNOWN */
	struct queue queue;
	struct queue_heads heads; /* of the queue, when a job last came, went or moved on */
	struct job_class *next;   /* that was made for its group */
	int64_t group_index;      /* in its list of classes; -1 while empty */
	int32_t ageing_index, aged_index, due_index; /* in its group's heaps; -1 */
	struct ranktree by_service, by_wait; /* where GPUs are shared in time: those that take
	                                      * turns, by (behind_ms, id) and (queued_ms, id) */
	uint64_t turn_round;                 /* of timeshare.c, in which its first found no room */
	int32_t pass_index;                  /* in a pass's heap; -1 */
	int64_t pass_key, pass_behind, pass_number; /* of its first job there: effective priority,
	                                             * queue_behind, number */
};

/* Puts the job, which is in no class, into the class, or takes it out again:
 * sets its entry and its class, counts it with its tenant, and lists the class
 * with its group, and that with its shape and its tenant, while it has waiting
 * jobs. */
void class_push(struct shapes *shapes, struct job_class *class, struct job *job, int64_t behind_ms,
                int64_t waits, int64_t now_ms);
void class_remove(struct shapes *shapes, struct job_class *class, struct job *job);
/* The first job of the class, which must have one. */
struct job *class_first(struct job_class *class, int64_t now_ms);
/* The class of the group whose first job goes before those of all others; NULL if
 * nobody waits. Moves jobs on that are done with ageing; costs O(1) otherwise. */
struct job_class *group_first(struct job_group *group, int64_t now_ms);
/* Effective priority and number of the class's first job, into pass_key and
 * pass_number. Right for classes of a group of which group_first was asked. */
void class_turn(struct job_class *class, int64_t now_ms);
/* Whether the turn of a comes before that of b, as of class_turn. */
bool class_before(const void *a, const void *b);
/* A job with a deadline is urgent from when there is time left for it to run
 * twice; 0: never. */
int64_t job_urgent_from(const struct job *job);

/* For shape.c, which makes and frees them: what was set by it stays. */
void group_init(struct job_group *group);
void group_free(struct job_group *group);
void class_init(struct job_class *class, struct queue_rule rule);
void class_free(struct job_class *class);
void class_rerule(struct job_class *class, struct queue_rule rule, int64_t now_ms);

#endif
