/* scheduler_calls.c - what the scheduler decided, loaded, and has waiting: bare arrays */
#include "api/scheduler_calls.h"

#include "api/job/decision_view.h"
#include "api/job/job_look_up.h"
#include "api/model/slot_view.h"
#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "store/archive.h"

/* Decisions: read from the store, then explained by the core. */

struct inquiry {
	struct decision_filter filter;
	struct decision_record *decisions;
	int64_t count;
	const char **explanations; /* one for each */
	bool explain;
};

static bool read_type(struct request *request, struct inquiry *inquiry)
{
	struct text type = query_get(&request->exchange->query, "type");
	inquiry->filter.kind = -1;
	if (!type.data || type.size == 0)
		return true;
	for (int i = 0; i < decision_words.count; i++)
		if (text_is(type, decision_words.at[i]))
			inquiry->filter.kind = i;
	if (inquiry->filter.kind >= 0)
		return true;
	struct buffer known = { 0 };
	for (int i = 0; i < decision_words.count; i++)
		buffer_print(&known, "%s%s",
		             i == 0                          ? ""
		             : i + 1 == decision_words.count ? " or "
		                                             : ", ",
		             decision_words.at[i]);
	request_refuse(request, 400, "invalid", "type must be %s", known.data);
	buffer_free(&known);
	return false;
}

/* A node is named by its GPUs. */
static bool scheduler_read_node(struct request *request, struct inquiry *inquiry)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct text name = query_get(&request->exchange->query, "node");
	const struct gpu_record *const *gpus;
	if (!name.data || name.size == 0)
		return true;
	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, name.data);
	size_t count = node ? catalogue_node_gpus(catalogue, node->id, &gpus) : 0;
	int64_t *ids = arena_alloc(&request->engine.arena, (count + 1) * sizeof(*ids));
	for (size_t i = 0; i < count; i++)
		ids[i] = gpus[i]->id;
	/* Without GPUs there is no decision about it; and no GPU has this id. */
	ids[count] = -1;
	inquiry->filter.gpu_ids = ids;
	inquiry->filter.gpu_count = count > 0 ? count : 1;
	catalogue_unlock(catalogue);
	if (!node)
		request_unknown(request, "node", name);
	return node != NULL;
}

static bool read_subject(struct request *request, struct inquiry *inquiry)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct text job = query_get(&request->exchange->query, "job");
	struct text model = query_get(&request->exchange->query, "model");
	if (job.data && job.size > 0 && !id_read(job, ID_JOB, &inquiry->filter.job_id)) {
		request_refuse(request, 400, "invalid", "job must be an id such as job-12");
		return false;
	}
	if (!model.data || model.size == 0 || id_read(model, ID_MODEL, &inquiry->filter.model_id))
		return true;
	bool several;
	catalogue_lock(catalogue);
	const struct model_record *record = slot_view_find_model(
	    catalogue, &request->service->roster, &request->identity, model, &several);
	inquiry->filter.model_id = record ? record->id : 0;
	catalogue_unlock(catalogue);
	if (several)
		request_refuse(request, 409, "conflict",
		               "several models have that name: use an id, such as model-3");
	else if (!record)
		request_unknown(request, "model", model);
	return record != NULL;
}

/* Only of the tenants that the caller may see; an administrator has no such bound. */
static void read_tenants(struct request *request, struct inquiry *inquiry)
{
	const struct roster *roster = &request->service->roster;
	if (roster_sees_all(&request->identity))
		return;
	int64_t *ids =
	    arena_alloc(&request->engine.arena, (roster->by_id.count + 1) * sizeof(*ids));
	size_t count = 0;
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && roster_may_see(roster, &request->identity, tenant->id))
			ids[count++] = tenant->id;
	}
	if (count == 0)
		ids[count++] = -1;
	inquiry->filter.tenant_ids = ids;
	inquiry->filter.tenant_count = count;
}

static bool read_decisions(struct engine_request *engine, struct store *store, struct error *error)
{
	struct inquiry *inquiry = request_of(engine)->state;
	return archive_decisions(store, &inquiry->filter, &engine->arena, &inquiry->decisions,
	                         &inquiry->count, error);
}

static void answer_decisions(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct inquiry *inquiry = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	json_open_array(&request->json, NULL);
	catalogue_lock(catalogue);
	for (int64_t i = 0; i < inquiry->count; i++)
		decision_view_write(
		    &request->json, &inquiry->decisions[i],
		    &(struct decision_view){
			.catalogue = catalogue,
			.viewer = request_viewer(request),
			.explanation = inquiry->explanations ? inquiry->explanations[i] : NULL,
		    });
	catalogue_unlock(catalogue);
	json_close(&request->json);
	request_answer_json(request, 200);
}

static bool scheduler_explain(struct engine_request *engine, struct sched *sched,
                              struct error *error)
{
	struct request *request = request_of(engine);
	struct inquiry *inquiry = request->state;
	(void)error;
	for (int64_t i = 0; i < inquiry->count; i++) {
		buffer_clear(&engine->text);
		if (sched_explain(sched, &inquiry->decisions[i], request_viewer(request),
		                  &engine->text)) {
			buffer_text(&engine->text, "");
			inquiry->explanations[i] = arena_string(&engine->arena, engine->text.data);
		}
	}
	return true;
}

