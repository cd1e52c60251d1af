/* usage.c - what tenants used in a period and what it cost, from their runs */
#include "store/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/number.h"
#include "store/archive_local.h"
#include "store/backend.h"

#define HOUR_MS INT64_C(3600000)

/* Sums of GPU time are taken in two parts, so that no database's integers overflow. */
#define SUM_PART INT64_C(1000000)

/* Of one tenant or (0) of all, from the first to before the last. */
struct period {
	int64_t tenant_id, from_ms, until_ms;
};

/* Usage by tenant that is being collected, in the arena. */
struct reckoning {
	struct arena *arena;
	struct usage **at;
	size_t count, capacity;
	struct map tenants;
};

static struct usage *usage_of(struct reckoning *reckoning, int64_t tenant_id)
{
	struct usage *usage = map_get(&reckoning->tenants, tenant_id);
	if (usage)
		return usage;
	usage = arena_alloc(reckoning->arena, sizeof(*usage));
	*usage = (struct usage){ .tenant_id = tenant_id };
	map_put(&reckoning->tenants, tenant_id, usage);
	array_reserve(reckoning->at, reckoning->capacity, reckoning->count + 1);
	reckoning->at[reckoning->count++] = usage;
	return usage;
}

static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static bool take_runs(void *context, const char *const *values, struct error *error)
{
	int64_t tenant_id = 0;
	if (!archive_number(values[0], &tenant_id, error))
		return false;
	struct usage *usage = usage_of(context, tenant_id);
	return archive_number(values[1], &usage->jobs, error) &&
	       archive_number(values[2], &usage->runs, error) &&
	       archive_number(values[3], &usage->gpu_memory_s, error) &&
	       archive_number(values[4], &usage->cpu_s, error);
}

/* Adds what was used at one price, from a price and the two parts of a sum. The cost is
 * rounded down, as the tenant's meter does. */
static bool add_priced(const char *const *values, int64_t *all_gpu_ms, int64_t *cost,
                       struct error *error)
{
	int64_t price = 0, parts = 0, rest = 0;
	if (!archive_number(values[0], &price, error) ||
	    !archive_number(values[1], &parts, error) || !archive_number(values[2], &rest, error))
		return false;
	int64_t gpu_ms = add_saturated(muldiv_down(parts, SUM_PART, 1), rest);
	*all_gpu_ms = add_saturated(*all_gpu_ms, gpu_ms);
	*cost = add_saturated(*cost, muldiv_down(gpu_ms, price, WHOLE_GPU * HOUR_MS));
	return true;
}

static bool take_price(void *context, const char *const *values, struct error *error)
{
	int64_t tenant_id = 0;
	if (!archive_number(values[0], &tenant_id, error))
		return false;
	struct usage *usage = usage_of(context, tenant_id);
	return add_priced(values + 1, &usage->gpu_ms, &usage->cost, error);
}

static bool take_ends(void *context, int64_t tenant_id, enum job_state state, int64_t count,
                      struct error *error)
{
	struct usage *usage = usage_of(context, tenant_id);
	(void)error;
	if (state == JOB_COMPLETED)
		usage->completed = count;
	else if (state == JOB_FAILED)
		usage->failed = count;
	else if (state == JOB_CANCELLED)
		usage->cancelled = count;
	return true;
}

/* What a reservation counts for, from its parts: see reservation_amounts() in the core. */
static const char *const shares[] = {
	[DIALECT_SQLITE] = "(SELECT coalesce(sum(json_extract(part.value, '$[2]')), 0) "
			   "FROM json_each(parts) AS part)",
	[DIALECT_POSTGRES] = "(SELECT coalesce(sum((part->>2)::bigint), 0)::bigint "
			     "FROM jsonb_array_elements(parts::jsonb) AS part)",
};
static const char *const memories[] = {
	[DIALECT_SQLITE] = "(SELECT coalesce(sum(json_extract(part.value, '$[1]')), 0) "
			   "FROM json_each(parts) AS part "
			   "WHERE json_extract(part.value, '$[4]') = 0)",
	[DIALECT_POSTGRES] = "(SELECT coalesce(sum((part->>1)::bigint), 0)::bigint "
			     "FROM jsonb_array_elements(parts::jsonb) AS part "
			     "WHERE (part->>4)::bigint = 0)",
};

static void usage_put_tenant(struct buffer *sql, const char *column, int64_t tenant_id)
{
	if (tenant_id)
		buffer_print(sql, " AND %s = %lld", column, (long long)tenant_id);
}

