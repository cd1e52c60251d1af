/* cluster.h - nodes and GPUs as they were last reported */
#ifndef CORE_CLUSTER_CLUSTER_H
#define CORE_CLUSTER_CLUSTER_H

#include "base/bitset.h"
#include "base/map.h"
#include "core/cluster/compute.h"
#include "core/cluster/window.h"
#include "core/record/command.h"
#include "core/record/record.h"

struct filter;
struct reservation;
struct slot;

/* What is on a GPU, as ledger.c keeps it. `used_mib` is the sum over owners of
 * max(reserved, measured) in every phase; `releasing_mib` is the part of it
 * that is expected back; `claimed_mib` is promised to claims and not used. */
struct gpu_books {
	int64_t used_mib, releasing_mib, claimed_mib;
	int32_t owners, releasing_owners, claims;
	int32_t whole_owners, whole_releasing, whole_claims;
	struct compute_sum compute, compute_releasing, compute_claimed; /* of the same */
};

/* What a GPU had to offer when index.c last looked, so that it sees what came
 * free since. All but `free_milli` are 0 while the GPU takes nothing. */
struct gpu_offer {
	int64_t free_now_mib, free_later_mib, usable_mib;
	uint64_t sharers;    /* another number when its compute is shared otherwise; 0: not */
	uint32_t offers;     /* enum offer of index.c */
	int16_t takes_milli; /* the largest fraction that fits */
	int16_t free_milli;  /* thousandths that are free, even while it takes nothing */
	bool whole;          /* it could be given whole */
};

/* One physical GPU, or one MIG instance, whatever names it is advertised under. */
struct gpu {
	struct gpu_record r;
	struct node *node;
	struct gpu_books books; /* changed by ledger.c alone */
	struct gpu_offer offer; /* kept by index.c */
	int gpu_type;           /* number of its type in the cluster */
	int64_t promised_ms;    /* from when a promise counts on it; INT64_MAX: none does */
	int64_t promised_to;    /* the job of that promise */
	int64_t kept_for; /* the model whose slots alone are placed here; 0: all. See rotation.h */
	uint64_t windows; /* that it is in: a bit for each, by its place in cluster.windows */
	int64_t mark_mib; /* scratch of a search for victims; see clear.c */
	int32_t mark_owners, mark_whole;
	struct compute_sum mark_compute;
	int counted_type; /* what scarcity.c counted of it as free, and where */
	int32_t counted_milli;
	int32_t loading;                    /* slots that are being loaded onto it */
	int64_t cold_mib, cold_largest_mib; /* of slots that may be evicted: sum, largest part */
	bool was_over;                      /* as last told in an event */
	bool dirty;                         /* to be written */
};

/* Amounts of the host that are taken, now and once what is releasing is back. */
struct host_books {
	int64_t used, releasing, claimed;
};

/* What a search wants to know about a node; kept by index.c. Availability is
 * for a newcomer without a claim: it fits now, and beside all claims later. */
struct node_offer {
	int64_t best_mib;   /* the most that one shared GPU has */
	int32_t best_milli; /* the largest fraction that a shared GPU can give, in thousandths */
	int32_t whole;      /* GPUs that could be given whole */
	int32_t whole_level, mib_level, milli_level, cpu_level; /* its places in the index; -1, or
	                                                           whole 0: none */
	int32_t later_whole, later_mib, later_milli; /* the same, of what it has when all that is
	                                                releasing is back; while any is */
	bool open, releasing;
	bool redescribed; /* labels, rack, model or links changed since index.c last looked */
	int64_t cpu_now, cpu_later, host_now, host_later; /* free; 0 while it takes nothing */
};

/* A counted resource of a node: what its record says, and what is taken by reservations. One that
 * is not declared any more stays while something has it. */
struct node_count {
	char *name;
	int64_t capacity, taken; /* of the node's record */
	struct host_books books; /* changed by ledger.c alone */
};

/* See guest_record. Its filter has its marks and rules. */
struct guest {
	struct guest_record r;
	struct node *node;
	struct filter *filter;
};

