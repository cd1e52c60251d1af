/* room.h - making room: consolidate, reclaim, preempt, for jobs and slots */
#ifndef CORE_ROOM_ROOM_H
#define CORE_ROOM_ROOM_H

#include "core/place/place.h"
#include "core/queue/job.h"
#include "core/tenant/turn.h"

/* One thing that can be stopped by itself: a task that an elastic job can do
 * without, or all that is left of a job. */
struct victim {
	struct job *job;
	int task;               /* -1: all of them */
	struct amounts amounts; /* what its tenant would have less */
	bool kept, moved;
	bool suspended; /* its GPU memory goes to host memory, in this attempt */
};

/* How far the victims of a tenant have been gone through. */
struct victim_cursor {
	struct amounts taken; /* with the next one; negative, as the order wants it */
	struct victim next;
	int64_t priority, start; /* of the job that `next` is of */
	int32_t spared;          /* tasks of that job that were named already */
	bool begun;
	bool whole;  /* surplus tasks of this priority are all named */
	bool movers; /* the tenant has no more than its share: only what moves counts */
};

/* A victim that has something on a node. */
struct victim_link {
	size_t victim;
	int32_t next; /* link of the same node; -1: none */
};

/* A job that may stop so that another takes its turn, and what is lost by that. */
struct timeshare_turn {
	struct job *job;
	int64_t weight;
	bool stays;
};

/* Attempts to make room count against the budget of a pass, whether or not one succeeds, by
 * what they release and look at: that depends on the state alone, not on what is cached. */
#define ROOM_WORK_PER_UNIT 128

/* A job that waits for others to end, rather than preempting them, does so until they are expected
 * to have ended, and for this long beyond. */
#define ROOM_WAIT_SLACK_MS 30000

/* What a search for victims keeps between calls. */
struct room {
	struct turn turn;
	struct victim_cursor *cursors; /* by place in tenants.all */
	size_t cursor_capacity;
	struct victim *victims; /* those named so far, in the order in which they would go */
	size_t count, capacity;
	struct victim_link *links;
	size_t link_count, link_capacity;
	size_t *chosen; /* of `victims`, for one attempt */
	size_t chosen_count, chosen_capacity;
	struct node **nodes; /* those that victims so far are on */
	size_t node_count, node_capacity;
	struct timeshare_turn *turns; /* on one node; see timeshare.c */
	size_t turn_count, turn_capacity;
	uint64_t round;   /* numbers the calls of room_begin */
	int64_t mark;     /* what the marks of nodes and GPUs are compared with */
	int64_t retry_ms; /* when time alone would name more */
	int64_t work;     /* of the attempts for one applicant: ROOM_WORK_PER_UNIT is a unit */
	int64_t free_gpu; /* thousandths free in all; for consolidating */
	uint64_t sharing; /* numbers the calls of timeshare_run */
	int64_t spared;   /* numbers the searches that spare victims: see struct job */
	bool sparing;     /* in such a search */
	bool entitled;    /* consolidate only for jobs within their tenant's fair share */
};

/* Looks at what may change during one round of making room; false if there is
 * nobody to take from. */
bool room_begin(struct sched *sched, enum room_kind kind);

/* Whether it is worth looking for victims: for any job of the tenant, and for
 * any of the group. Cheap, and true wherever room_make could succeed. */
bool room_may_help_tenant(struct sched *sched, struct tenant *tenant, enum room_kind kind);
bool room_may_help(struct sched *sched, struct job_group *group, enum room_kind kind);
/* Whether it is worth looking for this job, which was not found to have no room. */
bool room_may_help_job(struct sched *sched, const struct job *job, enum room_kind kind);
/* True if preempting could help a model. */
bool room_may_help_slot(const struct sched *sched, const struct model *model);
/* The lowest priority of what runs for the tenant and may be stopped: jobs that
 * would preempt there have to be above it. INT64_MAX: nothing. */
int64_t room_lowest_priority(const struct tenant *tenant);
/* Whether the same, or something that is no harder, was found in this round to
 * have no room; searches that pause (see backoff.h) count when they are noted. */
