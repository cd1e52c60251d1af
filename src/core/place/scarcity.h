/* scarcity.h - what a free GPU is worth more for those who insist on its model */
#ifndef CORE_PLACE_SCARCITY_H
#define CORE_PLACE_SCARCITY_H

#include "core/cluster/cluster.h"
#include "core/place/type_demand.h"

/* Of what arrives until all that is free is taken, a part insists on some model. How
 * much of the free GPUs of the model that part will need is how scarce it is: 0 to 2,
 * more counts as 2. Who may use several models is taken to go where it is least scarce.
 * A free GPU is worth more by that: twice as much where those who insist on its model
 * will need all there are, three times where they would need twice that. In steps of
 * one SCARCITY_UNITth, which are few, so that scores that are kept stay right for a
 * while. */
#define SCARCITY_UNIT 8
#define SCARCITY_MAX (2 * SCARCITY_UNIT)

struct scarcity_set {
	int64_t milli; /* that those who insist on it will ask for */
	int first, count;
};

struct scarcity {
	size_t type_count, type_capacity;
	struct scarcity_type {
		int64_t free_milli;   /* on nodes that take something new */
		int64_t needed_milli; /* of that, by those who insist; may be more */
		int32_t scarcity;
	} * types;           /* by number of the model */
	uint64_t counted;    /* changes of the index that free_milli knows of; 0: none */
	uint64_t insisted;   /* the version of what is insisted on that the sets are of */
	int64_t asked_milli; /* and of how much that is a part */
	struct scarcity_set sets[TYPE_DEMAND_SETS];
	size_t set_count;
	int *members; /* models of the sets */
	size_t member_count, member_capacity;
	int64_t *poured; /* of the sets, by member */
	size_t poured_capacity;
	uint64_t version; /* another number when any scarcity is another */
};

struct placement;

/* Updates it from the ledger and the mix. Other policies, a mix that is given
 * from outside and one in which nobody insists on anything have no scarcities. The index
 * must be right. */
void scarcity_refresh(struct placement *placement);
/* That of a model, by its number in the cluster, in SCARCITY_UNIT. */
static inline int32_t scarcity_of(const struct scarcity *scarcity, int model)
{
	bool known = model >= 0 && (size_t)model < scarcity->type_count;

	return known ? scarcity->types[model].scarcity : 0;
}
void scarcity_free(struct scarcity *scarcity);

/* Panics unless it equals a fresh one, after the changes it knows of. */
void scarcity_check(const struct placement *placement);

#endif
