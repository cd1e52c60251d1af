/* evict.h - idle slots, as those who need their memory see them */
#ifndef CORE_ROOM_EVICT_H
#define CORE_ROOM_EVICT_H

#include "base/ranktree.h"
#include "core/model/slot.h"
#include "core/place/place.h"

/* A slot that is asleep may be evicted if something of it stays on GPUs. Another slot may be
 * evicted when it is cold (ready, without a request in flight and
 * not used for its time to live, or closed for another model), not pinned, and its model
 * keeps its minimum of replicas without it. Those slots are listed by what loading them again
 * takes and then by when they were last used, so that the first is the one that
 * loses least. `version` changes whenever one is added. */
struct cold_slots {
	struct ranktree by_cost; /* struct slot *, by (cold_key, id) */
	uint64_t version;
	uint64_t search; /* numbers the searches for what to evict */
};

/* Puts the slot into the list or takes it out, as things are. */
void evict_list(struct sched *sched, struct slot *slot);
/* Like evict_list(), for all slots of a model: its minimum or its number of slots changed. */
void evict_list_model(struct sched *sched, struct model *model);
/* Whether the slot may go now, apart from how many of its model may: it is ready, or asleep. */
bool evict_is_there(const struct slot *slot);
/* Whether another slot of its model may go, where that many go already. */
bool evict_leaves_enough(const struct slot *slot, int64_t going);
/* How many slots of the model may go at the same time. Slots on nodes that are
 * drained do not count for its minimum. */
int64_t evict_spare(const struct model *model);

/* What is measured of it has changed. */
void evict_measured(struct slot *slot);

#define EVICTED_MAX 256 /* slots that go for one applicant */

/* One way to make room with idle slots: those that go, and where the applicant
 * fits once they are gone. Of two, the better one evicts fewer slots, then those
 * that are cheaper to load again, then those used longest ago; then it takes fewer
 * GPUs, then linked ones, then what the policy likes. */
struct eviction {
	struct choice choice;
	struct slot *slots[EVICTED_MAX];
	int count;
	int sleeping; /* of them, those that are put to sleep instead of being stopped */
	bool awake;   /* none may be: what would stay of them is in the way */
	int64_t reload_ms, used_ms; /* of the slots: sum, and the latest use */
};

/* Releases the slot in the open plan, or puts it to sleep, and notes it. */
void evict_release(struct sched *sched, struct eviction *eviction, struct slot *slot);
/* After that is committed: tells the nodes, and writes why, for one of the two. */
void evict_stop(struct sched *sched, const struct eviction *eviction, const struct job *job,
                const struct model *model);
/* Rows of enum evicted_column for what goes: how many. */
int evict_rows(const struct sched *sched, const struct eviction *eviction, int64_t *rows);

/* The best way for a slot, or for one task that asks for GPUs of its own in equal
 * parts. False if there is none. Tries things out in a sketch (sketch.h). */
bool evict_find(struct sched *sched, const struct search *search, struct eviction *eviction);
/* Whether evict_find() would find one, which is sooner known. */
bool evict_could(struct sched *sched, const struct search *search);

/* For an applicant that does not fit: the idle slots that lose least go, also those
 * that count for a limit of its tenant, and it gets a claim on their memory. Commits
 * and writes the decision. False, and nothing changed but sched.room.retry_ms (when
 * time alone may help), if there is no way. */
bool evict_make(struct sched *sched, struct search *search);
/* Whether it is worth trying for the next slot of a model. True wherever evict_make()
 * could succeed. */
bool evict_may_help(struct sched *sched, struct search *search);

/* Panics unless the list is that of a recount. */
void evict_check(const struct sched *sched);

#endif