bool room_known_full(const struct sched *sched, struct job_group *group, int64_t priority,
                     enum room_kind kind);
/* Notes those of the tenant that pause. What pauses leaves alone what is no easier,
 * so all are noted before others are looked at. */
void room_note_pauses(const struct sched *sched, struct tenant *tenant, enum room_kind kind);

/* Evicts idle slots for the applicant (ROOM_EVICT; see evict.h), or looks for the
 * victims that cost least: by tenant in the reverse order of fair
 * share, lowest priority first, then the least time since start or checkpoint;
 * node by node, so that only what makes room in one place goes; and lets
 * everyone stay who turns out not to be in the way, or move where that is
 * allowed. If all victims are expected to end so soon that waiting costs less
 * than what they would lose, a job gets a promise instead. Commits and writes
 * the decisions; false, and nothing changed, if there is no way. For a job only
 * where room_may_help_job(); for a slot by evicting and by preempting alone. */
bool room_make(struct sched *sched, struct search *search, enum room_kind kind);

/* Where GPUs are shared in time: lets jobs that wait take the places of others of
 * their tenant and priority, where the one who waits clearly takes less GPU time;
 * see timeshare.c. */
void timeshare_run(struct sched *sched);
/* Where GPUs are shared in time: true while the job has to wait for GPUs that come free, before
 * others are stopped (ROOM_SHARE) or moved (ROOM_CONSOLIDATE) for it. */
bool timeshare_is_early(const struct sched *sched, const struct job *job, enum room_kind kind);

/* Whether the job ends by itself, with this chance at the least (of CHANCE_ONE), before another
 * could run in its place: within the grace period and the time of a start. False where little
 * is known. */
bool room_ends_soon(struct sched *sched, struct job *job, int64_t chance);

/* One attempt, in a plan that stays open if it succeeds: the chosen victims go,
 * the applicant comes, and who need not go after all stays. */
bool room_attempt(struct sched *sched, struct search *search, enum room_kind kind);
/* Ends an attempt that succeeded: commits the plan, and writes the decisions. */
void room_commit(struct sched *sched, struct search *search, enum room_kind kind);
/* Whether one task would fit on the node if all that is marked there went. Only
 * then is it worth an attempt. */
bool room_would_fit(struct sched *sched, const struct search *search, struct node *node);
/* Whether it was tried for the job in this round, or in this state of the pass, or
 * for something that is no harder; see room_failed.c. */
bool room_failed_before(const struct sched *sched, const struct job *job, enum room_kind kind);
/* A search for the job, begun in this state, found nothing. Long ones pause, short
 * ones are not repeated before something changes. */
void room_note_failure(struct sched *sched, const struct job *job, enum room_kind kind,
                       uint64_t state);
/* Looks for victims that make an attempt succeed; see clear.c. */
bool room_find(struct sched *sched, struct search *search, enum room_kind kind);

/* Names victims one after the other; see victims.c. NULL when there are no more. */
void victims_begin(struct sched *sched, const struct search *taker, enum room_kind kind);
struct victim *victims_next(struct sched *sched, const struct search *taker, enum room_kind kind);
/* Whether the job may be stopped, or moved, for one of `kind`. */
bool victim_allowed(struct sched *sched, const struct job *victim, const struct search *taker,
                    enum room_kind kind);
bool victim_may_move(const struct sched *sched, const struct job *victim);
/* Whether it may, and its tenant has something to give, or it would only move. */
bool victim_gives(struct sched *sched, const struct job *victim, const struct search *taker,
                  enum room_kind kind);
/* The victim that a reservation of an allowed job belongs to: the task alone, if
 * its job can do without it. */
struct victim victim_of(const struct reservation *reservation);
/* The tenants on the way to `taker` and to `giver` where these part. */
struct parting {
	const struct tenant *taker, *giver;
};
struct parting tenants_part(const struct tenant *taker, const struct tenant *giver);

void room_free(struct room *room);

#endif
