/* recorded.h - decisions as a scheduler stored them, to hold others against */
#ifndef SIM_WHATIF_RECORDED_H
#define SIM_WHATIF_RECORDED_H

#include "base/map.h"
#include "base/memory.h"
#include "core/record/effects.h"

/* All decisions of a store, and how those that were made again compare. Old ones are
 * not kept for ever, and the newest may have been made after it was read: only
 * decisions with numbers from the first to the last stored one count. */
struct recorded {
	struct map by_id; /* struct decision_record, in the arena */
	int64_t first_id, last_id;
	int64_t same, different;
	struct buffer difference; /* the first one, for people */
	struct arena arena;
};
/* Reads them from a backup or database. To be freed in any case. */
bool recorded_read(struct recorded *recorded, const char *database, struct error *error);
void recorded_free(struct recorded *recorded);
/* Compares the decisions among the effects of a command. */
void recorded_compare(struct recorded *recorded, const struct effects *effects);

#endif
