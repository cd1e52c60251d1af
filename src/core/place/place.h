/* place.h - finding nodes and GPUs for tasks and slots */
#ifndef CORE_PLACE_PLACE_H
#define CORE_PLACE_PLACE_H

#include "base/tournament.h"
#include "core/cluster/node_summary.h"
#include "core/ledger/plan.h"
#include "core/place/workload_mix.h"
#include "core/queue/group.h"

struct placement; /* placement.h */

/* NOW: fits at this moment and beside all claims. LATER: fits when what is
 * releasing is back: a claim, never a start. CLEARED: like LATER, once the
 * victims that are marked on the node are gone too; see sketch.h. */
enum view { VIEW_NOW, VIEW_LATER, VIEW_CLEARED };

/* One way to put a task or a slot onto a node: the GPUs, and a score. Lower is
 * better, but GPUs that are linked come first; only slots say that they are. */
struct choice {
	struct node *node;
	struct part parts[PARTS_MAX];
	int part_count;
	bool linked;
	bool promise_blocked; /* a GPU would fit, but for a promise or a window */
	int64_t score;
};

/* What a search keeps to, and what it found on the way. The applicant is a job,
 * whose next tasks are to be placed, or a model that is to get another slot:
 * `model` is set for a slot and `job` is not. A slot has several shapes, one for
 * each split; `shape` is the one that is being tried. */
struct search {
	struct job *job;
	struct model *model;
	const struct shape *shape;
	enum view view;
	struct node *only; /* NULL: any */
	int rack;          /* 0: any */
	int64_t link;      /* NVLink group, of the node `only`; 0: any */
	int64_t until_ms;  /* backfill: ends before promises from then on; INT64_MAX: unknown */
	bool ignore_promises;
	bool ignore_windows;
	int64_t start_ms;     /* when it would start; 0: now */
	bool any;             /* the first place that fits will do */
	bool even;            /* parts go to the GPUs with most free: the most tasks fit so */
	bool empty;           /* for nodes as if nothing were on them: rules do not apply */
	bool moving;          /* for tasks that are releasing, rather than waiting */
	int64_t candidates;   /* nodes that fitted, for the last task */
	bool promise_blocked; /* something fitted, but for a promise or a window */
	bool too_long;        /* the same, in one of the views that pass_index tried */
	bool limit_blocked;   /* something fitted, but for a limit of the tenant */
	int64_t score;        /* of the last task */
	int32_t scarcity;     /* of the last task's GPUs: the highest, see scarcity.h */
};

/* How much of the node's free GPUs the kinds of one GPU in the row can use. The levels in
 * the view must be those of the row's weights. */
static inline int64_t node_summary_fit(const struct node_summary *summary,
                                       const struct workload_row *row)
{
	int64_t fit = 0;

	for (int i = 0; i < summary->kind_count; i++)
		fit += (int64_t)(summary->kinds[i].free_milli * summary->kinds[i].times) *
		       row->single[summary->kinds[i].level];
	return fit;
}

/* Chooses the GPUs of one node for one task or slot; false if it does not fit
 * there. */
bool place_on_node(struct placement *placement, const struct search *search, struct node *node,
                   struct choice *choice);
/* Like place_on_node(), for slots, by the policy of their model, and for any
 * applicant in VIEW_CLEARED, where GPUs are packed: the policies for tasks score
 * a node as it is. The node has passed place_check_node(). See choose_slot.c. */
bool choose_slot(const struct placement *placement, const struct search *search, struct node *node,
                 struct choice *choice);
/* How many tasks of the shape the node could take, each with its GPUs: at the most,
 * where several tasks have uneven parts. Notes `promise_blocked`. */
int64_t place_count(struct placement *placement, struct search *search, const struct node *node);
/* Like place_count(), for one NVLink group of the node: the one with the least left over beside
 * `tasks` tasks, or else the one with the most capacity. */
int64_t place_count_linked(struct placement *placement, struct search *search,
                           const struct node *node, int64_t tasks, int64_t *link);

/* Where to look: sets of the index, supersets of the nodes that fit. The first
 * holds all of them; each further one leaves out those that fit more tightly. */
struct scope {
	const struct bitset *sets;
	int levels;
};
struct scope place_scope(const struct placement *placement, const struct search *search);
/* The best place for one task or slot; false if there is none. A slot goes where
 * it takes the fewest GPUs; `search->shape` is then the shape that fits. In a large
 * cluster the nodes that the policy likes are looked at first, by what they have
 * free, and the search ends when enough fitted. */
bool place_find(struct placement *placement, struct search *search, struct choice *choice);
/* Whether place_find would find one, without choosing it. */
bool place_fits(struct placement *placement, struct search *search);

/* Places the next `tasks` tasks of the job in the open plan, as near together
 * as its shape asks, all held (VIEW_NOW) or all claims (VIEW_LATER; where a
 * task fits now that is preferred). True if all are placed; otherwise the plan
 * is as it was. Tasks are numbered by the names of their nodes. */
bool place_job(struct placement *placement, struct search *search, int64_t tasks);

/* What a fit is refused on, per GPU or per node, for 'why'. */
enum check {
	CHECK_NODE, /* node offline, draining or not reported yet */
	CHECK_LABELS,
	CHECK_MODEL,
	CHECK_HEALTH,
	CHECK_HOT,
	CHECK_OVER,     /* more on it than it has */
	CHECK_OCCUPIED, /* asked for whole, and something is on it */
	CHECK_WHOLE,    /* given whole to another */
	CHECK_MEMORY,   /* too little free */
	CHECK_SIZE,     /* smaller than asked for, even empty */
	CHECK_CLAIM,    /* free now, but claimed */
	CHECK_PROMISE,  /* free now, but promised to another before this would end */
	CHECK_CPU,
	CHECK_HOST,
	CHECK_COUNT, /* its GPU fits, but not enough of its node's */
	CHECK_CLASS, /* not among the nodes of its class */
	CHECK_COUNTED,
	CHECK_PORT,
	CHECK_APART,
	CHECK_KEPT_OFF, /* by a rule of another */
	CHECK_TOGETHER,
	CHECK_SPREAD,
	CHECK_WINDOW,    /* kept by a window that is open, or begins before this would end */
	CHECK_NO_SHARES, /* shares of compute are not given there */
	CHECK_SHARING,   /* shared in the other way, or with another tenant: see compute.h */
	CHECK_COMPUTE,   /* too little compute left */
	CHECK_OK,        /* it fits */
	CHECK_REASONS = CHECK_OK,
};
const char *check_name(enum check check);
/* The check that this GPU fails for one part of the shape's request, and how
 * far short it is (0 where that has no meaning); CHECK_OK if it passes. The same
 * function decides placement. */
enum check place_check_gpu(const struct placement *placement, const struct search *search,
                           const struct gpu *gpu, int64_t *short_by);
enum check place_check_node(const struct placement *placement, const struct search *search,
                            const struct node *node, int64_t *short_by);

/* Counts refusals over all GPUs into rows of enum refusal_column, most first;
 * returns how many rows. `rows` has room for CHECK_REASONS. */
int place_refusals(struct placement *placement, const struct search *search,
                   int64_t rows[][REFUSAL_WIDTH]);
/* Whether the hardware could ever take the job's tasks, if all were empty. */
bool place_possible(struct placement *placement, const struct job *job, struct error *error);
/* Whether an empty cluster of the nodes that are known could take a slot of the model.
 * False with the reason and the figures: it could never fit. */
bool place_possible_slot(struct placement *placement, struct model *model, struct error *error);

#endif
