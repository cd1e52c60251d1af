/* backoff.c - long searches without a result are not repeated at once */
#include "core/room/backoff.h"

#include <stdlib.h>

#include "core/state.h"

#define WORTH_A_PAUSE 8       /* victims; a cheaper search costs next to nothing */
#define NODES_PER_VICTIM 1024 /* that cost as much to look at */
#define PAUSE_MAX_MS 60000    /* and up to twice that, so that not all end at once */

static void backoff_add(struct backoffs *backoffs, const struct backoff_record *record)
{
	struct backoff_record *backoff = NEW(struct backoff_record);

	*backoff = *record;
	map_put(&backoffs->by_id, backoff->id, backoff);
	ranktree_insert(&backoffs->by_time, backoff->until_ms, backoff->id, backoff);
}

static void end_first(struct sched *sched)
{
	struct rank_entry entry;

	ranktree_pop(&sched->backoffs.by_time, &entry);
	map_remove(&sched->backoffs.by_id, entry.minor);
	effects_delete(sched->effects, RECORD_BACKOFF, entry.minor, 0);
	free(entry.value);
}

void backoff_expire(struct sched *sched)
{
	const struct rank_entry *first;

	INVARIANT(sched->effects != NULL);
	while ((first = ranktree_first(&sched->backoffs.by_time)) &&
	       first->major <= sched_now(sched))
		end_first(sched);
}

void backoff_clear(struct sched *sched)
{
	INVARIANT(sched->effects != NULL);
	while (sched->backoffs.by_time.count > 0)
		end_first(sched);
}

bool backoff_pauses(const struct sched *sched, int64_t id, int64_t *priority)
{
	const struct backoff_record *backoff = map_get(&sched->backoffs.by_id, id);

	if (backoff)
		*priority = backoff->priority;
	return backoff;
}

/* A search for a job of a higher priority had no result either. */
static void replace(struct backoffs *backoffs, const struct backoff_record *record)
{
	struct backoff_record *before = map_get(&backoffs->by_id, record->id);

	if (before) {
		ranktree_remove(&backoffs->by_time, before->until_ms, before->id);
		map_remove(&backoffs->by_id, before->id);
		free(before);
	}
	backoff_add(backoffs, record);
}

bool backoff_begin(struct sched *sched, int64_t id, int64_t priority, int64_t victims)
{
	int64_t others = (int64_t)sched->backoffs.by_id.count + 1;
	int64_t cost = victims + (int64_t)sched->cluster.node_count / NODES_PER_VICTIM;
	int64_t pause_ms = muldiv_down(cost * others, sched->config.search_pause_us, 1000);
	struct backoff_record record = {
		.id = id,
		.until_ms =
		    sched_now(sched) + min64(max64(pause_ms, 1), PAUSE_MAX_MS + id % PAUSE_MAX_MS),
		.victims = victims,
		.priority = priority,
	};

	INVARIANT(victims >= 0 && sched->effects != NULL);
	/* Not by `pause_ms`: whether there is one must not depend on how many others there are. */
	if (victims == 0 || cost < WORTH_A_PAUSE || sched->config.search_pause_us == 0)
		return false;
	replace(&sched->backoffs, &record);
	effects_put(sched->effects, RECORD_BACKOFF, &record);
	return true;
}

bool backoff_load(struct sched *sched, const struct backoff_record *record, struct error *error)
{
	if (map_get(&sched->backoffs.by_id, record->id))
		return error_set(error, ERROR_CORRUPT, "back-off %lld is stored twice",
		                 (long long)record->id);
	backoff_add(&sched->backoffs, record);
	return true;
}

void backoff_free(struct backoffs *backoffs)
{
	struct rank_entry entry;

	while (ranktree_pop(&backoffs->by_time, &entry))
		free(entry.value);
	ranktree_free(&backoffs->by_time);
	map_free(&backoffs->by_id);
}
