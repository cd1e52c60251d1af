/* backoff.h - long searches without a result are not repeated at once */
#ifndef CORE_ROOM_BACKOFF_H
#define CORE_ROOM_BACKOFF_H

#include "base/map.h"
#include "base/ranktree.h"
#include "core/record/record.h"

struct sched;

/* Looking for victims can mean looking at everything that runs. A search that
 * found nothing is repeated only after a pause that grows with what it cost and
 * with how many others pause, so that such searches together take a small part
 * of the time. Pauses are records: a core that is loaded keeps to them. */
struct backoffs {
	struct map by_id;        /* struct backoff_record * */
	struct ranktree by_time; /* by (until, id) */
};

/* Forgets the pauses that have ended. */
void backoff_expire(struct sched *sched);
/* Forgets all of them: something changed that may make room. */
void backoff_clear(struct sched *sched);
/* Whether the search `id` pauses, and up to which priority. */
bool backoff_pauses(const struct sched *sched, int64_t id, int64_t *priority);
/* The search `id` examined this many victims without a result, for a job of this priority.
 * True if it pauses now, for jobs up to that priority. */
bool backoff_begin(struct sched *sched, int64_t id, int64_t priority, int64_t victims);
bool backoff_load(struct sched *sched, const struct backoff_record *record, struct error *error);
void backoff_free(struct backoffs *backoffs);

#endif
