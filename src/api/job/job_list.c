/* job_list.c - jobs by tenant and state, page by page, in memory and archived */
#include <stdlib.h>

#include "api/job/job_payload.h"
#include "api/job/job_view.h"
#include "api/job/jobs.h"
#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "store/archive.h"

enum {
	TENANTS_MAX = 4096,    /* that one caller may see, to merge their lists */
	EXAMINED_MAX = 200000, /* jobs that are looked at for a name or a label, in memory */
	STORED_MAX = 100000,   /* and in the store */
	DEEP_MAX = 10000,      /* jobs that are read to get to an offset, with archived ones */
};

/* A page ends when its answer has grown to this: a job may have thousands of tasks. */
enum { PAGE_BYTES = 8 << 20 };

/* What is asked for, and what was found on the way. The page is made of two lists in the
 * same order: of jobs in memory, and of archived ones. Where there are any of these, both
 * are read from where the page's `after` is, or from their beginning, so that `skip` of
 * them together come before the page. */
struct listing {
	struct catalogue_filter filter;
	struct page page;
	int64_t *tenants; /* more than one: their lists are merged. Sorted */
	size_t tenant_count;
	struct text name, user, label, label_value; /* data NULL: any */
	int64_t from, room, skip;                   /* in memory: where to start, and how many */
	int64_t *ids;                               /* of jobs in memory, in order */
	size_t count;
	int64_t total;
	bool is_partial; /* `total` counts only what was looked at */
	int64_t archived_total;
	struct archived_job *archived;
	int64_t archived_count;
};

static bool read_state(struct request *request, struct listing *listing)
{
	struct text state = query_get(&request->exchange->query, "state");
	listing->filter.state = -1;
	if (!state.data || state.size == 0)
		return true;
	for (int i = 0; i < job_state_words.count; i++)
		if (text_is(state, job_state_words.at[i]))
			listing->filter.state = i;
	if (listing->filter.state >= 0)
		return true;
	request_refuse(request, 400, "invalid",
	               "state must be pending, scheduled, running, preempted, completed, failed or "
	               "cancelled");
	return false;
}

static bool read_sort(struct request *request, struct listing *listing)
{
	struct text sort = query_get(&request->exchange->query, "sort");
	listing->filter.order = ORDER_NEWEST;
	if (!sort.data || text_is(sort, "-submitted_at"))
		return true;
	if (text_is(sort, "submitted_at"))
		listing->filter.order = ORDER_OLDEST;
	else if (text_is(sort, "priority") || text_is(sort, "-priority"))
		listing->filter.order = ORDER_PRIORITY;
	else {
		request_refuse(request, 400, "invalid",
		               "sort must be submitted_at, -submitted_at or priority");
		return false;
	}
	if (listing->filter.order == ORDER_PRIORITY && listing->page.after > 0) {
		request_refuse(request, 400, "invalid",
		               "after goes with sort by submitted_at only: use "
		               "offset");
		return false;
	}
	return true;
}

static bool read_words(struct request *request, struct listing *listing)
{
	const struct query *query = &request->exchange->query;
	struct text label = query_get(query, "label");

	listing->name = query_get(query, "name");
	if (listing->name.data && listing->name.size == 0)
		listing->name.data = NULL;
	listing->user = query_get(query, "user");
	if (listing->user.data && listing->user.size == 0)
		listing->user.data = NULL;
	if (!label.data)
		return true;
	const char *equals = memchr(label.data, '=', label.size);
	if (!equals || equals == label.data) {
		request_refuse(request, 400, "invalid", "label must be NAME=VALUE");
		return false;
	}
	listing->label = (struct text){ label.data, (size_t)(equals - label.data) };
	listing->label_value = text_from(label, listing->label.size + 1);
	return true;
}

static int job_list_compare_ids(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
	return (one > other) - (one < other);
}

