/* gpu_history.c - who had which GPU when */
#include "api/node/gpu_history.h"

#include "api/model/slot_view.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "api/text/times.h"
#include "base/map.h"
#include "store/archive.h"

/* The newest that are looked through; a decision has many GPUs. */
enum { DECISIONS_MAX = 5000, ENDS_MAX = 20000 };

struct history {
	int64_t from_ms, now_ms;
	int64_t node_id; /* 0: all */
	struct decision_record *decisions;
	int64_t decision_count;
	struct event *ends; /* the newest first */
	int64_t end_count;
	struct map jobs, slots; /* by id: the end that is the earliest behind what was last asked */
};

/* A GPU in somebody's hands. */
struct span {
	int64_t gpu_id, mib;
	int64_t job_id, model_id, slot_id, tenant_id;
	int64_t from_ms, until_ms; /* until: 0 is now */
};

static bool read_history(struct engine_request *engine, struct store *store, struct error *error)
{
	struct history *history = request_of(engine)->state;
	return archive_decisions(
		   store,
		   &(struct decision_filter){ .kind = -1, .placed = true, .limit = DECISIONS_MAX },
		   &engine->arena, &history->decisions, &history->decision_count, error) &&
	       archive_events(store, &(struct event_filter){ .ends = true, .limit = ENDS_MAX },
	                      &engine->arena, &history->ends, &history->end_count, error);
}

/* Whose it is and what it is called, as far as the caller may know. */
static void put_owner(struct request *request, const struct span *span)
{
	const struct catalogue *catalogue = service_catalogue(request->service);
	const struct roster *roster = &request->service->roster;
	const struct model_record *model =
	    span->model_id > 0 ? catalogue_get(catalogue, RECORD_MODEL, span->model_id, 0) : NULL;
	struct json_writer *json = &request->json;
	struct catalogue_job job;

	if (!roster_may_see(roster, &request->identity, span->tenant_id) &&
	    (!model || !slot_view_may_see(roster, &request->identity, model)))
		return;
	if (span->job_id > 0) {
		json_put_id(json, "job_id", ID_JOB, span->job_id);
		json_put_string(json, "name",
		                catalogue_job(catalogue, span->job_id, &job) ? job.job->name
		                                                             : NULL);
	} else {
		json_put_id(json, "slot_id", ID_SLOT, span->slot_id);
		json_put_string(json, "name", model ? model->name : NULL);
	}
	json_put_id(json, "tenant_id", ID_TENANT, span->tenant_id);
}

static void put_span(struct request *request, const struct span *span)
{
	const struct history *history = request->state;
	const struct catalogue *catalogue = service_catalogue(request->service);
	const struct gpu_record *gpu = catalogue_get(catalogue, RECORD_GPU, span->gpu_id, 0);
	struct json_writer *json = &request->json;

	if (!gpu || (history->node_id > 0 && gpu->node_id != history->node_id) ||
	    (span->until_ms > 0 && span->until_ms < history->from_ms))
		return;
	const struct node_record *node = catalogue_get(catalogue, RECORD_NODE, gpu->node_id, 0);
	json_open_object(json, NULL);
	json_put_string(json, "gpu", gpu->uuid);
	json_put_string(json, "node", node ? node->name : NULL);
	json_put_integer(json, "index", gpu->place);
	json_put_integer(json, "memory_mb", span->mib);
	put_owner(request, span);
	json_put_moment(json, "from", span->from_ms);
	json_put_moment(json, "to", span->until_ms);
	json_close(json);
}

static const struct task_record *task_of(const struct catalogue_job *job, int64_t place)
{
	for (size_t i = 0; i < job->task_count; i++)
		if (job->tasks[i]->place == place)
			return job->tasks[i];
	return NULL;
}

/* Since when a reservation has its GPUs. */
static int64_t since_ms(const struct catalogue *catalogue,
                        const struct reservation_record *reservation)
{
	const struct slot_record *slot = catalogue_get(catalogue, RECORD_SLOT, reservation->id, 0);
	struct catalogue_job job;
	const struct task_record *task =
	    reservation->job_id > 0 && catalogue_job(catalogue, reservation->job_id, &job)
		? task_of(&job, reservation->task)
		: NULL;
	if (task && task->started_ms > 0)
		return task->started_ms;
	if (slot && slot->ordered_ms > 0)
		return slot->ordered_ms;
	return reservation->since_ms;
}

static int64_t gpu_history_tenant_of(const struct catalogue *catalogue,
                                     const struct reservation_record *reservation)
{
	const struct model_record *model =
	    catalogue_get(catalogue, RECORD_MODEL, reservation->model_id, 0);
	struct catalogue_job job;
	if (reservation->job_id > 0)
		return catalogue_job(catalogue, reservation->job_id, &job) ? job.job->tenant_id : 0;
	return model ? model->tenant_id : 0;
}

