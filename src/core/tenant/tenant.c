/* tenant.c - the tree of tenants, what they hold and what they may hold */
#include "core/tenant/tenant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct tenant *tenants_find(const struct tenants *tenants, int64_t id)
{
	return map_get(&tenants->by_id, id);
}

/* Lists of tenants are sorted by id. */
static size_t list_place(struct tenant *const *list, size_t count, int64_t id)
{
	size_t low = 0;
	while (low < count) {
		size_t middle = low + (count - low) / 2;
		if (list[middle]->r.id < id)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

static void list_insert(struct tenant ***list, size_t *count, size_t *capacity,
                        struct tenant *tenant)
{
	array_reserve(*list, *capacity, *count + 1);
	size_t place = list_place(*list, *count, tenant->r.id);
	memmove(*list + place + 1, *list + place, (*count - place) * sizeof(struct tenant *));
	(*list)[place] = tenant;
	(*count)++;
}

static void list_remove(struct tenant **list, size_t *count, const struct tenant *tenant)
{
	size_t place = list_place(list, *count, tenant->r.id);
	INVARIANT(place < *count && list[place] == tenant);
	(*count)--;
	memmove(list + place, list + place + 1, (*count - place) * sizeof(struct tenant *));
}

static void mark_unsettled(struct tenants *tenants, struct tenant *tenant)
{
	if (tenant->unsettled)
		return;
	array_reserve(tenants->unsettled, tenants->unsettled_capacity,
	              tenants->unsettled_count + 1);
	tenants->unsettled[tenants->unsettled_count++] = tenant;
	tenant->unsettled = true;
}

static void amounts_move(struct amounts *amounts, const struct amounts *by, int sign)
{
	for (int k = 0; k < AMOUNT_KINDS; k++) {
		amounts->of[k] += sign * by->of[k];
		INVARIANT(amounts->of[k] >= 0);
	}
}

static void wide_move(struct wide_amounts *amounts, enum amount_kind kind, int128 by)
{
	amounts->of[kind] += by;
	INVARIANT(amounts->of[kind] >= 0);
}

void tenant_charge(struct tenants *tenants, struct tenant *tenant, const struct amounts *amounts,
                   bool preemptible, int sign)
{
	INVARIANT(sign == 1 || sign == -1);
	for (; tenant; tenant = tenant->parent) {
		amounts_move(&tenant->allocated, amounts, sign);
		if (!preemptible)
			amounts_move(&tenant->fixed, amounts, sign);
		mark_unsettled(tenants, tenant);
	}
}

void tenant_ask(struct tenant *tenant, const struct amounts *amounts, int sign)
{
	INVARIANT(sign == 1 || sign == -1);
	for (; tenant; tenant = tenant->parent)
		for (enum amount_kind k = 0; k < AMOUNT_KINDS; k++)
			wide_move(&tenant->waiting, k, (int128)sign * amounts->of[k]);
}

/* Adds what the tenant holds and waits for to `ancestor` and all above it, or takes it away. */
static void carry(struct tenants *tenants, struct tenant *ancestor, const struct tenant *tenant,
                  int sign)
{
	tenant_charge(tenants, ancestor, &tenant->allocated, true, sign);
	for (; ancestor; ancestor = ancestor->parent) {
		amounts_move(&ancestor->fixed, &tenant->fixed, sign);
		for (enum amount_kind k = 0; k < AMOUNT_KINDS; k++)
			wide_move(&ancestor->waiting, k, sign * tenant->waiting.of[k]);
	}
}

static void attach(struct tenants *tenants, struct tenant *tenant, struct tenant *parent)
{
	tenant->parent = parent;
	if (parent)
		list_insert(&parent->children, &parent->child_count, &parent->child_capacity,
		            tenant);
	else
		list_insert(&tenants->roots, &tenants->root_count, &tenants->root_capacity, tenant);
	carry(tenants, parent, tenant, 1);
}

static void detach(struct tenants *tenants, struct tenant *tenant)
{
	struct tenant *parent = tenant->parent;
	carry(tenants, parent, tenant, -1);
	if (parent)
		list_remove(parent->children, &parent->child_count, tenant);
	else
		list_remove(tenants->roots, &tenants->root_count, tenant);
	tenant->parent = NULL;
}

static bool is_at_or_below(const struct tenant *tenant, const struct tenant *ancestor)
{
	while (tenant && tenant != ancestor)
		tenant = tenant->parent;
	return tenant != NULL;
}

static bool check_range(const char *name, int64_t value, int64_t least, struct error *error)
{
	return value >= least ||
	       error_set(error, ERROR_INVALID, "%s is %" PRId64 ", and must not be negative", name,
	                 value);
}

static bool tenant_check_numbers(const struct tenant_record *r, struct error *error)
{
	if (r->weight > WEIGHT_MAX)
		return error_set(error, ERROR_INVALID,
		                 "weight is %" PRId64 " thousandths, and may be %" PRId64
		                 " at the most",
		                 r->weight, WEIGHT_MAX);
	return check_range("limit_gpu", r->limit_gpu, 0, error) &&
	       check_range("limit_cpu", r->limit_cpu, 0, error) &&
	       check_range("limit_host", r->limit_host, 0, error) &&
	       check_range("limit_gpu_memory", r->limit_gpu_memory, 0, error) &&
	       check_range("limit_jobs", r->limit_jobs, 0, error) &&
	       check_range("quota_gpu", r->quota_gpu, QUOTA_UNSET, error) &&
	       check_range("quota_cpu", r->quota_cpu, QUOTA_UNSET, error) &&
	       check_range("quota_host", r->quota_host, QUOTA_UNSET, error) &&
	       check_range("quota_gpu_least", r->quota_gpu_least, 0, error) &&
	       check_range("quota_gpu_most", r->quota_gpu_most, 0, error) &&
	       check_range("weight", r->weight, 0, error) &&
	       check_range("max_preemptions", r->max_preemptions, 0, error) &&
	       check_range("queue_max", r->queue_max, 0, error) &&
	       check_range("cost_per_gpu_hour", r->cost_per_gpu_hour, 0, error) &&
	       check_range("budget_per_month", r->budget_per_month, 0, error) &&
	       check_range("requests_per_minute", r->requests_per_minute, 0, error) &&
	       check_range("tokens_per_minute", r->tokens_per_minute, 0, error) &&
	       check_range("max_streams", r->max_streams, 0, error);
}

static bool check_meters(const struct tenant_record *r, struct error *error)
{
	return check_range("metered_ms", r->metered_ms, 0, error) &&
	       check_range("usage_gpu", r->usage_gpu, 0, error) &&
	       check_range("usage_cpu", r->usage_cpu, 0, error) &&
	       check_range("usage_host", r->usage_host, 0, error) &&
	       check_range("gpu_ms", r->gpu_ms, 0, error) &&
	       check_range("cost", r->cost, 0, error) &&
	       check_range("month_cost", r->month_cost, 0, error) &&
	       check_range("token_cost", r->token_cost, 0, error) &&
	       check_range("token_credit", r->token_credit, 0, error);
}

/* Whether the record may become `tenant`, or a new one if that is NULL. */
static bool check_record(const struct tenants *tenants, const struct tenant_record *r,
                         const struct tenant *tenant, struct error *error)
{
	if (r->id <= 0)
		return error_set(error, ERROR_INVALID, "id is %" PRId64 ", and must be positive",
		                 r->id);
	if (!r->name || !r->name[0])
		return error_set(error, ERROR_INVALID, "name is empty");
	const struct tenant *namesake = text_map_get(&tenants->by_name, r->name);
	if (namesake && namesake != tenant)
		return error_set(error, ERROR_CONFLICT,
		                 "there is a tenant with the name %s already", r->name);
	return tenant_check_numbers(r, error);
}

/* Checks its parent; NULL is none. */
static bool check_parent(const struct tenant_record *r, const struct tenant *parent,
                         const struct tenant *tenant, struct error *error)
{
	if (r->parent_id != 0 && !parent)
		return error_set(error, ERROR_NOT_FOUND,
		                 "tenant %s: there is no parent tenant %" PRId64, r->name,
		                 r->parent_id);
	if (tenant && is_at_or_below(parent, tenant))
		return error_set(error, ERROR_INVALID,
		                 "tenant %s cannot be below tenant %s, which is %s", r->name,
		                 parent->r.name, parent == tenant ? "itself" : "below it");
	return true;
}

/* Its own copies of the texts; a payload that is NULL is empty. */
static void own_texts(struct tenant_record *r)
{
	r->name = memory_text(r->name);
	r->payload = memory_text(r->payload ? r->payload : "");
}

static void free_texts(const struct tenant_record *r)
{
	free((char *)r->name);
	free((char *)r->payload);
}

static struct tenant *tenant_insert(struct tenants *tenants, const struct tenant_record *record,
                                    struct tenant *parent)
{
	struct tenant *tenant = NEW(struct tenant);
	tenant->r = *record;
	own_texts(&tenant->r);
	map_put(&tenants->by_id, record->id, tenant);
	text_map_put(&tenants->by_name, record->name, tenant);
	list_insert(&tenants->all, &tenants->count, &tenants->capacity, tenant);
	attach(tenants, tenant, parent);
	return tenant;
}

/* Clears, or copies from `from`, what only the meters and the jobs change. */
static void set_meters(struct tenant_record *r, const struct tenant_record *from)
{
	static const struct tenant_record none;
	if (!from)
		from = &none;
	r->metered_ms = from->metered_ms;
	r->usage_gpu = from->usage_gpu;
	r->usage_cpu = from->usage_cpu;
	r->usage_host = from->usage_host;
	r->gpu_ms = from->gpu_ms;
	r->cost = from->cost;
	r->month = from->month;
	r->month_cost = from->month_cost;
	r->token_cost = from->token_cost;
	r->token_credit = from->token_credit;
	r->jobs_cancelled = from->jobs_cancelled;
	r->jobs_completed = from->jobs_completed;
	r->jobs_failed = from->jobs_failed;
}

static void replace(struct tenants *tenants, struct tenant *tenant,
                    const struct tenant_record *record, struct tenant *parent)
{
	if (tenant->parent != parent) {
		detach(tenants, tenant);
		attach(tenants, tenant, parent);
	}
	/* The record may be the tenant's own, so its texts are copied before they are freed. */
	struct tenant_record old = tenant->r, r = *record;
	own_texts(&r);
	set_meters(&r, &old);
	text_map_remove(&tenants->by_name, old.name);
	text_map_put(&tenants->by_name, r.name, tenant);
	tenant->r = r;
	free_texts(&old);
}

struct tenant *tenants_put(struct tenants *tenants, const struct tenant_record *record,
                           struct error *error)
{
	struct tenant *tenant = tenants_find(tenants, record->id);
	struct tenant *parent = tenants_find(tenants, record->parent_id);
	if (!check_record(tenants, record, tenant, error) ||
	    !check_parent(record, parent, tenant, error))
		return NULL;
	if (tenant) {
		replace(tenants, tenant, record, parent);
		return tenant;
	}
	struct tenant_record fresh = *record;
	set_meters(&fresh, NULL);
	return tenant_insert(tenants, &fresh, parent);
}

/* A child that was given a younger parent is loaded before it, and is a root until then. */
static bool is_orphan_of(const struct tenant *tenant, int64_t parent_id)
{
	return !tenant->parent && tenant->r.parent_id == parent_id;
}

static void adopt_orphans(struct tenants *tenants, struct tenant *parent)
{
	for (size_t i = 0; i < tenants->root_count && tenants->orphan_count > 0;) {
		struct tenant *root = tenants->roots[i];
		if (!is_orphan_of(root, parent->r.id)) {
			i++;
			continue;
		}
		detach(tenants, root);
		attach(tenants, root, parent);
		tenants->orphan_count--;
	}
}

/* The top of the tree that `tenant` is in; NULL for NULL. */
static const struct tenant *top_of(const struct tenant *tenant)
{
	while (tenant && tenant->parent)
		tenant = tenant->parent;
	return tenant;
}

struct tenant *tenants_load(struct tenants *tenants, const struct tenant_record *record,
                            struct error *error)
{
	struct tenant *parent = tenants_find(tenants, record->parent_id);
	const struct tenant *top = top_of(parent);
	if (!check_record(tenants, record, NULL, error) || !check_meters(record, error))
		return NULL;
	if (tenants_find(tenants, record->id)) {
		error_set(error, ERROR_CORRUPT, "there are two tenants with id %" PRId64,
		          record->id);
		return NULL;
	}
	if (record->parent_id == record->id || (top && is_orphan_of(top, record->id))) {
		error_set(error, ERROR_CORRUPT, "tenant %s is its own ancestor", record->name);
		return NULL;
	}
	struct tenant *tenant = tenant_insert(tenants, record, parent);
	adopt_orphans(tenants, tenant);
	if (record->parent_id != 0 && !parent)
		tenants->orphan_count++;
	return tenant;
}

bool tenants_loaded(struct tenants *tenants, struct error *error)
{
	for (size_t i = 0; i < tenants->count; i++) {
		struct tenant *tenant = tenants->all[i];
		if (!tenant->parent && tenant->r.parent_id != 0)
			return error_set(error, ERROR_CORRUPT,
			                 "tenant %s: there is no parent tenant %" PRId64,
			                 tenant->r.name, tenant->r.parent_id);
		tenant->metered = tenant->allocated;
		tenant->unsettled = false;
	}
	tenants->unsettled_count = 0;
	return true;
}

static bool is_nothing(const struct amounts *amounts)
{
	static const struct amounts nothing;
	return memcmp(amounts, &nothing, sizeof(nothing)) == 0;
}

static bool waits_for_nothing(const struct tenant *tenant)
{
	static const struct wide_amounts nothing;
	return memcmp(&tenant->waiting, &nothing, sizeof(nothing)) == 0;
}

static void tenant_free(struct tenant *tenant)
{
	ranktree_free(&tenant->victims);
	heap_free(&tenant->open);
	free(tenant->open_models);
	free(tenant->hopeless);
	free(tenant->groups);
	free(tenant->children);
	free_texts(&tenant->r);
	free(tenant);
}

static void forget_unsettled(struct tenants *tenants, const struct tenant *tenant)
{
	size_t kept = 0;
	for (size_t i = 0; i < tenants->unsettled_count; i++) {
		if (tenants->unsettled[i] != tenant)
			tenants->unsettled[kept++] = tenants->unsettled[i];
	}
	tenants->unsettled_count = kept;
}

bool tenants_delete(struct tenants *tenants, struct tenant *tenant, struct error *error)
{
	if (tenant->child_count > 0)
		return error_set(error, ERROR_CONFLICT,
		                 "tenant %s has tenants below it, such as %s", tenant->r.name,
		                 tenant->children[0]->r.name);
	if (tenant->queued > 0 || !waits_for_nothing(tenant))
		return error_set(error, ERROR_CONFLICT, "tenant %s has waiting jobs",
		                 tenant->r.name);
	if (tenant->victims.count > 0 || !is_nothing(&tenant->allocated))
		return error_set(error, ERROR_CONFLICT, "tenant %s has running jobs",
		                 tenant->r.name);
	detach(tenants, tenant);
	list_remove(tenants->all, &tenants->count, tenant);
	forget_unsettled(tenants, tenant);
	map_remove(&tenants->by_id, tenant->r.id);
	text_map_remove(&tenants->by_name, tenant->r.name);
	tenant_free(tenant);
	return true;
}

void tenants_free(struct tenants *tenants)
{
	for (size_t i = 0; i < tenants->count; i++)
		tenant_free(tenants->all[i]);
	map_free(&tenants->by_id);
	text_map_free(&tenants->by_name);
	free(tenants->all);
	free(tenants->roots);
	free(tenants->unsettled);
	free(tenants->shares);
	*tenants = (struct tenants){ 0 };
}

static void check_sums(const struct tenant *tenant)
{
	struct amounts allocated = { 0 }, fixed = { 0 };
	struct wide_amounts waiting = { 0 };
	for (size_t i = 0; i < tenant->child_count; i++) {
		const struct tenant *child = tenant->children[i];
		INVARIANT(child->parent == tenant);
		INVARIANT(i == 0 || tenant->children[i - 1]->r.id < child->r.id);
		amounts_add(&allocated, &child->allocated);
		amounts_add(&fixed, &child->fixed);
		for (enum amount_kind k = 0; k < AMOUNT_KINDS; k++)
			waiting.of[k] += child->waiting.of[k];
	}
	for (int k = 0; k < AMOUNT_KINDS; k++) {
		INVARIANT(tenant->allocated.of[k] >= allocated.of[k]);
		INVARIANT(tenant->fixed.of[k] >= fixed.of[k]);
		INVARIANT(tenant->waiting.of[k] >= waiting.of[k]);
		INVARIANT(tenant->fixed.of[k] >= 0 &&
		          tenant->fixed.of[k] <= tenant->allocated.of[k]);
		INVARIANT(tenant->waiting.of[k] >= 0);
	}
}

void tenants_check(const struct tenants *tenants)
{
	size_t children = tenants->root_count, unsettled = 0;
	for (size_t i = 0; i < tenants->count; i++) {
		const struct tenant *tenant = tenants->all[i];
		const struct tenant *parent = tenant->parent;
		INVARIANT(i == 0 || tenants->all[i - 1]->r.id < tenant->r.id);
		INVARIANT(tenants_find(tenants, tenant->r.id) == tenant);
		INVARIANT(text_map_get(&tenants->by_name, tenant->r.name) == tenant);
		INVARIANT(parent == tenants_find(tenants, tenant->r.parent_id));
		children += tenant->child_count;
		unsettled += tenant->unsettled;
		check_sums(tenant);
	}
	INVARIANT(children == tenants->count && unsettled == tenants->unsettled_count);
	INVARIANT(tenants->by_id.count == tenants->count);
	INVARIANT(tenants->by_name.count == tenants->count);
	for (size_t i = 0; i < tenants->root_count; i++)
		INVARIANT(!tenants->roots[i]->parent);
	for (size_t i = 0; i < tenants->unsettled_count; i++)
		INVARIANT(tenants->unsettled[i]->unsettled);
}