/* All tenants that the caller may see. */
static void collect_tenants(struct request *request, struct listing *listing)
{
	const struct roster *roster = &request->service->roster;
	listing->tenants =
	    arena_alloc(&request->engine.arena, (roster->by_id.count + 1) * sizeof(int64_t));
	for (size_t i = 0; i < roster->by_id.capacity && listing->tenant_count < TENANTS_MAX; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && roster_may_see(roster, &request->identity, tenant->id))
			listing->tenants[listing->tenant_count++] = tenant->id;
	}
	qsort(listing->tenants, listing->tenant_count, sizeof(int64_t), job_list_compare_ids);
	if (listing->tenant_count <= 1)
		listing->filter.tenant_id =
		    listing->tenant_count == 1 ? listing->tenants[0] : request->identity.tenant_id;
}

static bool job_list_read_tenant(struct request *request, struct listing *listing)
{
	struct text name = query_get(&request->exchange->query, "tenant_id");
	if (name.data && name.size > 0) {
		const struct roster_tenant *tenant = roster_named(&request->service->roster, name);
		if (!tenant ||
		    !roster_may_see(&request->service->roster, &request->identity, tenant->id)) {
			request_unknown(request, "tenant", name);
			return false;
		}
		listing->filter.tenant_id = tenant->id;
		return true;
	}
	if (request->identity.role != ROLE_ADMIN && !roster_sees_all(&request->identity))
		collect_tenants(request, listing);
	return true;
}

static bool job_list_matches(const struct listing *listing, const struct job_record *job,
                             struct arena *arena)
{
	if (listing->tenant_count > 1 &&
	    !bsearch(&job->tenant_id, listing->tenants, listing->tenant_count, sizeof(int64_t),
	             job_list_compare_ids))
		return false;
	if (listing->name.data && !text_starts(text_of(job->name), listing->name.data))
		return false;
	if (listing->user.data && !text_equal(text_of(job->user), listing->user))
		return false;
	if (!listing->label.data)
		return true;
	struct text value = job_payload_label(job->payload, listing->label, arena);
	return value.data && text_equal(value, listing->label_value);
}

/* Where to begin in a list in memory. */
static int64_t first_of(const struct catalogue *catalogue, const struct catalogue_filter *filter,
                        const struct listing *listing)
{
	int64_t after = listing->page.after;
	if (after == 0)
		return listing->from;
	return catalogue_rank(catalogue, filter,
	                      filter->order == ORDER_OLDEST ? after + 1 : after - 1);
}

/* Walks all jobs of the filter for those with the name or label. */
static void search(struct request *request, struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	const struct catalogue_filter *filter = &listing->filter;
	enum { CHUNK = 256 };
	int64_t ids[CHUNK], examined = 0;
	int64_t at = listing->page.after > 0 ? first_of(catalogue, filter, listing) : 0;
	struct arena arena = { 0 };
	size_t found;

	do {
		catalogue_lock(catalogue);
		found = catalogue_list(catalogue, filter, at, CHUNK, ids);
		for (size_t i = 0; i < found; i++) {
			struct catalogue_job job;
			if (!catalogue_job(catalogue, ids[i], &job) ||
			    !job_list_matches(listing, job.job, &arena))
				continue;
			if (listing->total++ >= listing->from &&
			    (int64_t)listing->count < listing->room)
				listing->ids[listing->count++] = ids[i];
		}
		catalogue_unlock(catalogue);
		arena_reset(&arena);
		at += (int64_t)found;
		examined += (int64_t)found;
	} while (found == CHUNK && examined < EXAMINED_MAX);
	listing->is_partial = found == CHUNK;
	arena_free(&arena);
}

/* In the order of the filter, which is by id. */
static bool comes_before(enum catalogue_order order, int64_t a, int64_t b)
{
	return order == ORDER_OLDEST ? a < b : a > b;
}

