/* archive.c - finished jobs that have left the core: found, listed and counted */
#include "store/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/backend.h"
#include "store/cell.h"

enum { LIMIT = 100 };

/* Records of one type that are being collected. */
struct collection {
	struct arena *arena;
	enum record_kind kind;
	const void **records;
	size_t count, capacity;
};

static bool collect(void *context, const void *record, struct error *error)
{
	struct collection *collection = context;
	(void)error;
	array_reserve(collection->records, collection->capacity, collection->count + 1);
	collection->records[collection->count++] =
	    record_copy(collection->arena, collection->kind, record);
	return true;
}

static bool scan(struct store *store, enum record_kind kind, const char *rest, struct arena *arena,
                 struct collection *collection, struct error *error)
{
	const struct schema *schema = store_schema(store);
	struct backend *backend = store_backend(store);
	*collection = (struct collection){ .arena = arena, .kind = kind };
	return backend->scan(backend, schema->kinds[kind].table, schema->kinds[kind].of, rest,
	                     collect, collection, error);
}

/* A state and a time later another process may have deleted a job, so pairs are
 * made by id. */
static int64_t pair(const struct collection *jobs, const struct collection *states,
                    struct archived_job *pairs)
{
	int64_t count = 0;
	size_t next = 0;
	for (size_t i = 0; i < jobs->count; i++) {
		const struct job_record *job = jobs->records[i];
		const struct job_state_record *state = NULL;
		while (next < states->count) {
			state = states->records[next];
			if (state->id <= job->id)
				break;
			next++;
		}
		if (next < states->count && state && state->id == job->id)
			pairs[count++] = (struct archived_job){ *job, *state };
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

static bool find(struct store *store, int64_t id, struct arena *arena, struct archived_job *job,
                 struct task_record **tasks, int64_t *task_count, struct error *error)
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
	if (done) {
		*tasks = arena_alloc(arena, (collection.count + 1) * sizeof(**tasks));
		*task_count = (int64_t)collection.count;
		for (size_t i = 0; i < collection.count; i++)
			(*tasks)[i] = *(const struct task_record *)collection.records[i];
	}
	free(collection.records);
	return done;
}

static void put_filter(struct buffer *sql, const struct archive_filter *filter)
{
	buffer_text(sql, "WHERE archived");
	if (filter->tenant_id)
		buffer_print(sql, " AND tenant_id = %lld", (long long)filter->tenant_id);
	if (filter->state >= 0)
		buffer_print(sql, " AND state = '%s'", word_of(&job_state_words, filter->state));
}

static bool list(struct store *store, const struct archive_filter *filter, struct arena *arena,
                 struct archived_job **jobs, int64_t *count, struct error *error)
{
	struct buffer rest = { 0 };
	put_filter(&rest, filter);
	if (filter->before_id)
		buffer_print(&rest, " AND id < %lld", (long long)filter->before_id);
	buffer_print(&rest, " ORDER BY id DESC LIMIT %lld",
	             (long long)(filter->limit ? filter->limit : LIMIT));
	bool done = read_jobs(store, rest.data, arena, jobs, count, error);
	buffer_free(&rest);
	return done;
}

static bool take_count(void *context, const char *const *values, struct error *error)
{
	int64_t *counts = context;
	for (int i = 0; values[0] && values[1] && i <= JOB_CANCELLED; i++)
		if (strcmp(values[0], job_state_words.at[i]) == 0)
			return number_read(values[1], strlen(values[1]), &counts[i]);
	return error_set(error, ERROR_CORRUPT, "a job is stored in the state '%s'",
	                 values[0] ? values[0] : "NULL");
}

static bool count_jobs(struct store *store, const struct archive_filter *filter, int64_t *counts,
                       struct error *error)
{
	struct backend *backend = store_backend(store);
	struct buffer sql = { 0 };
	memset(counts, 0, (JOB_CANCELLED + 1) * sizeof(*counts));
	buffer_text(&sql, "SELECT state, count(*) FROM jobs ");
	put_filter(&sql, filter);
	buffer_text(&sql, " GROUP BY state");
	bool done = backend->query(backend, sql.data, take_count, counts, error);
	buffer_free(&sql);
	return done;
}

/* Connects again where that is needed. */
static bool is_ready(struct store *store, struct error *error)
{
	struct backend *backend = store_backend(store);
	return backend->is_connected(backend) || store_read_only(store, error) == STORE_DONE;
}

/* A connection that failed is not used again. */
static bool finish(struct store *store, bool done, const struct error *error)
{
	struct backend *backend = store_backend(store);
	if (!done && error->code != ERROR_NOT_FOUND)
		backend->disconnect(backend);
	return done;
}

bool archive_find(struct store *store, int64_t id, struct arena *arena, struct archived_job *job,
                  struct task_record **tasks, int64_t *task_count, struct error *error)
{
	return is_ready(store, error) &&
	       finish(store, find(store, id, arena, job, tasks, task_count, error), error);
}

bool archive_list(struct store *store, const struct archive_filter *filter, struct arena *arena,
                  struct archived_job **jobs, int64_t *count, struct error *error)
{
	return is_ready(store, error) &&
	       finish(store, list(store, filter, arena, jobs, count, error), error);
}

bool archive_count(struct store *store, const struct archive_filter *filter,
                   int64_t counts[JOB_CANCELLED + 1], struct error *error)
{
	return is_ready(store, error) &&
	       finish(store, count_jobs(store, filter, counts, error), error);
}