/* What a line of a node class says of its node. */
enum node_class_bit {
	NODE_ALLOWED = 1,   /* it may take tasks of the class */
	NODE_WANTED = 2,    /* it is among those that the class selects */
	NODE_TOLERATED = 4, /* the class tolerates what keeps others off */
};
struct node_class {
	struct node_class_record r;
};

struct node {
	struct node_record r;
	struct node_count *counts;
	int count_count, count_capacity;
	struct guest **guests; /* by id */
	int guest_count, guest_capacity;
	struct gpu **gpus; /* by place, then UUID */
	int gpu_count, gpu_capacity;
	int rank;                    /* rank of its name among all nodes; set by cluster_order */
	struct host_books cpu, host; /* changed by ledger.c alone */
	struct reservation **reservations; /* by id */
	int reservation_count, reservation_capacity;
	struct node_offer offer;
	uint64_t version; /* another number when a task that starts now finds something else */
	bool dirty;       /* to be written */
	bool mps;         /* it can give shares of its GPUs' compute */
	int rack;     /* number of its rack among all racks, by name; 0: none; of cluster_order */
	int promised; /* GPUs of it that a promise counts on */
	uint64_t windows;                     /* that all of it is in, with its GPUs; as for GPUs */
	bool in_windows;                      /* it, or a GPU of it */
	int64_t active;                       /* requests in flight in its slots */
	int cold;                             /* slots on it that may be evicted; see evict.h */
	int64_t cold_reload_ms, cold_used_ms; /* the least of those */
	int cold_span;                        /* the most GPUs that one of those is on */
	uint64_t least_search;                /* the search that `least` is of; see evict_find.c */
	int32_t least;
	uint8_t lacks[PARTS_MAX]; /* of that search, per ask: GPUs that lack memory; 0: not known */
	struct slot **rivals;     /* its routable slots whose models have many; see route.h */
	int rival_count, rival_capacity;
	int64_t mark; /* scratch of a search; see clear.c */
	int64_t mark_cpu, mark_host, mark_list;
};

struct cluster {
	struct node **nodes; /* by id */
	size_t node_count, node_capacity;
	struct node **by_rank; /* by name, once cluster_order ran */
	struct map node_by_id, gpu_by_id;
	struct text_map node_by_name, gpu_by_uuid, gpu_type_by_name;
	struct text_map class_by_name, guest_by_name;
	bool has_rules; /* something was looked for by rules: a task that comes may let it in */
	uint64_t rules_version; /* another number when rules may find something else; see rules.h */
	int gpu_type_count;
	int rack_count;        /* racks have numbers 1 .. rack_count; of cluster_order */
	struct node **by_rack; /* by rack, then rank; of cluster_order */
	int *rack_first;       /* the nodes of rack r begin there and end before that of r + 1 */
	bool ordered, counted; /* ranks, and totals, are right */
	uint64_t version;      /* another number when nodes, models or labels change */
	struct amounts total;  /* of online nodes: GPUs, CPU, host memory */
	int64_t gpu_total;     /* GPUs counted in `total` */
	int64_t smallest_mib;  /* usable memory of the smallest GPU counted in `total`; 0: none */
	struct windows windows;
	int kept_count; /* GPUs kept for a model, or more; see gpu.kept_for */
};

struct node *cluster_node(const struct cluster *cluster, const char *name);
struct gpu *cluster_gpu(const struct cluster *cluster, const char *uuid);
/* The number that GPUs of this model have; -1 if there never was one. */
int cluster_gpu_type(const struct cluster *cluster, const char *name);

/* Whether a report makes sense as it stands: names and UUIDs not empty, no
 * negative memory nor any that no machine has, overhead within capacity, labels
 * in order, no UUID that is on another online node, no UUID advertised twice
 * with different facts (but for temperature, health, place and links), no more
 * GPUs than a node can have, those included that left with work on them. A
 * report that fails is refused whole. */
bool cluster_check_report(const struct cluster *cluster, const struct node_report_command *report,
                          struct error *error);

/* Checks a report on one GPU: no negative memory, and none beyond any real machine. */
bool cluster_check_gpu_report(const struct gpu *gpu, const struct gpu_report_command *report,
                              struct error *error);

