/* index.c - what is free where, updated as the ledger changes */
#include "core/cluster/index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/cluster/reservation.h"

/* What speaks for a GPU. Whether a task fits grows with each of these, so one
 * that appears is a sign that something may fit that did not. */
enum offer {
	OFFER_OPEN = 1 << 0,
	OFFER_CLEAN = 1 << 1, /* no more foreign memory than a GPU given whole may have */
	OFFER_EMPTY_NOW = 1 << 2,
	OFFER_EMPTY_LATER = 1 << 3,
	OFFER_SHARED_NOW = 1 << 4,
	OFFER_SHARED_LATER = 1 << 5,
};
#define OFFER_WHOLE (OFFER_CLEAN | OFFER_EMPTY_NOW)

#define MIB_FIRST_BIT 6 /* levels begin at 64 MiB */
#define MILLI_STEP 25

int index_mib_level(int64_t mib)
{
	if (mib < INT64_C(1) << MIB_FIRST_BIT)
		return 0;
	int top = 63 - __builtin_clzll((uint64_t)mib);
	int eighth = (int)(mib >> (top - 3)) & 7;
	int level = (top - MIB_FIRST_BIT) * 8 + eighth;
	return level < INDEX_MIB_LEVELS ? level : INDEX_MIB_LEVELS - 1;
}

int index_milli_level(int64_t milli)
{
	return (int)max64(0, min64(milli / MILLI_STEP, INDEX_MILLI_LEVELS - 1));
}

int index_cpu_level(int64_t cpu_milli)
{
	if (cpu_milli <= 0)
		return 0;
	int level = 64 - __builtin_clzll((uint64_t)cpu_milli);
	return level < INDEX_CPU_LEVELS ? level : INDEX_CPU_LEVELS - 1;
}

/* A fraction takes floor(thousandths x usable / 1000) MiB, so the largest one
 * that fits is floor((1000 x free + 999) / usable). */
static int16_t milli_of(int64_t free_mib, int64_t usable_mib)
{
	if (free_mib >= usable_mib)
		return WHOLE_GPU;
	return (int16_t)((free_mib * WHOLE_GPU + WHOLE_GPU - 1) / usable_mib);
}

static int16_t takes_milli(const struct gpu_offer *has)
{
	int64_t free_mib = min64(has->free_now_mib, has->free_later_mib);

	if ((has->offers & OFFER_SHARED_NOW) == 0 || free_mib < 0)
		return 0;
	return milli_of(free_mib, has->usable_mib);
}

static inline struct gpu_offer summarise_gpu(const struct gpu *gpu,
                                             const struct config_record *config)
{
	struct gpu_offer has = { 0 };

	if (gpu_is_open(gpu, config)) {
		has.free_now_mib = gpu_free_now(gpu);
		has.free_later_mib = gpu_free_later(gpu);
		has.usable_mib = gpu_usable_mib(gpu);
		has.offers = OFFER_OPEN;
		has.offers |= gpu->r.foreign_mib <= config->foreign_tolerance_mib ? OFFER_CLEAN : 0;
		has.offers |= gpu_empty_now(gpu) ? OFFER_EMPTY_NOW : 0;
		has.offers |= gpu_empty_later(gpu) ? OFFER_EMPTY_LATER : 0;
		has.offers |= gpu_shareable_now(gpu) ? OFFER_SHARED_NOW : 0;
		has.offers |= gpu_shareable_later(gpu) ? OFFER_SHARED_LATER : 0;
		has.sharers = gpu->node->mps ? compute_digest(gpu, config->sharing_mixed) : 0;
	}
	return has;
}

static bool offers_the_same(const struct gpu_offer *a, const struct gpu_offer *b)
{
	return a->free_now_mib == b->free_now_mib && a->free_later_mib == b->free_later_mib &&
	       a->usable_mib == b->usable_mib && a->offers == b->offers && a->sharers == b->sharers;
}

/* What follows from the rest of the summary: taken from `known`, another of the
 * GPU, where that is the same. */
static void conclude(struct gpu_offer *has, const struct gpu *gpu, const struct gpu_offer *known)
{
	if (has->offers != 0 && offers_the_same(has, known)) {
		*has = *known;
		return;
	}
	has->whole = (has->offers & OFFER_WHOLE) == OFFER_WHOLE && has->free_now_mib > 0;
	has->takes_milli = takes_milli(has);
	has->free_milli = (int16_t)gpu_free_milli(gpu);
}

