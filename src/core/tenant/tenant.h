/* tenant.h - teams: what they hold, what they may hold, what they used */
#ifndef CORE_TENANT_TENANT_H
#define CORE_TENANT_TENANT_H

#include "base/error.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/ranktree.h"
#include "core/record/record.h"

struct job_group;
struct model;

/* What failed for a group failed for jobs up to this priority. */
struct hopeless {
	struct job_group *group;
	int64_t priority;
};

/* Tenants form a tree. `allocated` is what held and live reservations and
 * claims of the tenant and all below it add up to (memory that is releasing
 * counts for the GPU, not for the tenant); `fixed` is the part of that which
 * may not be preempted; `waiting` is what jobs in the queue still ask for. At
 * every tenant these are at least the sums over its children. Jobs belong to
 * any tenant, most to leaves. */
struct tenant {
	struct tenant_record r;
	struct tenant *parent;
	struct tenant **children; /* older first */
	size_t child_count, child_capacity;
	struct amounts allocated, fixed;
	struct wide_amounts waiting;
	int64_t fair[FAIR_KINDS];  /* fair share, by fairshare_divide */
	struct amounts metered;    /* `allocated` at r.metered_ms: what the meters run on with */
	bool unsettled;            /* in tenants.unsettled */
	struct job_group **groups; /* of its waiting jobs; see shape.h */
	size_t group_count, group_capacity;
	int64_t queued;            /* jobs in those */
	int64_t waiting_jobs;      /* jobs that are not over and hold nothing, held ones included */
	struct ranktree victims;   /* its running jobs, by (priority, -start): first to go first */
	int64_t surplus_victims;   /* of those, elastic jobs with tasks beyond their minimum */
	struct hopeless *hopeless; /* for whom making room failed in this round; see room.c */
	size_t hopeless_count, hopeless_capacity;
	struct heap open;           /* classes that a pass may still serve; see pass.c */
	struct model **open_models; /* the same for models, next one first; see replica.h */
	size_t open_model_first, open_model_count, open_model_capacity;
	bool dirty; /* to be written */
};

struct tenants {
	struct map by_id;
	struct text_map by_name; /* siblings and strangers alike: names are unique */
	struct tenant **all;     /* by id */
	size_t count, capacity;
	struct tenant **roots; /* older first */
	size_t root_count, root_capacity;
	struct tenant **unsettled; /* whose `allocated` changed since it was metered */
	size_t unsettled_count, unsettled_capacity;
	size_t orphan_count;  /* while loading: roots whose parent is yet to come */
	struct share *shares; /* where fairshare_divide works, kept from call to call */
	size_t share_capacity;
};

#define WEIGHT_MAX INT64_C(1000000000) /* thousandths: a million */

static inline int64_t tenant_limit(const struct tenant *tenant, enum amount_kind kind)
{
	switch (kind) {
	case AMOUNT_GPU:
		return tenant->r.limit_gpu;
	case AMOUNT_CPU:
		return tenant->r.limit_cpu;
	case AMOUNT_HOST:
		return tenant->r.limit_host;
	case AMOUNT_GPU_MEMORY:
		return tenant->r.limit_gpu_memory;
	case AMOUNT_JOBS:
		return tenant->r.limit_jobs;
	default:
		return UNLIMITED;
	}
}
/* Of a fair kind; the others have none. */
static inline int64_t tenant_quota(const struct tenant *tenant, enum amount_kind kind)
{
	switch (kind) {
	case AMOUNT_GPU:
		return tenant->r.quota_gpu;
	case AMOUNT_CPU:
		return tenant->r.quota_cpu;
	case AMOUNT_HOST:
		return tenant->r.quota_host;
	default:
		return QUOTA_UNSET;
	}
}

struct tenant *tenants_find(const struct tenants *tenants, int64_t id);

/* Adds a tenant with this record (id set; later ids are younger) or, where the
 * id is known, replaces what people can set: meters and totals stay. The
 * parent must exist and must not be below the tenant; names are unique and not
 * empty; limits, quotas, weights (up to WEIGHT_MAX), prices and budgets are not
 * negative (but for QUOTA_UNSET). NULL with a reason, and nothing changed,
 * otherwise. What it holds moves with it to a new parent. A new price counts
 * from the last time it was settled: call tenant_settle_now before. */
struct tenant *tenants_put(struct tenants *tenants, const struct tenant_record *record,
                           struct error *error);
/* As tenants_put for a new one, but keeps the record's meters, and the parent
 * may come later: for loading, in any order. Parents that are below their
 * children are refused. */
struct tenant *tenants_load(struct tenants *tenants, const struct tenant_record *record,
                            struct error *error);
