/* type_demand.h - the models of GPUs that jobs insist on, and how much they ask for */
#ifndef CORE_PLACE_TYPE_DEMAND_H
#define CORE_PLACE_TYPE_DEMAND_H

#include "base/buffer.h"
#include "core/record/record.h"

/* Sets of models as jobs write them ('A' or 'A|B'), each with the thousandths of
 * GPUs that jobs asked for which go nowhere else. Where more sets are seen than
 * can be kept, the one with the least gives way. Zero-initialised has none. */
#define TYPE_DEMAND_SETS 32
struct type_demand {
	size_t count;
	char *models[TYPE_DEMAND_SETS];
	int64_t milli[TYPE_DEMAND_SETS];
	struct buffer text; /* the sets in their order, separated by newlines */
	uint64_t version;   /* changes with what it says */
};

void type_demand_free(struct type_demand *type_demand);
/* A job asks for that much and insists on these models, which are not empty. */
void type_demand_add(struct type_demand *type_demand, const char *models, int64_t milli);
/* Lets all of it count half, and forgets what then counts nothing. */
void type_demand_halve(struct type_demand *type_demand);
/* Resumes from what type_demand_text and type_demand_rows said. False, and nothing changed, if
 * these contradict each other, or if any set asks for less than 1 or more than `most`. */
bool type_demand_load(struct type_demand *type_demand, const char *text, struct rows rows,
                      int64_t most, struct error *error);
/* What it says, for a record; until it changes. */
const char *type_demand_text(const struct type_demand *type_demand);
struct rows type_demand_rows(const struct type_demand *type_demand);

#endif
