/* accuracy.c - how well run times and starts of jobs were predicted, over a period */
#include "store/accuracy.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/number.h"
#include "core/predict/durations.h"
#include "core/queue/predict.h"
#include "store/archive_local.h"
#include "store/backend.h"

/* Errors are counted by their logarithm, in bins of 1/64 octave up to a factor of 2^16. */
#define ERROR_BIN (LOG_ONE / 64)
#define ERROR_BINS (16 * 64)

struct score {
	struct accuracy accuracy;
	int64_t errors[ERROR_BINS];
};

struct scoring {
	struct map tenants; /* id -> struct score */
	struct score bases[BASES], all;
};

static struct score *score_of(struct scoring *scoring, int64_t tenant_id)
{
	struct score *score = map_get(&scoring->tenants, tenant_id);

	if (!score) {
		score = NEW(struct score);
		score->accuracy = (struct accuracy){ .tenant_id = tenant_id, .basis = -1 };
		map_put(&scoring->tenants, tenant_id, score);
	}
	return score;
}

static void score_add(struct score *score, int64_t took_ms, int64_t p50_ms, int64_t p90_ms)
{
	int64_t off = abs(log_of(max64(took_ms, 1)) - log_of(max64(p50_ms, 1)));

	score->accuracy.jobs++;
	score->accuracy.within_p90 += took_ms <= p90_ms;
	score->accuracy.within_twice += off <= LOG_ONE;
	score->errors[min64(off / ERROR_BIN, ERROR_BINS - 1)]++;
}

/* The middle of the bin in which the median is. */
static void score_finish(struct score *score)
{
	int64_t before = 0;

	for (int bin = 0; bin < ERROR_BINS && score->accuracy.jobs > 0; bin++) {
		before += score->errors[bin];
		if (2 * before < score->accuracy.jobs)
			continue;
		int32_t log = 10 * LOG_ONE + bin * ERROR_BIN + ERROR_BIN / 2;
		score->accuracy.error = muldiv_down(power_of(log), 1000, 1 << 10);
		return;
	}
}

static bool take_outcome(void *context, const char *const *values, struct error *error)
{
	struct scoring *scoring = context;
	int64_t at[5] = { 0 }; /* tenant, basis, took, p50, p90 */

	for (int i = 0; i < 5; i++)
		if (!archive_number(values[i], &at[i], error))
			return false;
	if (at[1] < 0 || at[1] >= BASES)
		return true;
	score_add(&scoring->all, at[2], at[3], at[4]);
	score_add(score_of(scoring, at[0]), at[2], at[3], at[4]);
	score_add(&scoring->bases[at[1]], at[2], at[3], at[4]);
	return true;
}

static bool take_promises(void *context, const char *const *values, struct error *error)
{
	struct scoring *scoring = context;
	int64_t tenant_id = 0, promised = 0, kept = 0;

	if (!archive_number(values[0], &tenant_id, error) ||
	    !archive_number(values[1], &promised, error) ||
	    !archive_number(values[2], &kept, error))
		return false;
	struct score *score = score_of(scoring, tenant_id);
	score->accuracy.promised = promised;
	score->accuracy.kept = kept;
	scoring->all.accuracy.promised += promised;
	scoring->all.accuracy.kept += kept;
	return true;
}

static void accuracy_put_filter(struct buffer *sql, const struct accuracy_filter *filter,
                                const char *time)
{
	buffer_print(sql, " AND %s >= %lld AND %s < %lld", time, (long long)filter->from_ms, time,
	             (long long)filter->until_ms);
	for (size_t i = 0; i < filter->tenant_count; i++)
		buffer_print(sql, "%s%lld", i == 0 ? " AND tenant_id IN (" : ", ",
		             (long long)filter->tenant_ids[i]);
	if (filter->tenant_count > 0)
		buffer_text(sql, ")");
}

static bool accuracy_query(struct backend *backend, const struct accuracy_filter *filter,
                           struct scoring *scoring, struct error *error)
{
	struct buffer sql = { 0 };

	buffer_text(&sql, "SELECT tenant_id, basis, took_ms, p50_ms, p90_ms FROM outcomes "
	                  "WHERE p50_ms > 0");
	accuracy_put_filter(&sql, filter, "ended_ms");
	bool done = backend->query(backend, sql.data, take_outcome, scoring, error);
	buffer_clear(&sql);
	buffer_text(&sql, "SELECT tenant_id, count(*), "
	                  "sum(CASE WHEN started_ms <= promised_ms THEN 1 ELSE 0 END) FROM jobs "
	                  "WHERE promised_ms > 0 AND started_ms > 0");
	accuracy_put_filter(&sql, filter, "started_ms");
	buffer_text(&sql, " GROUP BY tenant_id");
	done = done && backend->query(backend, sql.data, take_promises, scoring, error);
	buffer_free(&sql);
	return done;
}

static int accuracy_compare(const void *a, const void *b)
{
	const struct accuracy *x = a, *y = b;

	return (x->tenant_id > y->tenant_id) - (x->tenant_id < y->tenant_id);
}

static void accuracy_collect(struct scoring *scoring, struct arena *arena,
                             struct accuracy_report *report)
{
	report->tenants =
	    arena_alloc(arena, (scoring->tenants.count + 1) * sizeof(struct accuracy));
	report->bases = arena_alloc(arena, BASES * sizeof(struct accuracy));
	for (size_t i = 0; i < scoring->tenants.capacity; i++) {
		struct score *score = scoring->tenants.entries[i].value;
		if (!score)
			continue;
		score_finish(score);
		report->tenants[report->tenant_count++] = score->accuracy;
	}
	if (report->tenant_count > 1)
		qsort(report->tenants, (size_t)report->tenant_count, sizeof(struct accuracy),
		      accuracy_compare);
	for (int basis = 0; basis < BASES; basis++) {
		score_finish(&scoring->bases[basis]);
		if (scoring->bases[basis].accuracy.jobs > 0)
			report->bases[report->basis_count++] = scoring->bases[basis].accuracy;
	}
	score_finish(&scoring->all);
	report->all = scoring->all.accuracy;
}

bool accuracy_read(struct store *store, const struct accuracy_filter *filter, struct arena *arena,
                   struct accuracy_report *report, struct error *error)
{
	struct scoring *scoring = NEW(struct scoring);

	INVARIANT(filter->from_ms <= filter->until_ms);
	*report = (struct accuracy_report){ 0 };
	scoring->all.accuracy.basis = -1;
	for (int basis = 0; basis < BASES; basis++)
		scoring->bases[basis].accuracy.basis = basis;
	bool done = archive_is_ready(store, error) &&
	            archive_finish(
			store, accuracy_query(store_backend(store), filter, scoring, error), error);
	if (done)
		accuracy_collect(scoring, arena, report);
	for (size_t i = 0; i < scoring->tenants.capacity; i++)
		free(scoring->tenants.entries[i].value);
	map_free(&scoring->tenants);
	free(scoring);
	return done;
}
