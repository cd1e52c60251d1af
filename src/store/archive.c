/* archive.c - what has left the core and is still stored: finished jobs, decisions, events */
#include "store/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number_text.h"
#include "store/archive_local.h"
#include "store/backend.h"
#include "store/cell.h"

enum { LIMIT = 100 };

/* Records of one type that are being collected. */
struct collection {
	struct arena *arena;
	const struct record_type *type;
	const void **records;
	size_t count, capacity;
};

static bool archive_collect(void *context, const void *record, struct error *error)
{
	struct collection *collection = context;
	(void)error;
	array_reserve(collection->records, collection->capacity, collection->count + 1);
	collection->records[collection->count++] =
	    fields_copy(collection->arena, collection->type, record);
	return true;
}

static bool scan(struct store *store, enum record_kind kind, const char *rest, struct arena *arena,
                 struct collection *collection, struct error *error)
{
	const struct schema *schema = store_schema(store);
	struct backend *backend = store_backend(store);
	*collection = (struct collection){ .arena = arena, .type = record_type(kind) };
	return backend->scan(backend, schema->kinds[kind].table, schema->kinds[kind].of, rest,
	                     archive_collect, collection, error);
}

/* The records themselves in one array, which is the arena's; ends the collection. */
static void *archive_gather(struct collection *collection, int64_t *count)
{
	size_t size = collection->type->size;
	char *array = arena_alloc(collection->arena, (collection->count + 1) * size);
	for (size_t i = 0; i < collection->count; i++)
		memcpy(array + i * size, collection->records[i], size);
	*count = (int64_t)collection->count;
	free(collection->records);
	return array;
}

/* A state and a time later another process may have deleted a job, so pairs are
 * made by id, which both are ordered by in the same way. */
static int64_t pair(const struct collection *jobs, const struct collection *states,
                    struct archived_job *pairs)
{
	int64_t count = 0;
	size_t next = 0;
	for (size_t i = 0; i < states->count; i++) {
		const struct job_state_record *state = states->records[i];
		size_t at = next;
		while (at < jobs->count &&
		       ((const struct job_record *)jobs->records[at])->id != state->id)
			at++;
		if (at == jobs->count)
			continue;
		pairs[count++] =
		    (struct archived_job){ *(const struct job_record *)jobs->records[at], *state };
		next = at + 1;
	}
	return count;
}

static bool read_jobs(struct store *store, const char *rest, struct arena *arena,
                      struct archived_job **pairs, int64_t *count, struct error *error)
{
	struct collection jobs = { 0 }, states = { 0 };
	bool done = scan(store, RECORD_JOB, rest, arena, &jobs, error) &&
	            scan(store, RECORD_JOB_STATE, rest, arena, &states, error);
	if (done) {
		*pairs = arena_alloc(arena, (jobs.count + 1) * sizeof(**pairs));
		*count = pair(&jobs, &states, *pairs);
	}
	free(jobs.records);
	free(states.records);
	return done;
}

static bool archive_lookup(struct store *store, int64_t id, struct arena *arena,
                           struct archived_job *job, struct task_record **tasks,
                           int64_t *task_count, struct error *error)
{
	char rest[96];
	struct archived_job *found;
	int64_t count = 0;
	struct collection collection;

	snprintf(rest, sizeof(rest), "WHERE archived AND id = %lld", (long long)id);
	if (!read_jobs(store, rest, arena, &found, &count, error))
		return false;
	if (count == 0)
		return error_set(error, ERROR_NOT_FOUND, "job-%lld is not known", (long long)id);
	*job = found[0];
	if (!tasks)
		return true;
	snprintf(rest, sizeof(rest), "WHERE job_id = %lld ORDER BY 2", (long long)id);
	bool done = scan(store, RECORD_TASK, rest, arena, &collection, error);
	*tasks = archive_gather(&collection, task_count);
	return done;
}

/* ` AND (name IN (1,2))`, or nothing where the list is empty. */
static void put_list(struct buffer *sql, const char *name, const int64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i == 0)
			buffer_print(sql, " AND %s IN (", name);
		buffer_print(sql, "%s%lld", i == 0 ? "" : ",", (long long)numbers[i]);
	}
	buffer_text(sql, count > 0 ? ")" : "");
}

static void put_filter(struct buffer *sql, const struct archive_filter *filter)
{
	buffer_text(sql, "WHERE archived");
	if (filter->tenant_id)
		buffer_print(sql, " AND tenant_id = %lld", (long long)filter->tenant_id);
	put_list(sql, "tenant_id", filter->tenant_ids, filter->tenant_count);
	if (filter->state >= 0)
		buffer_print(sql, " AND state = '%s'", word_of(&job_state_words, filter->state));
}