/* Of a run: until when its work is safe, and when its task had started. */
#define SAFE_MS                                                                                    \
	"CASE WHEN job_id = 0 OR ending IN ('completed', 'goes_on', 'unloaded') THEN ended_ms "    \
	"WHEN saved_ms > began_ms THEN saved_ms ELSE began_ms END"
#define START_MS "CASE WHEN started_ms = 0 THEN ended_ms ELSE started_ms END"

/* WITH used AS (...): every run in the period, cut to it, current ones included. */
static void put_used(struct buffer *sql, enum dialect dialect, const struct period *period)
{
	long long from = period->from_ms, until = period->until_ms;
	const char *counted = "CASE WHEN counted_ms > 0 THEN counted_ms ELSE since_ms END";
	buffer_print(sql,
	             "WITH used AS (SELECT tenant_id, job_id, share, memory_mib, cpu_milli, "
	             "CASE WHEN began_ms < %lld THEN %lld ELSE began_ms END AS first_ms, "
	             "CASE WHEN ended_ms > %lld THEN %lld ELSE ended_ms END AS last_ms, " SAFE_MS
	             " AS safe_ms, " START_MS " AS start_ms "
	             "FROM runs WHERE ended_ms > %lld AND began_ms < %lld",
	             from, from, until, until, from, until);
	usage_put_tenant(sql, "tenant_id", period->tenant_id);
	buffer_print(
	    sql,
	    " UNION ALL SELECT tenant_id, job_id, share, memory_mib, cpu_milli, "
	    "CASE WHEN counted < %lld THEN %lld ELSE counted END, %lld, %lld, "
	    "CASE WHEN job_id = 0 THEN counted WHEN started_ms = 0 THEN %lld ELSE started_ms END "
	    "FROM "
	    "(SELECT coalesce(jobs.tenant_id, models.tenant_id) AS tenant_id, job_id, "
	    "%s AS share, %s AS memory_mib, reservations.cpu_milli AS cpu_milli, %s AS counted, "
	    "reservations.started_ms AS started_ms "
	    "FROM reservations LEFT JOIN jobs ON jobs.id = job_id "
	    "LEFT JOIN models ON models.id = model_id WHERE phase <> 'releasing') AS held "
	    "WHERE counted < %lld",
	    from, from, until, until, until, shares[dialect], memories[dialect], counted, until);
	usage_put_tenant(sql, "tenant_id", period->tenant_id);
	buffer_text(sql, ")");
}

static bool read_amounts(struct backend *backend, const struct period *period,
                         struct reckoning *reckoning, struct error *error)
{
	struct buffer sql = { 0 };
	put_used(&sql, backend->dialect, period);
	buffer_text(&sql, " SELECT tenant_id, "
	                  "count(DISTINCT CASE WHEN job_id > 0 THEN job_id END), count(*), "
	                  "sum((last_ms - first_ms) * memory_mib / 1000), "
	                  "sum((last_ms - first_ms) * cpu_milli / 1000) "
	                  "FROM used GROUP BY tenant_id");
	bool done = backend->query(backend, sql.data, take_runs, reckoning, error);
	buffer_free(&sql);
	return done;
}

/* ..., priced AS (...): each run is cut once more where the price of its tenant changed. */
static void put_priced(struct buffer *sql)
{
	buffer_print(sql,
	             ", spans AS (SELECT tenant_id, cost_per_gpu_hour AS price, since_ms, "
	             "lead(since_ms, 1, %lld) OVER (PARTITION BY tenant_id ORDER BY since_ms) "
	             "AS until_ms FROM prices), "
	             "priced AS (SELECT used.tenant_id AS tenant_id, job_id, price, share * "
	             "(CASE WHEN last_ms > until_ms THEN until_ms ELSE last_ms END - "
	             "CASE WHEN first_ms < since_ms THEN since_ms ELSE first_ms END) AS gpu_ms "
	             "FROM used JOIN spans ON spans.tenant_id = used.tenant_id "
	             "AND until_ms > first_ms AND since_ms < last_ms)",
	             (long long)INT64_MAX);
}

static bool read_prices(struct backend *backend, const struct period *period,
                        struct reckoning *reckoning, struct error *error)
{
	struct buffer sql = { 0 };
	put_used(&sql, backend->dialect, period);
	put_priced(&sql);
	buffer_print(&sql,
	             " SELECT tenant_id, price, sum(gpu_ms / %lld), sum(gpu_ms %% %lld) "
	             "FROM priced GROUP BY tenant_id, price",
	             (long long)SUM_PART, (long long)SUM_PART);
	bool done = backend->query(backend, sql.data, take_price, reckoning, error);
	buffer_free(&sql);
	return done;
}