/* Usable memory that changes counts either way: less of it makes fractions smaller. */
static bool gpu_gained(const struct gpu_offer *before, const struct gpu_offer *after)
{
	return after->offers != 0 && ((after->offers & ~before->offers) != 0 ||
	                              after->free_now_mib > before->free_now_mib ||
	                              after->free_later_mib > before->free_later_mib ||
	                              after->usable_mib != before->usable_mib);
}

/* What a newcomer finds on a GPU: what is coming back, and who has it, is not
 * among that. */
static bool finds_the_same(const struct gpu_offer *a, const struct gpu_offer *b)
{
	const uint32_t later = OFFER_EMPTY_LATER | OFFER_SHARED_LATER;

	return min64(a->free_now_mib, a->free_later_mib) ==
	           min64(b->free_now_mib, b->free_later_mib) &&
	       a->usable_mib == b->usable_mib && (a->offers | later) == (b->offers | later) &&
	       a->free_milli == b->free_milli && a->sharers == b->sharers;
}

static bool node_finds_the_same(const struct node_offer *a, const struct node_offer *b)
{
	return a->open == b->open && a->cpu_now == b->cpu_now &&
	       min64(a->cpu_now, a->cpu_later) == min64(b->cpu_now, b->cpu_later) &&
	       min64(a->host_now, a->host_later) == min64(b->host_now, b->host_later);
}

static bool node_gained(const struct node_offer *before, const struct node_offer *after)
{
	return after->open &&
	       (!before->open || before->redescribed || after->cpu_now > before->cpu_now ||
	        after->cpu_later > before->cpu_later || after->host_now > before->host_now ||
	        after->host_later > before->host_later);
}

static struct node_offer tally_begin(const struct node *node)
{

	if (!node_is_open(node))
		return (struct node_offer){ 0 };
	return (struct node_offer){
		.open = true,
		.releasing = node->cpu.releasing > 0 || node->host.releasing > 0,
		.cpu_now = host_free_now(&node->cpu, node_cpu_milli(node)),
		.cpu_later = host_free_later(&node->cpu, node_cpu_milli(node)),
		.host_now = host_free_now(&node->host, node_host_bytes(node)),
		.host_later = host_free_later(&node->host, node_host_bytes(node)),
	};
}

static void tally_gpu(struct node_offer *sum, const struct gpu *gpu, const struct gpu_offer *has)
{
	int64_t free_mib = min64(has->free_now_mib, has->free_later_mib);

	if (gpu->books.releasing_owners > 0)
		sum->releasing = sum->open;
	sum->whole += has->whole;
	if ((has->offers & OFFER_SHARED_NOW) == 0 || free_mib < 0 || has->usable_mib == 0)
		return;
	sum->best_mib = max64(sum->best_mib, free_mib);
	if (has->takes_milli > sum->best_milli)
		sum->best_milli = has->takes_milli;
}

/* What a releasing node has later: for claims, of which most find nothing there. */
static void tally_later(struct node_offer *sum, const struct node *node)
{
	const uint32_t whole = OFFER_CLEAN | OFFER_EMPTY_LATER;
	int64_t best_mib = 0, best_milli = 0;

	for (int i = 0; i < node->gpu_count; i++) {
		const struct gpu_offer *has = &node->gpus[i]->offer;
		int64_t free_mib = has->free_later_mib;
		sum->later_whole += (has->offers & whole) == whole;
		if ((has->offers & OFFER_SHARED_LATER) == 0 || free_mib <= 0)
			continue;
		best_mib = max64(best_mib, free_mib);
		best_milli = max64(best_milli, milli_of(free_mib, has->usable_mib));
	}
	sum->later_whole = (int32_t)min64(sum->later_whole, INDEX_WHOLE_LEVELS - 1);
	sum->later_mib = best_mib > 0 ? index_mib_level(best_mib) : -1;
	sum->later_milli = best_milli > 0 ? index_milli_level(best_milli) : -1;
}

static void tally_end(struct node_offer *sum, const struct node *node)
{
	sum->later_mib = sum->later_milli = -1;
	if (sum->releasing)
		tally_later(sum, node);
	sum->whole_level = (int32_t)min64(sum->whole, INDEX_WHOLE_LEVELS - 1);
	sum->mib_level = sum->best_mib > 0 ? index_mib_level(sum->best_mib) : -1;
	sum->milli_level = sum->best_milli > 0 ? index_milli_level(sum->best_milli) : -1;
	sum->cpu_level = sum->open ? index_cpu_level(min64(sum->cpu_now, sum->cpu_later)) : -1;
}