static void put_order(struct buffer *sql, const struct archive_filter *filter)
{
	buffer_text(sql, filter->oldest_first ? " ORDER BY id" : " ORDER BY id DESC");
}

/* Those of the filter in their order, from `behind_id` on. */
static void put_part(struct buffer *sql, const struct archive_filter *filter, int64_t limit)
{
	put_filter(sql, filter);
	if (filter->behind_id)
		buffer_print(sql, " AND id %c %lld", filter->oldest_first ? '>' : '<',
		             (long long)filter->behind_id);
	put_order(sql, filter);
	buffer_print(sql, " LIMIT %lld", (long long)limit);
}

static int64_t limit_of(const struct archive_filter *filter)
{
	return filter->limit ? filter->limit : LIMIT;
}

static bool store_archive_list(struct store *store, const struct archive_filter *filter,
                               struct arena *arena, struct archived_job **jobs, int64_t *count,
                               struct error *error)
{
	struct buffer rest = { 0 };
	put_part(&rest, filter, limit_of(filter));
	bool done = read_jobs(store, rest.data, arena, jobs, count, error);
	buffer_free(&rest);
	return done;
}

/* A search that is under way, and the ids of what it found and keeps. */
struct searching {
	struct archive_search *search;
	int64_t examined, limit;
	int64_t *ids;
	size_t count, capacity;
};

static bool look_at(void *context, const void *record, struct error *error)
{
	struct searching *searching = context;
	struct archive_search *search = searching->search;
	const struct job_record *job = record;
	(void)error;
	if (searching->examined++ == search->most) {
		search->is_partial = true;
	} else if (search->wants(search->context, job) && search->matched++ < searching->limit) {
		array_reserve(searching->ids, searching->capacity, searching->count + 1);
		searching->ids[searching->count++] = job->id;
	}
	return true;
}

static bool search_jobs(struct store *store, const struct archive_filter *filter,
                        struct archive_search *search, struct arena *arena,
                        struct archived_job **jobs, int64_t *count, struct error *error)
{
	const struct schema *schema = store_schema(store);
	struct backend *backend = store_backend(store);
	struct searching searching = { .search = search, .limit = limit_of(filter) };
	struct buffer rest = { 0 };

	*count = 0;
	search->matched = 0;
	search->is_partial = false;
	put_part(&rest, filter, search->most + 1);
	bool done =
	    backend->scan(backend, schema->kinds[RECORD_JOB].table, schema->kinds[RECORD_JOB].of,
	                  rest.data, look_at, &searching, error);
	if (done && searching.count > 0) {
		buffer_clear(&rest);
		buffer_text(&rest, "WHERE archived");
		put_list(&rest, "id", searching.ids, searching.count);
		put_order(&rest, filter);
		done = read_jobs(store, rest.data, arena, jobs, count, error);
	}
	free(searching.ids);
	buffer_free(&rest);
	return done;
}

static bool read_state(const char *text, int *state, struct error *error)
{
	for (*state = 0; text && *state < JOB_STATES; ++*state)
		if (strcmp(text, job_state_words.at[*state]) == 0)
			return true;
	return error_set(error, ERROR_CORRUPT, "a job is stored in the state '%s'",
	                 text ? text : "NULL");
}

bool archive_number(const char *text, int64_t *number, struct error *error)
{
	return (text && number_read(text_of(text), INT64_MIN, INT64_MAX, number)) ||
	       error_set(error, ERROR_CORRUPT, "a number is stored as '%s'", text ? text : "NULL");
}

static bool take_count(void *context, const char *const *values, struct error *error)
{
	int64_t *counts = context;
	int state;
	return read_state(values[0], &state, error) &&
	       archive_number(values[1], &counts[state], error);
}

static bool archive_count_jobs(struct store *store, const struct archive_filter *filter,
                               int64_t *counts, struct error *error)
{
	struct backend *backend = store_backend(store);
	struct buffer sql = { 0 };
	memset(counts, 0, JOB_STATES * sizeof(*counts));
	buffer_text(&sql, "SELECT state, count(*) FROM jobs ");
	put_filter(&sql, filter);
	buffer_text(&sql, " GROUP BY state");
	bool done = backend->query(backend, sql.data, take_count, counts, error);
	buffer_free(&sql);
	return done;
}