static void got_decisions(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct inquiry *inquiry = request->state;
	if (!engine->ok || inquiry->count == 0 || !inquiry->explain) {
		answer_decisions(engine);
		return;
	}
	size_t size = (size_t)inquiry->count * sizeof(*inquiry->explanations);
	inquiry->explanations = arena_alloc(&engine->arena, size);
	memset(inquiry->explanations, 0, size);
	request_look(request, scheduler_explain, answer_decisions);
}

void scheduler_calls_decisions(struct request *request)
{
	struct inquiry *inquiry = arena_alloc(&request->engine.arena, sizeof(*inquiry));
	struct error error = { 0 };
	struct page page;

	memset(inquiry, 0, sizeof(*inquiry));
	request->state = inquiry;
	if (!page_read(request, ID_DECISION, &page) || !read_type(request, inquiry) ||
	    !scheduler_read_node(request, inquiry) || !read_subject(request, inquiry))
		return;
	if (!query_flag(&request->exchange->query, "explain", true, &inquiry->explain, &error)) {
		request_fail(request, &error);
		return;
	}
	read_tenants(request, inquiry);
	inquiry->filter.limit = page.limit;
	inquiry->filter.before_id = page.after;
	request_read(request, read_decisions, got_decisions);
}

/* Slots. */

void scheduler_calls_slots(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_SLOT };
	const struct slot_record *slot;

	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	json_open_array(&request->json, NULL);
	catalogue_lock(catalogue);
	while ((slot = catalogue_next(catalogue, &cursor)) != NULL)
		slot_view_write(request, catalogue, slot->id);
	catalogue_unlock(catalogue);
	json_close(&request->json);
	request_answer_json(request, 200);
}

/* The queue: waiting jobs with their places, those with the highest priority first. */

struct queue {
	int64_t *ids;
	struct wait_figures *waits; /* position -1: does not wait in the queue itself */
	const char **reasons;       /* NULL: not asked for; of each of the first, else NULL */
	size_t count;
};

/* How many jobs a page tells the reasons of: each is a look at the whole cluster. */
enum { REASONS_MAX = 25 };

static bool look_at_queue(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct queue *queue = request_of(engine)->state;
	(void)error;
	for (size_t i = 0; i < queue->count; i++) {
		if (!sched_wait(sched, queue->ids[i], &queue->waits[i], NULL))
			queue->waits[i].position = -1;
		if (queue->reasons && i < REASONS_MAX)
			queue->reasons[i] =
			    job_why_reason(job_why_line(engine, sched, queue->ids[i]));
	}
	return true;
}

static void answer_queue(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct queue *queue = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_job job;
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	json_open_array(&request->json, NULL);
	catalogue_lock(catalogue);
	for (size_t i = 0; i < queue->count; i++) {
		if (catalogue_job(catalogue, queue->ids[i], &job))
			job_view_write(
			    &request->json, NULL,
			    &(struct job_view){
				.job = job.job,
				.state = job.state,
				.tasks = job.tasks,
				.task_count = job.task_count,
				.promise = job.promise,
				.wait = queue->waits[i].position >= 0 ? &queue->waits[i] : NULL,
				.reason = queue->reasons ? queue->reasons[i] : NULL,
				.catalogue = catalogue,
				.agents = request->service->agents,
				.arena = &engine->arena,
				.now_ms = service_time_ms(request->service),
			    });
		service_breathe(request->service, (int64_t)i);
	}
	catalogue_unlock(catalogue);
	json_close(&request->json);
	request_answer_json(request, 200);
}

void scheduler_calls_queue(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct queue *queue = arena_alloc(&request->engine.arena, sizeof(*queue));
	struct catalogue_filter filter = { .state = JOB_PENDING, .order = ORDER_PRIORITY };
	struct error error = { 0 };
	struct page page;
	bool reasons;

	*queue = (struct queue){ 0 };
	request->state = queue;
	if (!page_read(request, ID_JOB, &page))
		return;
	if (!query_flag(&request->exchange->query, "reasons", false, &reasons, &error)) {
		request_fail(request, &error);
		return;
	}
	/* No tenant has the id -1. */
	if (!roster_sees_all(&request->identity))
		filter.tenant_id =
		    request->identity.tenant_id > 0 ? request->identity.tenant_id : -1;
	struct text name = query_get(&request->exchange->query, "tenant_id");
	if (name.data && name.size > 0) {
		const struct roster_tenant *tenant = roster_named(&request->service->roster, name);
		if (!tenant ||
		    !roster_may_see(&request->service->roster, &request->identity, tenant->id)) {
			request_unknown(request, "tenant", name);
			return;
		}
		filter.tenant_id = tenant->id;
	}
	size_t limit = (size_t)page.limit;
	queue->ids = arena_alloc(&request->engine.arena, limit * sizeof(*queue->ids));
	queue->waits = arena_alloc(&request->engine.arena, limit * sizeof(*queue->waits));
	if (reasons) {
		queue->reasons =
		    arena_alloc(&request->engine.arena, limit * sizeof(*queue->reasons));
		memset(queue->reasons, 0, limit * sizeof(*queue->reasons));
	}
	catalogue_lock(catalogue);
	queue->count = catalogue_list(catalogue, &filter, page.offset, limit, queue->ids);
	catalogue_unlock(catalogue);
	request_look(request, look_at_queue, answer_queue);
}
