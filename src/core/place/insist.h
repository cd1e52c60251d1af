/* insist.h - the models of GPUs that jobs insist on, and how much they ask for */
#ifndef CORE_PLACE_INSIST_H
#define CORE_PLACE_INSIST_H

#include "base/buffer.h"
#include "core/record/record.h"

/* Sets of models as jobs write them ('A' or 'A|B'), each with the thousandths of
 * GPUs that jobs asked for which go nowhere else. Where more sets are seen than
 * can be kept, the one with the least gives way. Zero-initialised has none. */
#define INSIST_SETS 32
struct insist {
	size_t count;
	char *models[INSIST_SETS];
	int64_t milli[INSIST_SETS];
	struct buffer text; /* the sets in their order, separated by newlines */
	uint64_t version;   /* changes with what it says */
};

void insist_free(struct insist *insist);
/* A job asks for that much and insists on these models, which are not empty. */
void insist_add(struct insist *insist, const char *models, int64_t milli);
/* Lets all of it count half, and forgets what then counts nothing. */
void insist_halve(struct insist *insist);
/* Goes on from what insist_text and insist_rows said. False, and nothing changed, if
 * these contradict each other, or if any set asks for less than 1 or more than `most`. */
bool insist_load(struct insist *insist, const char *text, struct rows rows, int64_t most,
                 struct error *error);
/* What it says, for a record; until it changes. */
const char *insist_text(const struct insist *insist);
struct rows insist_rows(const struct insist *insist);

#endif