/* ", sum(...), ..." of four: idle and lost, each in the two parts of a sum. */
static void put_waste(struct buffer *sql, enum dialect dialect)
{
	const char *most = dialect == DIALECT_SQLITE ? "max" : "greatest";
	const char *least = dialect == DIALECT_SQLITE ? "min" : "least";
	struct buffer idle = { 0 }, lost = { 0 };

	buffer_print(&idle, "share * %s(%s(last_ms, start_ms) - first_ms, 0)", most, least);
	buffer_print(&lost, "share * %s(last_ms - %s(first_ms, safe_ms, start_ms), 0)", most, most);
	for (int i = 0; i < 2; i++) {
		const char *what = i == 0 ? idle.data : lost.data;
		buffer_print(sql, ", sum(%s / %lld), sum(%s %% %lld)", what, (long long)SUM_PART,
		             what, (long long)SUM_PART);
	}
	buffer_free(&idle);
	buffer_free(&lost);
}

static bool take_sum(const char *const *values, int64_t *sum, struct error *error)
{
	int64_t parts = 0, rest = 0;
	if (!archive_number(values[0], &parts, error) || !archive_number(values[1], &rest, error))
		return false;
	*sum = add_saturated(*sum, add_saturated(muldiv_down(parts, SUM_PART, 1), rest));
	return true;
}

static bool add_waste(const char *const *values, struct waste *waste, struct error *error)
{
	return take_sum(values, &waste->idle_gpu_ms, error) &&
	       take_sum(values + 2, &waste->lost_gpu_ms, error);
}

static bool take_waste(void *context, const char *const *values, struct error *error)
{
	int64_t tenant_id = 0;
	if (!archive_number(values[0], &tenant_id, error))
		return false;
	return add_waste(values + 1, &usage_of(context, tenant_id)->waste, error);
}

static bool read_waste(struct backend *backend, const struct period *period,
                       struct reckoning *reckoning, struct error *error)
{
	struct buffer sql = { 0 };
	put_used(&sql, backend->dialect, period);
	buffer_text(&sql, " SELECT tenant_id");
	put_waste(&sql, backend->dialect);
	buffer_text(&sql, " FROM used GROUP BY tenant_id");
	bool done = backend->query(backend, sql.data, take_waste, reckoning, error);
	buffer_free(&sql);
	return done;
}

static bool read_ends(struct backend *backend, const struct period *period,
                      struct reckoning *reckoning, struct error *error)
{
	struct tallying ends = { take_ends, reckoning };
	struct buffer sql = { 0 };
	buffer_print(&sql,
	             "SELECT tenant_id, state, count(*) FROM jobs WHERE completed_ms >= %lld "
	             "AND completed_ms < %lld AND completed_ms > 0",
	             (long long)period->from_ms, (long long)period->until_ms);
	usage_put_tenant(&sql, "tenant_id", period->tenant_id);
	buffer_text(&sql, " GROUP BY tenant_id, state");
	bool done = backend->query(backend, sql.data, archive_take_tally, &ends, error);
	buffer_free(&sql);
	return done;
}

/* All of it as of one moment. */
static bool usage_read_all(struct backend *backend, const struct period *period,
                           struct reckoning *reckoning, struct error *error)
{
	struct error ignored;
	const char *begin = backend->dialect == DIALECT_SQLITE
	                        ? "BEGIN"
	                        : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
	if (!backend->execute(backend, begin, error))
		return false;
	bool done = read_amounts(backend, period, reckoning, error) &&
	            read_prices(backend, period, reckoning, error) &&
	            read_waste(backend, period, reckoning, error) &&
	            read_ends(backend, period, reckoning, error);
	return backend->execute(backend, "COMMIT", done ? error : &ignored) && done;
}

static int compare_tenants(const void *a, const void *b)
{
	const struct usage *x = a, *y = b;
	return (x->tenant_id > y->tenant_id) - (x->tenant_id < y->tenant_id);
}

bool usage_read(struct store *store, int64_t tenant_id, int64_t from_ms, int64_t until_ms,
                int64_t now_ms, struct arena *arena, struct usage **usage, int64_t *count,
                struct error *error)
{
	struct period period = { tenant_id, from_ms, min64(until_ms, now_ms) };
	struct reckoning reckoning = { .arena = arena };

	bool done =
	    archive_is_ready(store, error) &&
	    archive_finish(store, usage_read_all(store_backend(store), &period, &reckoning, error),
	                   error);
	*count = (int64_t)reckoning.count;
	*usage = arena_alloc(arena, (reckoning.count + 1) * sizeof(**usage));
	for (size_t i = 0; i < reckoning.count; i++)
		(*usage)[i] = *reckoning.at[i];
	if (reckoning.count > 1)
		qsort(*usage, reckoning.count, sizeof(**usage), compare_tenants);
	map_free(&reckoning.tenants);
	free(reckoning.at);
	return done;
}