bool archive_take_tally(void *context, const char *const *values, struct error *error)
{
	const struct tallying *tallying = context;
	int64_t tenant_id = 0, count = 0;
	int state;
	return archive_number(values[0], &tenant_id, error) &&
	       read_state(values[1], &state, error) && archive_number(values[2], &count, error) &&
	       tallying->each(tallying->context, tenant_id, (enum job_state)state, count, error);
}

/* A row of a decision's arithmetic begins with its GPU. */
static void put_gpus(struct buffer *sql, const int64_t *gpu_ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buffer_print(sql, "%sgpus LIKE '%%[%lld,%%'", i == 0 ? " AND (" : " OR ",
		             (long long)gpu_ids[i]);
	buffer_text(sql, count > 0 ? ")" : "");
}

static bool read_decisions(struct store *store, const struct decision_filter *filter,
                           struct arena *arena, struct decision_record **decisions, int64_t *count,
                           struct error *error)
{
	struct buffer rest = { 0 };
	struct collection collection;
	buffer_print(&rest, "WHERE id < %lld",
	             (long long)(filter->before_id ? filter->before_id : INT64_MAX));
	if (filter->job_id)
		buffer_print(&rest, " AND job_id = %lld", (long long)filter->job_id);
	if (filter->model_id)
		buffer_print(&rest, " AND model_id = %lld", (long long)filter->model_id);
	if (filter->kind >= 0)
		buffer_print(&rest, " AND kind = '%s'", word_of(&decision_words, filter->kind));
	if (filter->placed)
		buffer_text(&rest, " AND kind IN ('start', 'grow', 'load', 'adopt')");
	put_list(&rest, "tenant_id", filter->tenant_ids, filter->tenant_count);
	put_gpus(&rest, filter->gpu_ids, filter->gpu_count);
	buffer_print(&rest, " ORDER BY id DESC LIMIT %lld",
	             (long long)(filter->limit ? filter->limit : LIMIT));
	bool done = scan(store, RECORD_DECISION, rest.data, arena, &collection, error);
	*decisions = archive_gather(&collection, count);
	buffer_free(&rest);
	return done;
}

static struct run_record run_so_far(const struct reservation_record *reservation)
{
	struct run_record run = {
		.job_id = reservation->job_id,
		.task = reservation->task,
		.reservation_id = reservation->id,
		.node_id = reservation->node_id,
		.cpu_milli = reservation->cpu_milli,
		.began_ms =
		    reservation->counted_ms > 0 ? reservation->counted_ms : reservation->since_ms,
		.started_ms = reservation->started_ms,
	};
	for (int64_t i = 0; i < reservation->parts.count; i++) {
		const int64_t *part = reservation->parts.at + i * PART_WIDTH;
		run.share += part[PART_SHARE];
		run.memory_mib += part[PART_WHOLE] ? 0 : part[PART_MIB];
	}
	return run;
}

static bool read_runs(struct store *store, int64_t job_id, struct arena *arena,
                      struct run_record **runs, int64_t *count, struct error *error)
{
	char rest[96];
	struct collection collection, going;
	snprintf(rest, sizeof(rest), "WHERE job_id = %lld ORDER BY id DESC LIMIT %d",
	         (long long)job_id, ARCHIVE_RUNS);
	bool done = scan(store, RECORD_RUN, rest, arena, &collection, error);
	struct run_record *over = archive_gather(&collection, count);
	snprintf(rest, sizeof(rest),
	         "WHERE job_id = %lld AND phase <> 'releasing' ORDER BY id DESC",
	         (long long)job_id);
	done = done && scan(store, RECORD_RESERVATION, rest, arena, &going, error);
	int64_t going_count = 0;
	const struct reservation_record *held = done ? archive_gather(&going, &going_count) : NULL;
	*runs = arena_alloc(arena, (size_t)(going_count + *count + 1) * sizeof(**runs));
	for (int64_t i = 0; i < going_count; i++)
		(*runs)[i] = run_so_far(&held[i]);
	memcpy(*runs + going_count, over, (size_t)*count * sizeof(*over));
	*count += going_count;
	return done;
}