/* Nodes and GPUs by record, whose id and name, or UUID, are new; a node has at
 * most GPUS_PER_NODE_MAX. They exist from the call on; ranks are wrong until
 * cluster_order. Texts are copied. */
struct node *cluster_add_node(struct cluster *cluster, const struct node_record *record);
struct gpu *cluster_add_gpu(struct cluster *cluster, struct node *node,
                            const struct gpu_record *record);
/* Replaces the record's texts and facts that do not touch the ledger: all but
 * id, name and UUID, which stay, and but for what ledger_facts changes. */
void node_rename(struct node *node, const struct node_record *record);
void gpu_redescribe(struct cluster *cluster, struct gpu *gpu, const struct gpu_record *record);
/* It must be empty: no GPUs, no reservations, nothing in the ledger. */
void cluster_remove_node(struct cluster *cluster, struct node *node);
void cluster_remove_gpu(struct cluster *cluster, struct gpu *gpu);
/* Whether a reservation names it, one of a suspended task too, which counts for nothing there and
 * will want it back. */
bool gpu_is_reserved(const struct gpu *gpu);

/* Gives ranks to nodes and numbers to racks, by name, after nodes came, went or
 * moved. */
void cluster_order(struct cluster *cluster);
/* Recounts `total`, `gpu_total` and `smallest_mib`. */
void cluster_count(struct cluster *cluster);
/* The cluster with its totals, recounted if they are outdated. */
static inline struct cluster *cluster_totals(struct cluster *cluster)
{
	if (!cluster->counted)
		cluster_count(cluster);
	return cluster;
}
void cluster_free(struct cluster *cluster);

/* Memory that may ever be given out: capacity - overhead, not below 0. */
static inline int64_t gpu_usable_mib(const struct gpu *gpu)
{
	return max64(gpu->r.capacity_mib - gpu->r.overhead_mib, 0);
}
/* The memory invariant: its left side compared with the capacity. */
static inline bool gpu_is_over(const struct gpu *gpu)
{
	return gpu->r.overhead_mib + gpu->r.foreign_mib + gpu->books.used_mib > gpu->r.capacity_mib;
}
/* Whether it takes anything new at all, apart from how full it is. */
static inline bool node_is_open(const struct node *node)
{
	return node->r.state == NODE_ONLINE && node->r.reported && !node->r.draining;
}
static inline bool gpu_is_open(const struct gpu *gpu, const struct config_record *config)
{
	return node_is_open(gpu->node) && gpu->r.present && gpu->r.healthy &&
	       !(gpu->r.hot && config->enable_thermal) && !gpu->r.mig_mode &&
	       gpu->r.capacity_mib > 0 && !gpu_is_over(gpu);
}

/* Whether a time alone, of a promise or a window, may keep something off its GPUs. */
static inline bool node_is_spoken_for(const struct node *node)
{
	return node->promised > 0 || node->in_windows;
}

/* Availability. 'now': free at this moment; 'later': free once everything that
 * is releasing in time is back and all claims are served. A newcomer needs
 * both, a claim needs 'later' alone. */
static inline int64_t gpu_free_now(const struct gpu *gpu)
{
	return gpu->r.capacity_mib - gpu->r.overhead_mib - gpu->r.foreign_mib - gpu->books.used_mib;
}
static inline int64_t gpu_free_later(const struct gpu *gpu)
{
	return gpu_free_now(gpu) + gpu->books.releasing_mib - gpu->books.claimed_mib;
}
/* What suspended tasks left behind has no owner, and is there. */
static inline bool gpu_empty_now(const struct gpu *gpu)
{
	return gpu->books.owners == 0 && gpu->books.claims == 0 && gpu->books.used_mib == 0;
}
static inline bool gpu_empty_later(const struct gpu *gpu)
{
	return gpu->books.owners == gpu->books.releasing_owners && gpu->books.claims == 0 &&
	       gpu->books.used_mib == gpu->books.releasing_mib;
}
/* Whether it is given whole to nobody. */
static inline bool gpu_divisible_now(const struct gpu *gpu)
{
	return gpu->books.whole_owners == 0 && gpu->books.whole_claims == 0;
}
static inline bool gpu_divisible_later(const struct gpu *gpu)
{
	return gpu->books.whole_owners == gpu->books.whole_releasing &&
	       gpu->books.whole_claims == 0;
}
/* None of its owners and claims has a share of its compute: all views of it are alike. */
static inline bool gpu_takes_turns(const struct gpu *gpu)
{
	return gpu->books.compute.parts == 0 && gpu->books.compute_claimed.parts == 0;
}
/* Whether a newcomer without a share of its compute may be on it. */
static inline bool gpu_shareable_now(const struct gpu *gpu)
{
	return gpu_divisible_now(gpu) && gpu->books.compute.parts == 0 &&
	       gpu->books.compute_claimed.parts == 0;
}
/* A GPU given whole, or shared by compute, can be shared later only when those owners are leaving.
 */