/* Sets are nested, so a node that moves from one level to another joins or
 * leaves those in between. */
static void index_move(struct bitset *sets, size_t rank, int from, int to)
{
	for (int level = from + 1; level <= to; level++)
		bitset_add(&sets[level], rank);
	for (int level = to + 1; level <= from; level++)
		bitset_drop(&sets[level], rank);
}

static void move_whole(struct index *index, size_t rank, int from, int to)
{
	index_move(index->whole, rank, from, to);
	for (int level = from + 1; level <= to; level++)
		index->whole_count[level]++;
	for (int level = to + 1; level <= from; level++)
		index->whole_count[level]--;
}

/* Puts a node where `after` says, from where `before` says that it is. */
static void place(struct index *index, size_t rank, const struct node_offer *before,
                  const struct node_offer *after)
{
	INVARIANT(rank / 64 < index->open.words);
	if (before->open != after->open)
		bitset_assign(&index->open, rank, after->open);
	if (before->releasing != after->releasing) {
		bitset_assign(&index->releasing, rank, after->releasing);
		index->releasing_count += after->releasing ? 1 : -1;
	}
	move_whole(index, rank, before->whole_level, after->whole_level);
	index_move(index->mib, rank, before->mib_level, after->mib_level);
	index_move(index->milli, rank, before->milli_level, after->milli_level);
	index_move(index->cpu, rank, before->cpu_level, after->cpu_level);
	index_move(index->later_whole, rank, before->later_whole, after->later_whole);
	index_move(index->later_mib, rank, before->later_mib, after->later_mib);
	index_move(index->later_milli, rank, before->later_milli, after->later_milli);
}

enum change {
	CHANGE_SEEN = 1 << 0, /* a newcomer finds something else than before */
	CHANGE_GAIN = 1 << 1, /* something may fit there that did not */
};

/* Updates a GPU; returns what has changed. */
static unsigned look_at_gpu(struct gpu *gpu, const struct config_record *config)
{
	struct gpu_offer after = summarise_gpu(gpu, config);

	conclude(&after, gpu, &gpu->offer);
	unsigned change = (finds_the_same(&gpu->offer, &after) ? 0 : CHANGE_SEEN) |
	                  (gpu_gained(&gpu->offer, &after) ? CHANGE_GAIN : 0);
	gpu->offer = after;
	return change;
}

/* Updates a node whose GPUs have changed as `change` says; returns what has changed. */
static unsigned look_at_node(struct index *index, struct node *node, unsigned change)
{
	struct node_offer sum = tally_begin(node);

	for (int i = 0; i < node->gpu_count; i++)
		tally_gpu(&sum, node->gpus[i], &node->gpus[i]->offer);
	tally_end(&sum, node);
	if (node_gained(&node->offer, &sum))
		change |= CHANGE_GAIN;
	if (node->offer.redescribed || !node_finds_the_same(&node->offer, &sum))
		change |= CHANGE_SEEN;
	place(index, (size_t)node->rank, &node->offer, &sum);
	node->offer = sum;
	if ((change & CHANGE_SEEN) != 0) {
		const struct node_summary *summary =
		    node_summary_make(&index->summaries[node->rank], node);
		index->gpu_types[node->rank] = summary->uniform ? summary->gpu_type : -1;
	}
	return change;
}

/* Updates all GPUs of a node, and the node. */
static unsigned index_look(struct index *index, struct node *node,
                           const struct config_record *config)
{
	unsigned change = 0;

	for (int i = 0; i < node->gpu_count; i++)
		change |= look_at_gpu(node->gpus[i], config);
	return look_at_node(index, node, change);
}

static void set_version(struct index *index, struct node *node, uint64_t version)
{
	node->version = version;
	change_log_note(&index->change_log, (size_t)node->rank);
}

static void each_set(struct index *index, void (*apply)(struct bitset *set, size_t size),
                     size_t size)
{
	apply(&index->open, size);
	apply(&index->releasing, size);
	apply(&index->promised, size);
	for (int level = 1; level < INDEX_WHOLE_LEVELS; level++) {
		apply(&index->whole[level], size);
		apply(&index->later_whole[level], size);
	}
	for (int level = 0; level < INDEX_MIB_LEVELS; level++) {
		apply(&index->mib[level], size);
		apply(&index->later_mib[level], size);
	}
	for (int level = 0; level < INDEX_MILLI_LEVELS; level++) {
		apply(&index->milli[level], size);
		apply(&index->later_milli[level], size);
	}
	for (int level = 0; level < INDEX_CPU_LEVELS; level++)
		apply(&index->cpu[level], size);
}