/* Jobs that are being collected; `at` has room for all. */
struct job_reckoning {
	struct job_usage *at;
	int64_t count, limit;
};

/* Rows come by job, one for each price. */
static bool take_job(void *context, const char *const *values, struct error *error)
{
	struct job_reckoning *reckoning = context;
	int64_t job_id = 0, tenant_id = 0;
	if (!archive_number(values[0], &job_id, error) ||
	    !archive_number(values[1], &tenant_id, error))
		return false;
	if (reckoning->count == 0 || reckoning->at[reckoning->count - 1].job_id != job_id) {
		INVARIANT(reckoning->count < reckoning->limit);
		reckoning->at[reckoning->count++] =
		    (struct job_usage){ .job_id = job_id, .tenant_id = tenant_id };
	}
	struct job_usage *usage = &reckoning->at[reckoning->count - 1];
	return add_priced(values + 2, &usage->gpu_ms, &usage->cost, error);
}

/* Jobs come as before, in the same order. */
struct job_wasting {
	struct job_reckoning *jobs;
	int64_t next;
};

static bool take_job_waste(void *context, const char *const *values, struct error *error)
{
	struct job_wasting *wasting = context;
	int64_t job_id = 0;
	if (!archive_number(values[0], &job_id, error))
		return false;
	while (wasting->next < wasting->jobs->count &&
	       wasting->jobs->at[wasting->next].job_id > job_id)
		wasting->next++;
	if (wasting->next == wasting->jobs->count ||
	    wasting->jobs->at[wasting->next].job_id != job_id)
		return true;
	return add_waste(values + 1, &wasting->jobs->at[wasting->next].waste, error);
}

static void put_chosen(struct buffer *sql, const struct job_usage_filter *filter)
{
	buffer_text(sql, ", chosen AS (SELECT DISTINCT job_id FROM used WHERE job_id > 0");
	if (filter->before_id > 0)
		buffer_print(sql, " AND job_id < %lld", (long long)filter->before_id);
	for (size_t i = 0; i < filter->tenant_count; i++)
		buffer_print(sql, "%s%lld", i == 0 ? " AND tenant_id IN (" : ", ",
		             (long long)filter->tenant_ids[i]);
	buffer_print(sql, "%s ORDER BY job_id DESC LIMIT %lld)",
	             filter->tenant_count > 0 ? ")" : "", (long long)filter->limit);
}

bool usage_read_jobs(struct store *store, const struct job_usage_filter *filter,
                     struct arena *arena, struct job_usage **usage, int64_t *count,
                     struct error *error)
{
	struct period period = { 0, filter->from_ms, min64(filter->until_ms, filter->now_ms) };
	struct job_reckoning reckoning = { .limit = filter->limit };
	struct buffer sql = { 0 };

	INVARIANT(filter->limit > 0);
	*count = 0;
	if (!archive_is_ready(store, error))
		return false;
	struct backend *backend = store_backend(store);
	*usage = reckoning.at =
	    arena_alloc(arena, (size_t)filter->limit * sizeof(struct job_usage));
	put_used(&sql, backend->dialect, &period);
	put_priced(&sql);
	put_chosen(&sql, filter);
	buffer_print(&sql,
	             " SELECT job_id, tenant_id, price, sum(gpu_ms / %lld), sum(gpu_ms %% %lld) "
	             "FROM priced WHERE job_id IN (SELECT job_id FROM chosen) "
	             "GROUP BY job_id, tenant_id, price ORDER BY job_id DESC",
	             (long long)SUM_PART, (long long)SUM_PART);
	bool done = backend->query(backend, sql.data, take_job, &reckoning, error);
	buffer_clear(&sql);
	put_used(&sql, backend->dialect, &period);
	put_chosen(&sql, filter);
	buffer_text(&sql, " SELECT job_id");
	put_waste(&sql, backend->dialect);
	buffer_text(&sql, " FROM used WHERE job_id IN (SELECT job_id FROM chosen) "
	                  "GROUP BY job_id ORDER BY job_id DESC");
	done = done && backend->query(backend, sql.data, take_job_waste,
	                              &(struct job_wasting){ .jobs = &reckoning }, error);
	done = archive_finish(store, done, error);
	buffer_free(&sql);
	*count = reckoning.count;
	return done;
}