/* The lists of several tenants as one. */
static void merge_tenants(struct request *request, struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_filter filter = listing->filter;
	int64_t *offsets =
	    arena_alloc(&request->engine.arena, listing->tenant_count * sizeof(*offsets));
	int64_t skipped = 0;

	catalogue_lock(catalogue);
	for (size_t i = 0; i < listing->tenant_count; i++) {
		filter.tenant_id = listing->tenants[i];
		offsets[i] = listing->page.after > 0 ? first_of(catalogue, &filter, listing) : 0;
	}
	while ((int64_t)listing->count < listing->room) {
		int64_t best = 0, id;
		size_t from = 0;
		for (size_t i = 0; i < listing->tenant_count; i++) {
			filter.tenant_id = listing->tenants[i];
			if (catalogue_list(catalogue, &filter, offsets[i], 1, &id) == 0)
				continue;
			if (best == 0 || comes_before(filter.order, id, best)) {
				best = id;
				from = i;
			}
		}
		if (best == 0)
			break;
		offsets[from]++;
		if (skipped++ >= listing->from)
			listing->ids[listing->count++] = best;
	}
	catalogue_unlock(catalogue);
}

static void list_memory(struct request *request, struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	catalogue_lock(catalogue);
	listing->count = catalogue_list(catalogue, &listing->filter,
	                                first_of(catalogue, &listing->filter, listing),
	                                (size_t)listing->room, listing->ids);
	catalogue_unlock(catalogue);
}

static void put_in_memory(struct request *request, const struct catalogue *catalogue, int64_t id)
{
	struct catalogue_job job;
	if (catalogue_job(catalogue, id, &job))
		job_view_write(&request->json, NULL,
		               &(struct job_view){ .job = job.job,
		                                   .state = job.state,
		                                   .tasks = job.tasks,
		                                   .task_count = job.task_count,
		                                   .promise = job.promise,
		                                   .catalogue = catalogue,
		                                   .agents = request->service->agents,
		                                   .arena = &request->engine.arena,
		                                   .now_ms = service_time_ms(request->service) });
}

static void put_archived(struct request *request, const struct catalogue *catalogue,
                         const struct archived_job *job)
{
	job_view_write(&request->json, NULL,
	               &(struct job_view){ .job = &job->job,
	                                   .state = &job->state,
	                                   .catalogue = catalogue,
	                                   .agents = request->service->agents,
	                                   .arena = &request->engine.arena,
	                                   .now_ms = service_time_ms(request->service) });
}

/* Whether the next job is one in memory. By priority, those in memory come first. */
static bool is_from_memory(const struct listing *listing, size_t next, int64_t archived)
{
	if (next == listing->count || archived == listing->archived_count)
		return next < listing->count;
	return listing->filter.order == ORDER_PRIORITY ||
	       comes_before(listing->filter.order, listing->ids[next],
	                    listing->archived[archived].job.id);
}

static void job_list_answer(struct request *request, const struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct json_writer *json = request_object(request);
	size_t next = 0;
	int64_t archived = 0, skip = listing->skip, left = listing->page.limit, last = 0;

	json_open_array(json, "jobs");
	catalogue_lock(catalogue);
	while (left > 0 && json->buffer->size < PAGE_BYTES &&
	       (next < listing->count || archived < listing->archived_count)) {
		bool from_memory = is_from_memory(listing, next, archived);
		if (skip > 0) {
			skip--;
		} else if (from_memory) {
			last = listing->ids[next];
			put_in_memory(request, catalogue, last);
			service_breathe(request->service, left--);
		} else {
			last = listing->archived[archived].job.id;
			put_archived(request, catalogue, &listing->archived[archived]);
			service_breathe(request->service, left--);
		}
		next += from_memory;
		archived += !from_memory;
	}
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_integer(json, "total", listing->total);
	if (listing->is_partial)
		json_put_flag(json, "total_is_partial", true);
	json_put_integer(json, "limit", listing->page.limit);
	json_put_integer(json, "offset", listing->page.offset);
	bool is_cut = left == 0 || json->buffer->size >= PAGE_BYTES;
	if (is_cut && last > 0 && listing->filter.order != ORDER_PRIORITY)
		json_put_id(json, "next_after", ID_JOB, last);
	json_close(json);
	request_answer_json(request, 200);
}