static inline bool gpu_shareable_later(const struct gpu *gpu)
{
	return gpu_divisible_later(gpu) && gpu->books.compute_claimed.parts == 0 &&
	       gpu->books.compute.parts == gpu->books.compute_releasing.parts;
}
/* Thousandths of its memory that a newcomer can have, rounded down. */
static inline int32_t gpu_free_milli(const struct gpu *gpu)
{
	int64_t usable = gpu_usable_mib(gpu);
	int64_t free_mib = min64(gpu_free_now(gpu), gpu_free_later(gpu));

	if (usable == 0 || free_mib <= 0 || !gpu_shareable_now(gpu))
		return 0;
	return (int32_t)(free_mib >= usable ? WHOLE_GPU : free_mib * WHOLE_GPU / usable);
}

static inline int64_t host_free_now(const struct host_books *books, int64_t total)
{
	return total - books->used;
}
static inline int64_t host_free_later(const struct host_books *books, int64_t total)
{
	return total - books->used + books->releasing - books->claimed;
}

/* Of the host, apart from what others take. */
static inline int64_t node_cpu_milli(const struct node *node)
{
	return max64(node->r.cpu_milli - node->r.taken_cpu_milli, 0);
}
static inline int64_t node_host_bytes(const struct node *node)
{
	return max64(node->r.host_bytes - node->r.taken_host_bytes, 0);
}

/* The counted resource of that name; NULL: the node has none and nothing has it. */
struct node_count *node_count(const struct node *node, const char *name);
/* Like node_count(), but makes it. For ledger.c. */
struct node_count *node_count_made(struct node *node, const char *name);
/* Of a counted resource, apart from what others take. */
static inline int64_t count_total(const struct node_count *count)
{
	return max64(count->capacity - count->taken, 0);
}
/* The value that the node has in a domain: `node`, `rack`, `zone`, or else a label,
 * which `label:` may precede. NULL: none.
 * It is `*size` long. */
const char *node_domain(const struct node *node, const char *domain, size_t *size);
/* The class of that name, or NULL; and whether it makes sense as it stands. */
struct node_class *cluster_node_class(const struct cluster *cluster, const char *name);
bool node_class_check(const char *name, const char *nodes, struct error *error);
/* Makes the class, or replaces its nodes. Texts are copied. */
struct node_class *cluster_put_node_class(struct cluster *cluster,
                                          const struct node_class_record *record);
void cluster_remove_node_class(struct cluster *cluster, struct node_class *class);
/* Reads the next line of a class's nodes; false at the end. */
struct node_class_line {
	unsigned mask;
	const char *name, *reason;
	int name_size, reason_size;
};
bool node_class_next(const char **nodes, struct node_class_line *line);
/* Puts a guest onto its node, or takes it off and frees it. Texts are copied. */
struct guest *cluster_add_guest(struct cluster *cluster, struct node *node, struct filter *filter,
                                const struct guest_record *record);
void cluster_remove_guest(struct cluster *cluster, struct guest *guest);

/* Whether it can give shares of its compute: MPS serves GPUs, and not parts of them. */
static inline bool gpu_gives_compute(const struct gpu *gpu)
{
	return gpu->node->mps && *gpu->r.mig_parent == '\0';
}

/* Whether a node has all of the "key=value" lines in `required`. */
bool node_has_labels(const struct node *node, const char *required);

#endif
