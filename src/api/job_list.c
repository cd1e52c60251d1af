/* job_list.c - jobs by tenant and state, page by page, in memory and archived */
#include "api/ids.h"
#include "api/job_payload.h"
#include "api/job_view.h"
#include "api/jobs.h"
#include "api/page.h"
#include "api/service_state.h"
#include "store/archive.h"

enum {
	TENANTS_MAX = 4096,    /* that one caller may see, to merge their lists */
	EXAMINED_MAX = 200000, /* jobs that are looked at for a name or a label */
	DEEP_MAX = 10000,      /* archived jobs that are read to get to an offset */
};

/* What is asked for, and what was found on the way. */
struct listing {
	struct catalogue_filter filter;
	struct page page;
	int64_t *tenants; /* more than one: their lists are merged */
	size_t tenant_count;
	struct text name, label, label_value; /* data NULL: any */
	int64_t *ids;                         /* of jobs in memory, in order */
	size_t count;
	int64_t total;
	bool is_partial; /* `total` counts only what was looked at */
	int64_t archived_total;
	struct archived_job *archived;
	int64_t archived_count;
	int64_t archived_skip; /* of those, to be left out at the beginning */
};

static bool read_state(struct call *call, struct listing *listing)
{
	struct text state = query_get(&call->exchange->query, "state");
	listing->filter.state = -1;
	if (!state.data || state.size == 0)
		return true;
	for (int i = 0; i < job_state_words.count; i++)
		if (text_is(state, job_state_words.at[i]))
			listing->filter.state = i;
	if (listing->filter.state >= 0)
		return true;
	call_refuse(call, 400, "invalid",
	            "state must be pending, scheduled, running, preempted, completed, failed or "
	            "cancelled");
	return false;
}

static bool read_sort(struct call *call, struct listing *listing)
{
	struct text sort = query_get(&call->exchange->query, "sort");
	listing->filter.order = ORDER_NEWEST;
	if (!sort.data || text_is(sort, "-submitted_at"))
		return true;
	if (text_is(sort, "submitted_at"))
		listing->filter.order = ORDER_OLDEST;
	else if (text_is(sort, "priority") || text_is(sort, "-priority"))
		listing->filter.order = ORDER_PRIORITY;
	else {
		call_refuse(call, 400, "invalid",
		            "sort must be submitted_at, -submitted_at or priority");
		return false;
	}
	if (listing->filter.order == ORDER_PRIORITY && listing->page.after > 0) {
		call_refuse(call, 400, "invalid",
		            "after goes with sort by submitted_at only: use "
		            "offset");
		return false;
	}
	return true;
}

static bool read_words(struct call *call, struct listing *listing)
{
	const struct query *query = &call->exchange->query;
	struct text label = query_get(query, "label");

	listing->name = query_get(query, "name");
	if (listing->name.data && listing->name.size == 0)
		listing->name.data = NULL;
	if (!label.data)
		return true;
	const char *equals = memchr(label.data, '=', label.size);
	if (!equals || equals == label.data) {
		call_refuse(call, 400, "invalid", "label must be NAME=VALUE");
		return false;
	}
	listing->label = (struct text){ label.data, (size_t)(equals - label.data) };
	listing->label_value = text_from(label, listing->label.size + 1);
	return true;
}

/* All tenants that the caller may see. */
static void collect_tenants(struct call *call, struct listing *listing)
{
	const struct roster *roster = &call->service->roster;
	listing->tenants =
	    arena_alloc(&call->ask.arena, (roster->by_id.count + 1) * sizeof(int64_t));
	for (size_t i = 0; i < roster->by_id.capacity && listing->tenant_count < TENANTS_MAX; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && roster_may_see(roster, &call->identity, tenant->id))
			listing->tenants[listing->tenant_count++] = tenant->id;
	}
	if (listing->tenant_count <= 1)
		listing->filter.tenant_id =
		    listing->tenant_count == 1 ? listing->tenants[0] : call->identity.tenant_id;
}

static bool read_tenant(struct call *call, struct listing *listing)
{
	struct text name = query_get(&call->exchange->query, "tenant_id");
	if (name.data && name.size > 0) {
		const struct roster_tenant *tenant = roster_named(&call->service->roster, name);
		if (!tenant ||
		    !roster_may_see(&call->service->roster, &call->identity, tenant->id)) {
			call_unknown(call, "tenant", name);
			return false;
		}
		listing->filter.tenant_id = tenant->id;
		return true;
	}
	if (call->identity.role != ROLE_ADMIN && !roster_sees_all(&call->identity))
		collect_tenants(call, listing);
	return true;
}