static bool wants(void *context, const struct job_record *job)
{
	struct request *request = context;
	struct arena arena = { 0 };
	bool is_wanted = job_list_matches(request->state, job, &arena);
	arena_free(&arena);
	return is_wanted;
}

static bool is_search(const struct listing *listing)
{
	return listing->name.data || listing->user.data || listing->label.data;
}

static bool read_archive(struct engine_request *engine, struct store *store, struct error *error)
{
	struct request *request = request_of(engine);
	struct listing *listing = request->state;
	bool merges = listing->tenant_count > 1;
	struct archive_filter filter = {
		.tenant_id = listing->filter.tenant_id,
		.tenant_ids = merges ? listing->tenants : NULL,
		.tenant_count = merges ? listing->tenant_count : 0,
		.state = listing->filter.state,
		.oldest_first = listing->filter.order == ORDER_OLDEST,
		.behind_id = listing->page.after,
		.limit = listing->room,
	};
	if (!is_search(listing))
		return archive_list(store, &filter, &engine->arena, &listing->archived,
		                    &listing->archived_count, error);
	struct archive_search search = { .wants = wants, .context = request, .most = STORED_MAX };
	bool done = archive_search(store, &filter, &search, &engine->arena, &listing->archived,
	                           &listing->archived_count, error);
	listing->total += search.matched;
	listing->is_partial |= search.is_partial;
	return done;
}

static void got_archive(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		job_list_answer(request, request->state);
	else
		request_fail(request, &engine->error);
}

static void job_list_count(struct request *request, struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_filter filter = listing->filter;
	bool merges = listing->tenant_count > 1;

	catalogue_lock(catalogue);
	for (size_t i = 0; i < (merges ? listing->tenant_count : 1); i++) {
		int64_t archived = 0;
		if (merges)
			filter.tenant_id = listing->tenants[i];
		listing->total += catalogue_count(catalogue, &filter, &archived);
		listing->archived_total += archived;
	}
	catalogue_unlock(catalogue);
}

/* Whether archived jobs can be on the page, or must be searched to be counted. */
static bool needs_archive(const struct listing *listing)
{
	if (listing->archived_total == 0)
		return false;
	return is_search(listing) || listing->filter.order != ORDER_PRIORITY ||
	       listing->page.offset + listing->page.limit > listing->total;
}

/* What is in memory of the page. */
static void read_memory(struct request *request, struct listing *listing)
{
	listing->ids =
	    arena_alloc(&request->engine.arena, (size_t)listing->room * sizeof(*listing->ids));
	if (is_search(listing)) {
		listing->total = 0;
		search(request, listing);
		return;
	}
	if (listing->tenant_count > 1)
		merge_tenants(request, listing);
	else
		list_memory(request, listing);
	listing->total += listing->archived_total;
}

void jobs_list(struct request *request)
{
	struct listing *listing = arena_alloc(&request->engine.arena, sizeof(*listing));
	memset(listing, 0, sizeof(*listing));
	request->state = listing;
	if (!page_read(request, ID_JOB, &listing->page) || !read_state(request, listing) ||
	    !read_sort(request, listing) || !read_words(request, listing) ||
	    !job_list_read_tenant(request, listing))
		return;
	job_list_count(request, listing);
	bool with_archive = needs_archive(listing);
	int64_t offset = listing->page.after > 0 ? 0 : listing->page.offset;
	if (with_archive && offset > DEEP_MAX) {
		request_refuse(
		    request, 400, "invalid",
		    "offset can be at most %d where jobs are archived: continue with after=ID, "
		    "as next_after says",
		    DEEP_MAX);
		return;
	}
	listing->from = with_archive ? 0 : offset;
	listing->skip = with_archive ? offset : 0;
	listing->room = listing->page.limit + listing->skip;
	read_memory(request, listing);
	if (with_archive)
		request_read(request, read_archive, got_archive);
	else
		job_list_answer(request, listing);
}
