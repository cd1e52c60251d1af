/* index.h - what is free where, updated as the ledger changes */
#ifndef CORE_CLUSTER_INDEX_H
#define CORE_CLUSTER_INDEX_H

#include "base/bitset.h"
#include "core/cluster/change_log.h"
#include "core/cluster/cluster.h"
#include "core/cluster/node_summary.h"

/* For each question that a search asks, the set of nodes (by rank) that may
 * answer it: nodes with at least k GPUs that could be given whole, and nodes
 * whose best shared GPU has at least so much memory, in MiB and in thousandths,
 * by levels. Sets are supersets within one level: a search still checks the
 * node. `free_version` changes whenever something may fit that did not. */
#define INDEX_WHOLE_LEVELS 17 /* 0 .. 16 and more */
#define INDEX_MIB_LEVELS 96   /* eight to a doubling, from 64 MiB */
#define INDEX_CPU_LEVELS 32   /* one to a doubling, from one thousandth of a core */
#define INDEX_MILLI_LEVELS 41 /* every 25 thousandths */

struct part;

struct index {
	bool built;         /* it is right; false after nodes, GPUs, models or labels changed */
	struct bitset open; /* nodes that take anything new */
	struct bitset releasing; /* of those, with memory coming back */
	/* Of the releasing ones, by what they have once that is back. */
	struct bitset later_whole[INDEX_WHOLE_LEVELS]; /* [0] is not kept */
	struct bitset later_mib[INDEX_MIB_LEVELS], later_milli[INDEX_MILLI_LEVELS];
	struct bitset whole[INDEX_WHOLE_LEVELS]; /* at least that many; [0] is not kept */
	struct bitset mib[INDEX_MIB_LEVELS];     /* best shared GPU at that level or above */
	struct bitset milli[INDEX_MILLI_LEVELS];
	struct bitset cpu[INDEX_CPU_LEVELS];     /* free CPU at that level or above; [0]: any */
	int64_t whole_count[INDEX_WHOLE_LEVELS]; /* members of whole[] */
	int64_t releasing_count;
	struct bitset promised;         /* nodes with GPUs that a promise counts on */
	struct node_summary *summaries; /* by rank */
	int32_t *gpu_types; /* by rank: the type of all GPUs of the node; -1: several, or none */
	struct change_log change_log; /* for who keeps something about every node */
	uint64_t free_version;
	uint64_t last_version; /* the last one given out; never used again */
	uint64_t touches;      /* how often anything at all was said to have changed */
};

/* Level of an amount: all nodes with that much are in the set of that level. */
int index_mib_level(int64_t mib);
int index_milli_level(int64_t milli);
int index_cpu_level(int64_t cpu_milli);

/* Rebuilds it from the cluster and its ledger. Ranks of nodes must be right. */
void index_build(struct index *index, struct cluster *cluster, const struct config_record *config);
/* To be called after any change of a node's ledger or facts: gives it a new version if the
 * policy may now choose differently. */
void index_touch(struct index *index, struct node *node, const struct config_record *config);
/* Like index_touch(), for a change of the parts' GPUs only: most changes are of one GPU among
 * eight. */
void index_touch_parts(struct index *index, struct node *node, const struct part *parts, int count,
                       const struct config_record *config);
/* Something may fit that did not, for a reason that is not in the index. */
void index_freed(struct index *index);
/* Like index_touch(), when a plan is undone: restores the old versions. */
void index_restore(struct index *index, struct node *node, const struct config_record *config,
                   uint64_t version, uint64_t free_version);
/* After the node's `promised` changed. */
void index_promised(struct index *index, const struct node *node);
void index_free(struct index *index);

/* Panics unless it equals a fresh one. */
void index_check(const struct index *index, const struct cluster *cluster,
                 const struct config_record *config);

#endif
