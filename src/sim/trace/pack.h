/* pack.h - the packing protocol: pods arrive one by one until more was asked for than there is */
#ifndef SIM_TRACE_PACK_H
#define SIM_TRACE_PACK_H

#include "core/record/types.h"
#include "sim/trace/openb.h"

/* The protocol of the 'Beware of Fragmentation' paper: the pods in an order that
 * the seed shuffles, then pods drawn from the list again, until they have asked
 * for PACK_ARRIVED % of the cluster's GPUs. Each is submitted to the real core and
 * decided about at once; nobody leaves, and what does not fit is dropped. */
#define PACK_ARRIVED 130

/* Who chooses the node: the core by its policy, or the simulator, which then gives
 * the pod a label to ask for, and the core chooses GPUs on that node. */
enum pack_choice { CHOICE_OF_CORE, CHOICE_RANDOM, CHOICE_GRADIENT };

struct pack_policy {
	const char *name;
	enum policy policy; /* of the core */
	enum pack_choice choice;
};
#define PACK_POLICIES (POLICY_COUNT + 2)
extern const struct pack_policy pack_policies[];
extern const int pack_policy_count;
/* NULL if there is none of that name or alias. `default` and `ours` are the default of
 * the scheduler. */
const struct pack_policy *pack_policy(const char *name);

/* What became of one seed. `allocated[p]` is the GPU thousandths that were given
 * out when p % of the cluster had been asked for; arrived and rejected pods are
 * counted by kind. */
struct pack_result {
	int64_t allocated[PACK_ARRIVED + 1];
	int64_t *arrived, *rejected;
};
/* Runs one seed. False with a reason if the core refuses a command, which it
 * should not. `result` has lists of `kind_count` zeros. `tick` is called now and
 * then with the % that arrived, unless it is NULL. */
bool pack_run(const struct openb *openb, const struct pack_policy *policy, uint64_t seed,
              struct pack_result *result, void (*tick)(void *context, int percent), void *context,
              struct error *error);

#endif
