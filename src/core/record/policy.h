/* policy.h - the placement policies: one table, from which everything else follows */
#ifndef CORE_RECORD_POLICY_H
#define CORE_RECORD_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct placement;
struct search;
struct choice;
struct shape;
struct node_summary;

/* A row is a policy: symbol, name, alias ("" without one), the function that scores a
 * choice, how scores are cached, what else it does, and one line of help that completes
 * 'Tasks are placed ...'. The enum, the names in records, the setting scheduler.policy,
 * gpu-sim pack and the documentation are made from these rows. Records hold the number
 * of the row: append rows, never reorder them. */
/* clang-format off */
#define PLACEMENT_POLICIES(P)                                                                      \
	P(FRAGMENT, "fragment", "", place_fragment, CACHED_BY_VIEW(fragment_sees, fragment_score), \
	  0, "so that what is left suits what usually comes next")                                 \
	P(PACK, "pack", "binpack", place_pack, CACHED_BY_NODE, 0,                                  \
	  "on the fullest GPU or node that fits")                                                  \
	P(SPREAD, "spread", "", place_spread, CACHED_BY_NODE, POLICY_SPREADS,                      \
	  "on the emptiest GPU or node")                                                           \
	P(WORTH, "worth", "", place_worth, CACHED_BY_VIEW(worth_sees, worth_score),                \
	  POLICY_SCARCITY, "so that most of the cluster is used in the end")
/* clang-format on */

#define POLICY_SYMBOL(symbol, ...) POLICY_##symbol,
enum policy { PLACEMENT_POLICIES(POLICY_SYMBOL) POLICY_COUNT };

/* The policy of a scheduler that is told nothing else: the one that packs best. */
#define POLICY_DEFAULT POLICY_WORTH
#define POLICY_DEFAULT_NAME "worth"

/* Scores a choice; the search keeps the lowest, by the name of the node among equals. */
typedef int64_t policy_score(struct placement *placement, const struct search *search,
                             struct choice *choice);
#define POLICY_DECLARE(symbol, name, alias, score, ...) policy_score score;
PLACEMENT_POLICIES(POLICY_DECLARE)

/* How scores are cached. By node: until anything on the node changes. By summary: until
 * its summary does, as the score depends on nothing else. Where `sees` says that the summary
 * alone decides for a shape, `score` gives the score of the best choice on a node whose
 * summary is plain and uniform, without looking at its GPUs; TOURNAMENT_NONE if none fits.
 * It leaves promises and labels aside. */
typedef bool policy_sees(struct placement *placement, const struct shape *shape);
typedef int64_t policy_summary_score(struct placement *placement, const struct shape *shape,
                                     struct node_summary *summary);
struct policy_cache {
	bool by_view;
	policy_sees *sees;
	policy_summary_score *score;
};
#define CACHED_BY_NODE                                                                             \
	{                                                                                          \
		false, NULL, NULL                                                                  \
	}
#define CACHED_BY_VIEW(sees, score)                                                                \
	{                                                                                          \
		true, sees, score                                                                  \
	}
policy_sees fragment_sees, worth_sees;
policy_summary_score fragment_score, worth_score;

enum policy_trait {
	POLICY_SPREADS = 1 << 0,  /* parts of a task go to the emptiest GPUs of its node */
	POLICY_SCARCITY = 1 << 1, /* free GPUs have a premium for scarce models */
};

struct placement_policy {
	const char *name, *alias, *help;
	policy_score *score;
	struct policy_cache cache;
	unsigned traits; /* of enum policy_trait */
};

/* The row of a policy, which must be one of the enum's. */
extern const struct placement_policy placement_policies[POLICY_COUNT];
static inline const struct placement_policy *policy_row(int64_t policy)
{
	INVARIANT(policy >= 0 && policy < POLICY_COUNT);
	return &placement_policies[policy];
}
static inline bool policy_has(int64_t policy, enum policy_trait trait)
{
	return (policy_row(policy)->traits & (unsigned)trait) != 0;
}
/* The policy of that name or alias; -1: none. */
int policy_find(const char *name);

#endif