/* To be called when all tenants are loaded and what they hold is charged again:
 * the meters run on with that from where they were. False with a reason if a
 * parent never came. */
bool tenants_loaded(struct tenants *tenants, struct error *error);
/* Refused while it has children, waiting jobs or anything allocated. */
bool tenants_delete(struct tenants *tenants, struct tenant *tenant, struct error *error);
void tenants_free(struct tenants *tenants);

/* Adds to (sign 1) or takes from (sign -1) what the tenant and its ancestors
 * hold; `preemptible` says whether `fixed` is concerned. */
void tenant_charge(struct tenants *tenants, struct tenant *tenant, const struct amounts *amounts,
                   bool preemptible, int sign);
/* Adds to (sign 1) or takes from (sign -1) the waiting demand of the tenant and its ancestors. */
void tenant_ask(struct tenant *tenant, const struct amounts *amounts, int sign);

/* Which bound refuses an amount, and by how much. */
struct bound {
	const struct tenant *tenant; /* itself or an ancestor; NULL: none refuses */
	enum amount_kind kind;
	enum { BOUND_LIMIT, BOUND_QUOTA, BOUND_BUDGET } of;
	int64_t asked, has, allowed;
};

/* Whether the tenant is `above` or somewhere below it. */
bool tenant_is_below(const struct tenant *tenant, const struct tenant *above);
/* Whether the tenant and each ancestor may hold `amounts` more: limits for all;
 * for what is not preemptible also quotas, where one is set; and this month's
 * budget, which is spent or not and concerns only what asks for GPUs. Kinds of
 * which nothing is asked do not refuse. Fills `bound` with the first that does:
 * limits from the tenant up, then quotas, then budgets. */
bool tenant_may_hold(const struct tenant *tenant, const struct amounts *amounts, bool preemptible,
                     int64_t now_ms, struct bound *bound);
/* Whether it could if nothing of it ran: limits and quotas alone. `bound` still
 * says what it has now. */
bool tenant_could_ever_hold(const struct tenant *tenant, const struct amounts *amounts,
                            bool preemptible, struct bound *bound);
/* Appends the sentence: 'quota exceeded for tenant lab: GPUs requested=8, quota=4, current=2'. */
void bound_print(struct buffer *buffer, const struct bound *bound);
/* Like bound_print(), for a job that waits until less is in use: 'tenant nlp is at its limit of 8
 * GPUs (6 in use, 6 requested)'. */
void bound_print_waiting(struct buffer *buffer, const struct bound *bound);

/* Brings the meters of all unsettled tenants forward to now, with what they
 * held until now, and calls `changed` for each in the order of their ids. One
 * that holds again what it held before is left as it is. */
void tenants_settle(struct tenants *tenants, int64_t now_ms, const struct config_record *config,
                    void (*changed)(void *context, struct tenant *tenant), void *context);

/* Settles one tenant, whether it is unsettled or not: before its price or the half-life
 * changes. The caller stores the record. */
void tenant_settle_now(struct tenants *tenants, struct tenant *tenant, int64_t now_ms,
                       const struct config_record *config);

/* Decayed use of a fair kind at `now_ms`: amount x seconds (of host memory, MiB x
 * seconds, since bytes would not fit), and as thousandths of what a holder of all
 * of `total` would have in the long run. Without a half-life there is none. */
int64_t tenant_usage(const struct tenant *tenant, enum amount_kind kind, int64_t now_ms,
                     int64_t half_life_ms);
int64_t tenant_usage_share(const struct tenant *tenant, enum amount_kind kind, int64_t now_ms,
                           int64_t half_life_ms, int64_t total);
/* What it held on average, of GPUs or cores in thousandths: what is longer ago counts less. */
int64_t tenant_average(const struct tenant *tenant, enum amount_kind kind, int64_t now_ms,
                       int64_t half_life_ms);
/* Cost so far of this calendar month (UTC), and of all time, what it holds now included. */
/* It was charged for tokens, beside the GPU time that it is metered for. */
void tenant_bill(struct tenants *tenants, struct tenant *tenant, int64_t amount, int64_t now_ms,
                 const struct config_record *config);
/* Others were charged for tokens of its models. */
void tenant_credit(struct tenant *tenant, int64_t amount);
int64_t tenant_month_cost(const struct tenant *tenant, int64_t now_ms);
int64_t tenant_cost(const struct tenant *tenant, int64_t now_ms);
/* Thousandths of GPUs x ms of all time, what it holds now included. */
int64_t tenant_gpu_ms(const struct tenant *tenant, int64_t now_ms);
/* Year * 12 + month - 1 of a time. */
int64_t month_of(int64_t time_ms);

/* Panics if a total is not the sum of its parts as far as tenants alone can tell. */
void tenants_check(const struct tenants *tenants);

#endif