static void clear_set(struct bitset *set, size_t size)
{
	bitset_grow(set, size);
	if (set->words > 0)
		memset(set->word, 0, set->words * sizeof(*set->word));
}

static void free_set(struct bitset *set, size_t size)
{
	(void)size;
	bitset_free(set);
}

/* In no set, and with nothing to compare to. */
static const struct node_offer nowhere = {
	.mib_level = -1,
	.milli_level = -1,
	.cpu_level = -1,
	.later_mib = -1,
	.later_milli = -1,
	.redescribed = true,
};

void index_build(struct index *index, struct cluster *cluster, const struct config_record *config)
{
	INVARIANT(cluster->ordered);
	each_set(index, clear_set, cluster->node_count);
	memset(index->whole_count, 0, sizeof(index->whole_count));
	index->releasing_count = 0;
	change_log_begin(&index->change_log, cluster->node_count);
	index->touches++;
	size_t views_size = cluster->node_count * sizeof(*index->summaries);
	free(index->summaries);
	index->summaries = memory_pages(&views_size);
	free(index->gpu_types);
	index->gpu_types = memory_zero(cluster->node_count, sizeof(*index->gpu_types));
	for (size_t i = 0; i < cluster->node_count; i++) {
		struct node *node = cluster->by_rank[i];
		node->offer = nowhere;
		index_look(index, node, config);
		set_version(index, node, ++index->last_version);
		index_promised(index, node);
	}
	index->free_version = ++index->last_version;
}

void index_freed(struct index *index)
{
	index->free_version = ++index->last_version;
}

static void index_note(struct index *index, struct node *node, const struct config_record *config,
                       unsigned change)
{
	index->touches++;
	if ((change & CHANGE_SEEN) != 0 || !policy_row(config->policy)->cache.by_view)
		set_version(index, node, ++index->last_version);
	if ((change & CHANGE_GAIN) != 0)
		index->free_version = ++index->last_version;
}

void index_touch(struct index *index, struct node *node, const struct config_record *config)
{
	index_note(index, node, config, index_look(index, node, config));
}

void index_touch_parts(struct index *index, struct node *node, const struct part *parts, int count,
                       const struct config_record *config)
{
	unsigned change = 0;

	for (int i = 0; i < count; i++)
		change |= look_at_gpu(parts[i].gpu, config);
	index_note(index, node, config, look_at_node(index, node, change));
}

void index_restore(struct index *index, struct node *node, const struct config_record *config,
                   uint64_t version, uint64_t free_version)
{
	INVARIANT(version <= index->last_version && free_version <= index->last_version);
	index_look(index, node, config);
	index->touches++;
	set_version(index, node, version);
	index->free_version = free_version;
}

void index_promised(struct index *index, const struct node *node)
{
	bitset_assign(&index->promised, (size_t)node->rank, node_is_spoken_for(node));
}

void index_free(struct index *index)
{
	each_set(index, free_set, 0);
	free(index->summaries);
	free(index->gpu_types);
	change_log_free(&index->change_log);
	*index = (struct index){ 0 };
}

static bool gpu_offer_equal(const struct gpu_offer *a, const struct gpu_offer *b)
{
	return offers_the_same(a, b) && a->whole == b->whole && a->takes_milli == b->takes_milli &&
	       a->free_milli == b->free_milli;
}

static bool node_offer_equal(const struct node_offer *a, const struct node_offer *b)
{
	return a->best_mib == b->best_mib && a->best_milli == b->best_milli &&
	       a->whole == b->whole && a->whole_level == b->whole_level &&
	       a->mib_level == b->mib_level && a->milli_level == b->milli_level &&
	       a->later_whole == b->later_whole && a->later_mib == b->later_mib &&
	       a->later_milli == b->later_milli && a->cpu_level == b->cpu_level &&
	       a->open == b->open && a->releasing == b->releasing && a->cpu_now == b->cpu_now &&
	       a->cpu_later == b->cpu_later && a->host_now == b->host_now &&
	       a->host_later == b->host_later;
}