static bool archive_read_events(struct store *store, const struct event_filter *filter,
                                struct arena *arena, struct event **events, int64_t *count,
                                struct error *error)
{
	struct backend *backend = store_backend(store);
	struct buffer rest = { 0 };
	struct collection collection = { .arena = arena, .type = &event_type };
	buffer_print(&rest, "WHERE number > %lld", (long long)filter->since);
	if (filter->job_id)
		buffer_print(&rest, " AND job_id = %lld", (long long)filter->job_id);
	if (filter->ends)
		buffer_text(&rest, " AND kind IN ('job_ended', 'job_preempted', 'job_requeued', "
		                   "'slot_gone')");
	buffer_print(&rest, " ORDER BY number%s LIMIT %lld", filter->ends ? " DESC" : "",
	             (long long)(filter->limit ? filter->limit : LIMIT));
	bool done = backend->scan(backend, store_schema(store)->events, 0, rest.data,
	                          archive_collect, &collection, error);
	*events = archive_gather(&collection, count);
	buffer_free(&rest);
	return done;
}

bool archive_is_ready(struct store *store, struct error *error)
{
	struct backend *backend = store_backend(store);
	return backend->is_connected(backend) || store_read_only(store, error) == STORE_DONE;
}

bool archive_finish(struct store *store, bool done, const struct error *error)
{
	struct backend *backend = store_backend(store);
	if (!done && error->code != ERROR_NOT_FOUND)
		backend->disconnect(backend);
	return done;
}

bool archive_find(struct store *store, int64_t id, struct arena *arena, struct archived_job *job,
                  struct task_record **tasks, int64_t *task_count, struct error *error)
{
	return archive_is_ready(store, error) &&
	       archive_finish(
		   store, archive_lookup(store, id, arena, job, tasks, task_count, error), error);
}

bool archive_list(struct store *store, const struct archive_filter *filter, struct arena *arena,
                  struct archived_job **jobs, int64_t *count, struct error *error)
{
	return archive_is_ready(store, error) &&
	       archive_finish(store, store_archive_list(store, filter, arena, jobs, count, error),
	                      error);
}

bool archive_search(struct store *store, const struct archive_filter *filter,
                    struct archive_search *search, struct arena *arena, struct archived_job **jobs,
                    int64_t *count, struct error *error)
{
	return archive_is_ready(store, error) &&
	       archive_finish(store, search_jobs(store, filter, search, arena, jobs, count, error),
	                      error);
}

bool archive_count(struct store *store, const struct archive_filter *filter,
                   int64_t counts[JOB_STATES], struct error *error)
{
	return archive_is_ready(store, error) &&
	       archive_finish(store, archive_count_jobs(store, filter, counts, error), error);
}

bool archive_count_each(struct store *store, archive_tally each, void *context, struct error *error)
{
	struct tallying tallying = { each, context };
	struct backend *backend = store_backend(store);
	return archive_is_ready(store, error) &&
	       archive_finish(
		   store,
		   backend->query(backend,
	                          "SELECT tenant_id, state, count(*) FROM jobs WHERE archived "
	                          "GROUP BY tenant_id, state",
	                          archive_take_tally, &tallying, error),
		   error);
}

bool archive_decisions(struct store *store, const struct decision_filter *filter,
                       struct arena *arena, struct decision_record **decisions, int64_t *count,
                       struct error *error)
{
	return archive_is_ready(store, error) &&
	       archive_finish(store, read_decisions(store, filter, arena, decisions, count, error),
	                      error);
}

bool archive_events(struct store *store, const struct event_filter *filter, struct arena *arena,
                    struct event **events, int64_t *count, struct error *error)
{
	return archive_is_ready(store, error) &&
	       archive_finish(
		   store, archive_read_events(store, filter, arena, events, count, error), error);
}

bool archive_runs(struct store *store, int64_t job_id, struct arena *arena,
                  struct run_record **runs, int64_t *count, struct error *error)
{
	return archive_is_ready(store, error) &&
	       archive_finish(store, read_runs(store, job_id, arena, runs, count, error), error);
}

bool archive_slot_run(struct store *store, int64_t model_id, int64_t slot_id, struct arena *arena,
                      struct run_record **run, int64_t *count, struct error *error)
{
	struct buffer rest = { 0 };
	struct collection collection = { 0 };

	buffer_print(&rest, "WHERE job_id = 0 AND model_id = %lld", (long long)model_id);
	if (slot_id > 0)
		buffer_print(&rest, " AND reservation_id = %lld", (long long)slot_id);
	buffer_text(&rest, " ORDER BY id DESC LIMIT 1");
	bool done =
	    archive_is_ready(store, error) &&
	    archive_finish(store, scan(store, RECORD_RUN, rest.data, arena, &collection, error),
	                   error);
	*count = 0;
	*run = done ? archive_gather(&collection, count) : NULL;
	buffer_free(&rest);
	return done;
}