/* What has GPUs now. */
static void put_present(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_RESERVATION };
	const struct reservation_record *reservation;

	for (int64_t done = 0; (reservation = catalogue_next(catalogue, &cursor)) != NULL; done++) {
		if (reservation->phase != PHASE_CLAIM && !reservation->away) {
			struct span span = { .job_id = reservation->job_id,
				             .model_id = reservation->model_id,
				             .slot_id = reservation->id,
				             .tenant_id =
				                 gpu_history_tenant_of(catalogue, reservation),
				             .from_ms = since_ms(catalogue, reservation) };
			for (int64_t i = 0; i < reservation->parts.count; i++) {
				const int64_t *part = reservation->parts.at + i * PART_WIDTH;
				span.gpu_id = part[PART_GPU];
				span.mib = part[PART_MIB];
				put_span(request, &span);
			}
		}
		service_breathe(request->service, done);
	}
}

/* Puts the ends at or after `time_ms` into the maps; `next` moves through the ends, which like
 * the decisions are sorted newest first. */
static void take_ends(struct history *history, int64_t time_ms, int64_t *next)
{
	for (; *next < history->end_count && history->ends[*next].time_ms >= time_ms; ++*next) {
		struct event *end = &history->ends[*next];
		if (end->kind == EVENT_SLOT_GONE)
			map_put(&history->slots, end->value, end);
		else
			map_put(&history->jobs, end->job_id, end);
	}
}

/* What had GPUs, and gave them back. */
static void put_past(struct request *request)
{
	struct history *history = request->state;
	int64_t next = 0;

	for (int64_t i = 0; i < history->decision_count; i++) {
		const struct decision_record *decision = &history->decisions[i];
		take_ends(history, decision->time_ms, &next);
		const struct event *end = decision->job_id > 0
		                              ? map_get(&history->jobs, decision->job_id)
		                              : map_get(&history->slots, decision->slot_id);
		if (!end || end->time_ms < history->from_ms)
			continue;
		struct span span = { .job_id = decision->job_id,
			             .model_id = decision->model_id,
			             .slot_id = decision->slot_id,
			             .tenant_id = decision->tenant_id,
			             .from_ms = decision->time_ms,
			             .until_ms = end->time_ms };
		for (int64_t line = 0; line < decision->gpus.count; line++) {
			const int64_t *row = decision->gpus.at + line * LINE_WIDTH;
			span.gpu_id = row[LINE_GPU];
			span.mib = row[LINE_ASKED];
			put_span(request, &span);
		}
	}
}

/* Whether nothing that matters was beyond what is looked through. */
static bool is_complete(const struct history *history)
{
	int64_t decisions = history->decision_count, ends = history->end_count;
	return (decisions < DECISIONS_MAX ||
	        history->decisions[decisions - 1].time_ms < history->from_ms) &&
	       (ends < ENDS_MAX || history->ends[ends - 1].time_ms < history->from_ms);
}

static void gpu_history_answer(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct history *history = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	struct json_writer *json = request_object(request);
	json_put_moment(json, "from", history->from_ms);
	json_put_moment(json, "to", history->now_ms);
	json_put_flag(json, "complete", is_complete(history));
	json_open_array(json, "spans");
	catalogue_lock(catalogue);
	put_present(request);
	put_past(request);
	catalogue_unlock(catalogue);
	map_free(&history->jobs);
	map_free(&history->slots);
	json_close(json);
	json_close(json);
	request_answer_json(request, 200);
}

static bool gpu_history_read_node(struct request *request, struct history *history)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct text name = query_get(&request->exchange->query, "node");
	if (!name.data || name.size == 0)
		return true;
	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, name.data);
	history->node_id = node ? node->id : 0;
	catalogue_unlock(catalogue);
	if (!node)
		request_unknown(request, "node", name);
	return node != NULL;
}

void gpu_history_get(struct request *request)
{
	struct history *history = arena_alloc(&request->engine.arena, sizeof(*history));
	struct text from = query_get(&request->exchange->query, "from");

	*history = (struct history){ .now_ms = service_time_ms(request->service) };
	history->from_ms = history->now_ms - HOUR_MS;
	request->state = history;
	if (from.data && from.size > 0 && !calendar_read_day(from, &history->from_ms)) {
		request_refuse(request, 400, "invalid",
		               "from must be a time such as 2026-01-31T12:00:00Z, or a day");
		return;
	}
	if (gpu_history_read_node(request, history))
		request_read(request, read_history, gpu_history_answer);
}