/* The summary of a node as it is now; panics if what is kept differs. */
static struct node_offer index_check_node(const struct index *index, const struct node *node,
                                          const struct config_record *config)
{
	static const struct gpu_offer unknown;
	struct node_offer sum = tally_begin(node);
	struct node_summary summary;

	for (int i = 0; i < node->gpu_count; i++) {
		const struct gpu *gpu = node->gpus[i];
		struct gpu_offer has = summarise_gpu(gpu, config);
		conclude(&has, gpu, &unknown);
		if (!gpu_offer_equal(&gpu->offer, &has))
			panic("index: GPU %s of node %s is not as it was when last looked at",
			      gpu->r.uuid, node->r.name);
		tally_gpu(&sum, gpu, &has);
	}
	tally_end(&sum, node);
	node_summary_make(&summary, node);
	if (!node_offer_equal(&node->offer, &sum) ||
	    !node_summary_equal(&index->summaries[node->rank], &summary) ||
	    index->gpu_types[node->rank] != (summary.uniform ? summary.gpu_type : -1))
		panic("index: node %s is not as it was when last looked at", node->r.name);
	return sum;
}

/* The ranks of word `at`; words that a set does not have are empty. */
static uint64_t word_of_set(const struct bitset *set, size_t at)
{
	return at < set->words ? set->word[at] : 0;
}

static void check_set(const char *name, int level, const struct bitset *set,
                      const struct bitset *fresh, const struct cluster *cluster)
{
	size_t words = set->words > fresh->words ? set->words : fresh->words;

	for (size_t at = 0; at < words; at++) {
		uint64_t differ = word_of_set(set, at) ^ word_of_set(fresh, at);
		if (differ == 0)
			continue;
		size_t rank = bitset_take(&differ, at);
		panic("index: node %s is %s in the set %s[%d]",
		      rank < cluster->node_count ? cluster->by_rank[rank]->r.name : "(none)",
		      bitset_has(set, rank) ? "wrongly" : "not", name, level);
	}
}

static void check_sets(const struct index *index, const struct index *fresh,
                       const struct cluster *cluster)
{
	check_set("open", 0, &index->open, &fresh->open, cluster);
	check_set("releasing", 0, &index->releasing, &fresh->releasing, cluster);
	check_set("promised", 0, &index->promised, &fresh->promised, cluster);
	for (int level = 1; level < INDEX_WHOLE_LEVELS; level++) {
		check_set("whole", level, &index->whole[level], &fresh->whole[level], cluster);
		check_set("later_whole", level, &index->later_whole[level],
		          &fresh->later_whole[level], cluster);
	}
	for (int level = 0; level < INDEX_MIB_LEVELS; level++) {
		check_set("mib", level, &index->mib[level], &fresh->mib[level], cluster);
		check_set("later_mib", level, &index->later_mib[level], &fresh->later_mib[level],
		          cluster);
	}
	for (int level = 0; level < INDEX_MILLI_LEVELS; level++) {
		check_set("milli", level, &index->milli[level], &fresh->milli[level], cluster);
		check_set("later_milli", level, &index->later_milli[level],
		          &fresh->later_milli[level], cluster);
	}
	for (int level = 0; level < INDEX_CPU_LEVELS; level++)
		check_set("cpu", level, &index->cpu[level], &fresh->cpu[level], cluster);
}

static void check_counts(const struct index *index, const struct index *fresh)
{
	for (int level = 0; level < INDEX_WHOLE_LEVELS; level++) {
		if (index->whole_count[level] != fresh->whole_count[level])
			panic("index: %" PRId64 " nodes are counted in whole[%d], %" PRId64
			      " are there",
			      index->whole_count[level], level, fresh->whole_count[level]);
	}
	if (index->releasing_count != fresh->releasing_count)
		panic("index: %" PRId64 " nodes are counted as releasing, %" PRId64 " are",
		      index->releasing_count, fresh->releasing_count);
}

void index_check(const struct index *index, const struct cluster *cluster,
                 const struct config_record *config)
{
	struct index fresh = { 0 };

	INVARIANT(cluster->ordered && index->free_version <= index->last_version);
	each_set(&fresh, clear_set, cluster->node_count);
	for (size_t i = 0; i < cluster->node_count; i++) {
		const struct node *node = cluster->by_rank[i];
		INVARIANT(node->rank == (int)i && node->version <= index->last_version);
		struct node_offer sum = index_check_node(index, node, config);
		place(&fresh, i, &nowhere, &sum);
		index_promised(&fresh, node);
	}
	check_sets(index, &fresh, cluster);
	check_counts(index, &fresh);
	index_free(&fresh);
}