static bool matches(const struct listing *listing, const struct job_record *job,
                    struct arena *arena)
{
	if (listing->name.data && !text_starts(text_of(job->name), listing->name.data))
		return false;
	if (!listing->label.data)
		return true;
	struct text value = job_payload_label(job->payload, listing->label, arena);
	return value.data && text_equal(value, listing->label_value);
}

static int64_t offset_in_memory(const struct catalogue *catalogue,
                                const struct catalogue_filter *filter, const struct page *page)
{
	if (page->after == 0)
		return page->offset;
	return catalogue_rank(catalogue, filter,
	                      filter->order == ORDER_OLDEST ? page->after + 1 : page->after - 1);
}

/* Walks all jobs of the filter for those with the name or label. */
static void search(struct call *call, struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	const struct catalogue_filter *filter = &listing->filter;
	enum { CHUNK = 256 };
	int64_t ids[CHUNK], examined = 0;
	int64_t at =
	    listing->page.after > 0 ? offset_in_memory(catalogue, filter, &listing->page) : 0;
	struct arena arena = { 0 };
	size_t found;

	do {
		catalogue_lock(catalogue);
		found = catalogue_list(catalogue, filter, at, CHUNK, ids);
		for (size_t i = 0; i < found; i++) {
			struct catalogue_job job;
			if (!catalogue_job(catalogue, ids[i], &job) ||
			    !matches(listing, job.job, &arena))
				continue;
			if (listing->total++ >= listing->page.offset &&
			    (int64_t)listing->count < listing->page.limit)
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

/* The lists of several tenants as one. Each list is read from its beginning, so offsets
 * are bounded; `after` is not. */
static void merge_tenants(struct call *call, struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_filter filter = listing->filter;
	int64_t *offsets = arena_alloc(&call->ask.arena, listing->tenant_count * sizeof(*offsets));
	int64_t skipped = 0, archived;

	catalogue_lock(catalogue);
	for (size_t i = 0; i < listing->tenant_count; i++) {
		filter.tenant_id = listing->tenants[i];
		listing->total += catalogue_count(catalogue, &filter, &archived);
		offsets[i] = listing->page.after > 0
		                 ? offset_in_memory(catalogue, &filter, &listing->page)
		                 : 0;
	}
	while ((int64_t)listing->count < listing->page.limit) {
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
		if (skipped++ >= listing->page.offset)
			listing->ids[listing->count++] = best;
	}
	catalogue_unlock(catalogue);
}

static void list_memory(struct call *call, struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	catalogue_lock(catalogue);
	listing->total = catalogue_count(catalogue, &listing->filter, &listing->archived_total);
	/* Archived jobs may come before those in memory, so that as many as the page ends
	 * with may be needed; where there are none, just the page. */
	int64_t offset = offset_in_memory(catalogue, &listing->filter, &listing->page);
	listing->count = catalogue_list(catalogue, &listing->filter, offset,
	                                (size_t)listing->page.limit, listing->ids);
	catalogue_unlock(catalogue);
	listing->total += listing->archived_total;
}

static void put_in_memory(struct call *call, const struct catalogue *catalogue, int64_t id)
{
	struct catalogue_job job;
	if (catalogue_job(catalogue, id, &job))
		job_view_write(&call->json, NULL,
		               &(struct job_view){ .job = job.job,
		                                   .state = job.state,
		                                   .tasks = job.tasks,
		                                   .task_count = job.task_count,
		                                   .promise = job.promise,
		                                   .catalogue = catalogue,
		                                   .agents = call->service->agents,
		                                   .arena = &call->ask.arena,
		                                   .now_ms = service_unix_ms() });
}

static void put_archived(struct call *call, const struct catalogue *catalogue,
                         const struct archived_job *job)
{
	job_view_write(&call->json, NULL,
	               &(struct job_view){ .job = &job->job,
	                                   .state = &job->state,
	                                   .catalogue = catalogue,
	                                   .agents = call->service->agents,
	                                   .arena = &call->ask.arena,
	                                   .now_ms = service_unix_ms() });
}

static void answer(struct call *call, const struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct json_writer *json = call_object(call);
	size_t next = 0;
	int64_t archived = listing->archived_skip, left = listing->page.limit, last = 0;
	bool by_id = listing->filter.order == ORDER_NEWEST;

	json_open_array(json, "jobs");
	catalogue_lock(catalogue);
	for (; left > 0; left--) {
		service_breathe(call->service, left);
		bool has_memory = next < listing->count;
		bool has_archived = archived < listing->archived_count;
		if (!has_memory && !has_archived)
			break;
		const struct archived_job *job = has_archived ? &listing->archived[archived] : NULL;
		if (has_memory && (!has_archived || !by_id || listing->ids[next] > job->job.id)) {
			last = listing->ids[next++];
			put_in_memory(call, catalogue, last);
		} else {
			last = job->job.id;
			put_archived(call, catalogue, job);
			archived++;
		}
	}
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_integer(json, "total", listing->total);
	if (listing->is_partial)
		json_put_flag(json, "total_is_partial", true);
	json_put_integer(json, "limit", listing->page.limit);
	json_put_integer(json, "offset", listing->page.offset);
	if (left == 0 && last > 0 && listing->filter.order != ORDER_PRIORITY)
		json_put_id(json, "next_after", ID_JOB, last);
	json_close(json);
	call_answer_json(call, 200);
}

static bool read_archive(struct ask *ask, struct store *store, struct error *error)
{
	struct listing *listing = call_of(ask)->state;
	int64_t limit = listing->page.limit;
	if (listing->page.after == 0)
		limit += listing->page.offset;
	return archive_list(store,
	                    &(struct archive_filter){ .tenant_id = listing->filter.tenant_id,
	                                              .state = listing->filter.state,
	                                              .before_id = listing->page.after,
	                                              .limit = limit },
	                    &ask->arena, &listing->archived, &listing->archived_count, error);
}

/* The page begins at an offset into both lists together. How many of the archived ones
 * come before it is found by going through both. */
static void place_offset(struct call *call, struct listing *listing)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	int64_t archived = 0, in_memory = 0, id, unused;

	catalogue_lock(catalogue);
	int64_t memory_count = catalogue_count(catalogue, &listing->filter, &unused);
	for (int64_t i = 0; i < listing->page.offset; i++) {
		bool has_memory = in_memory < memory_count;
		if (listing->filter.order == ORDER_NEWEST && has_memory &&
		    archived < listing->archived_count &&
		    catalogue_list(catalogue, &listing->filter, in_memory, 1, &id) == 1)
			has_memory = id > listing->archived[archived].job.id;
		if (has_memory)
			in_memory++;
		else
			archived++;
	}
	listing->count = catalogue_list(catalogue, &listing->filter, in_memory,
	                                (size_t)listing->page.limit, listing->ids);
	catalogue_unlock(catalogue);
	listing->archived_skip = archived;
}

static void got_archive(struct ask *ask)
{
	struct call *call = call_of(ask);
	struct listing *listing = call->state;
	if (!ask->ok) {
		call_fail(call, &ask->error);
		return;
	}
	if (listing->page.after == 0)
		place_offset(call, listing);
	answer(call, listing);
}

static bool needs_archive(const struct listing *listing)
{
	int64_t in_memory = listing->total - listing->archived_total;
	if (listing->archived_total == 0 || listing->filter.order == ORDER_OLDEST)
		return false;
	/* By priority, those in memory come first. */
	return listing->filter.order == ORDER_NEWEST ||
	       listing->page.offset + listing->page.limit > in_memory;
}

void jobs_list(struct call *call)
{
	struct listing *listing = arena_alloc(&call->ask.arena, sizeof(*listing));
	memset(listing, 0, sizeof(*listing));
	call->state = listing;
	if (!page_read(call, ID_JOB, &listing->page) || !read_state(call, listing) ||
	    !read_sort(call, listing) || !read_words(call, listing) || !read_tenant(call, listing))
		return;
	listing->ids =
	    arena_alloc(&call->ask.arena, (size_t)listing->page.limit * sizeof(*listing->ids));
	bool is_search = listing->name.data || listing->label.data;
	if (listing->tenant_count > 1 && is_search) {
		call_refuse(call, 400, "invalid",
		            "name and label need tenant_id: say which of your tenants to look in");
		return;
	}
	if (is_search)
		search(call, listing);
	else if (listing->tenant_count > 1)
		merge_tenants(call, listing);
	else
		list_memory(call, listing);
	if (!needs_archive(listing)) {
		answer(call, listing);
		return;
	}
	if (listing->page.offset > DEEP_MAX && listing->page.after == 0) {
		call_refuse(
		    call, 400, "invalid",
		    "offset can be at most %d where jobs are archived: go on with after=ID, "
		    "as next_after says",
		    DEEP_MAX);
		return;
	}
	call_read(call, read_archive, got_archive);
}