/* Owners that are being collected, each with the tenant that the job is of. */
struct owner_reckoning {
	struct arena *arena;
	struct owner_usage *at;
	int64_t count, limit;
};

static struct owner_usage *owner_of(struct owner_reckoning *reckoning, int64_t tenant_id,
                                    const char *user)
{
	for (int64_t i = reckoning->count - 1; i >= 0; i--)
		if (reckoning->at[i].tenant_id == tenant_id &&
		    strcmp(reckoning->at[i].user, user) == 0)
			return &reckoning->at[i];
	if (reckoning->count == reckoning->limit)
		return NULL;
	reckoning->at[reckoning->count] =
	    (struct owner_usage){ .tenant_id = tenant_id,
		                  .user = arena_string(reckoning->arena, user) };
	return &reckoning->at[reckoning->count++];
}

static bool take_owner(void *context, const char *const *values, struct error *error)
{
	int64_t tenant_id = 0;
	if (!archive_number(values[0], &tenant_id, error))
		return false;
	struct owner_usage *usage = owner_of(context, tenant_id, values[1] ? values[1] : "");
	return !usage || add_priced(values + 2, &usage->gpu_ms, &usage->cost, error);
}

static bool take_owner_waste(void *context, const char *const *values, struct error *error)
{
	int64_t tenant_id = 0;
	if (!archive_number(values[0], &tenant_id, error))
		return false;
	struct owner_usage *usage = owner_of(context, tenant_id, values[1] ? values[1] : "");
	return !usage || (archive_number(values[2], &usage->jobs, error) &&
	                  add_waste(values + 3, &usage->waste, error));
}

static void usage_put_tenants(struct buffer *sql, const struct job_usage_filter *filter)
{
	for (size_t i = 0; i < filter->tenant_count; i++)
		buffer_print(sql, "%s%lld", i == 0 ? " AND jobs.tenant_id IN (" : ", ",
		             (long long)filter->tenant_ids[i]);
	if (filter->tenant_count > 0)
		buffer_text(sql, ")");
}

static int compare_owners(const void *a, const void *b)
{
	const struct owner_usage *x = a, *y = b;
	if (x->gpu_ms != y->gpu_ms)
		return x->gpu_ms < y->gpu_ms ? 1 : -1;
	if (x->tenant_id != y->tenant_id)
		return x->tenant_id < y->tenant_id ? -1 : 1;
	return strcmp(x->user, y->user);
}

bool usage_read_owners(struct store *store, const struct job_usage_filter *filter,
                       struct arena *arena, struct owner_usage **usage, int64_t *count,
                       struct error *error)
{
	struct period period = { 0, filter->from_ms, min64(filter->until_ms, filter->now_ms) };
	struct owner_reckoning reckoning = { .arena = arena, .limit = filter->limit };
	struct buffer sql = { 0 };

	INVARIANT(filter->limit > 0);
	*count = 0;
	if (!archive_is_ready(store, error))
		return false;
	struct backend *backend = store_backend(store);
	*usage = reckoning.at =
	    arena_alloc(arena, (size_t)filter->limit * sizeof(struct owner_usage));
	put_used(&sql, backend->dialect, &period);
	put_priced(&sql);
	buffer_print(&sql,
	             " SELECT jobs.tenant_id, jobs.\"user\", price, sum(priced.gpu_ms / %lld), "
	             "sum(priced.gpu_ms %% %lld) FROM priced JOIN jobs ON jobs.id = priced.job_id "
	             "WHERE priced.job_id > 0",
	             (long long)SUM_PART, (long long)SUM_PART);
	usage_put_tenants(&sql, filter);
	buffer_text(&sql, " GROUP BY jobs.tenant_id, jobs.\"user\", price");
	bool done = backend->query(backend, sql.data, take_owner, &reckoning, error);
	buffer_clear(&sql);
	put_used(&sql, backend->dialect, &period);
	buffer_text(&sql, " SELECT jobs.tenant_id, jobs.\"user\", count(DISTINCT used.job_id)");
	put_waste(&sql, backend->dialect);
	buffer_text(&sql, " FROM used JOIN jobs ON jobs.id = used.job_id WHERE used.job_id > 0");
	usage_put_tenants(&sql, filter);
	buffer_text(&sql, " GROUP BY jobs.tenant_id, jobs.\"user\"");
	done = done && backend->query(backend, sql.data, take_owner_waste, &reckoning, error);
	done = archive_finish(store, done, error);
	buffer_free(&sql);
	*count = reckoning.count;
	if (reckoning.count > 1)
		qsort(reckoning.at, (size_t)reckoning.count, sizeof(*reckoning.at), compare_owners);
	return done;
}
