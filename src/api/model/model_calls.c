/* model_calls.c - models: put, shown, explained and removed */
#include "api/model/model_calls.h"

#include "api/job/jobs.h"

#include "api/model/model_json.h"
#include "api/model/slot_view.h"
#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"

/* Models that are to be shown, with their load. */
struct showing {
	int64_t *ids;
	struct model_load *loads;
	size_t count;
	int64_t total;
	int status;
	bool is_list;
};

static bool look_at_models(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct showing *showing = request_of(engine)->state;
	(void)error;
	for (size_t i = 0; i < showing->count; i++)
		if (!sched_model_load(sched, showing->ids[i], &showing->loads[i]))
			showing->ids[i] = 0;
	return true;
}

static void model_show(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct showing *showing = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	size_t shown = 0;
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	if (showing->is_list) {
		json_open_object(&request->json, NULL);
		json_open_array(&request->json, "models");
	}
	catalogue_lock(catalogue);
	for (size_t i = 0; i < showing->count; i++) {
		const struct model_record *model =
		    catalogue_get(catalogue, RECORD_MODEL, showing->ids[i], 0);
		if (!model)
			continue;
		struct serving_model seen;
		serving_look(&request->service->serving, model->id, &seen);
		model_json_write(
		    &request->json, model, &showing->loads[i],
		    &(struct model_service){ &seen, serving_url(&request->service->serving, NULL) },
		    slot_view_owns(&request->service->roster, &request->identity, model),
		    &engine->arena);
		shown++;
	}
	catalogue_unlock(catalogue);
	if (showing->is_list) {
		json_close(&request->json);
		json_put_integer(&request->json, "total", showing->total);
		json_close(&request->json);
	} else if (shown == 0) {
		request_refuse(request, 404, "not_found", "the model is not known");
		return;
	}
	request_answer_json(request, showing->status);
}

static void show_one(struct request *request, int64_t id, int status)
{
	struct showing *showing = arena_alloc(&request->engine.arena, sizeof(*showing));
	*showing = (struct showing){ .count = 1, .status = status };
	showing->ids = arena_copy(&request->engine.arena, &id, sizeof(id));
	showing->loads = arena_alloc(&request->engine.arena, sizeof(*showing->loads));
	memset(showing->loads, 0, sizeof(*showing->loads));
	request->state = showing;
	request_look(request, look_at_models, model_show);
}

void model_calls_list(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_MODEL };
	struct showing *showing = arena_alloc(&request->engine.arena, sizeof(*showing));
	const struct model_record *model;
	struct page page;

	*showing = (struct showing){ .status = 200, .is_list = true };
	request->state = showing;
	if (!page_read(request, ID_MODEL, &page))
		return;
	if (!query_get(&request->exchange->query, "limit").data)
		page.limit = request->service->settings.limit_max;
	size_t limit = (size_t)page.limit;
	showing->ids = arena_alloc(&request->engine.arena, limit * sizeof(*showing->ids));
	showing->loads = arena_alloc(&request->engine.arena, limit * sizeof(*showing->loads));
	memset(showing->loads, 0, limit * sizeof(*showing->loads));
	catalogue_lock(catalogue);
	while ((model = catalogue_next(catalogue, &cursor)) != NULL) {
		if (!slot_view_may_see(&request->service->roster, &request->identity, model))
			continue;
		bool in_page =
		    page.after > 0 ? model->id > page.after : showing->total >= page.offset;
		showing->total++;
		if (in_page && showing->count < limit)
			showing->ids[showing->count++] = model->id;
	}
	catalogue_unlock(catalogue);
	request_look(request, look_at_models, model_show);
}

/* The model of that id or name; with `owned`, only where its tenant is the caller's. */
static bool find_named(struct request *request, struct text name, bool owned, int64_t *id)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	const struct roster *roster = &request->service->roster;
	bool several;

	catalogue_lock(catalogue);
	const struct model_record *model =
	    slot_view_find_model(catalogue, roster, &request->identity, name, &several);
	bool found = model && (!owned || slot_view_owns(roster, &request->identity, model));
	*id = model ? model->id : 0;
	catalogue_unlock(catalogue);
	if (found)
		return true;
	if (several)
		request_refuse(request, 409, "conflict",
		               "several models have the name %.*s: use an id, such as model-3",
		               (int)min64((int64_t)name.size, 128), name.data);
	else if (model)
		request_refuse(request, 403, "forbidden", "the model belongs to another tenant");
	else
		request_unknown(request, "model", name);
	return false;
}

/* The one that a path names. */
static bool model_find(struct request *request, bool owned, int64_t *id)
{
	return find_named(request, request_segment(request, 3), owned, id);
}

bool model_calls_of_path(struct request *request, int64_t *id)
{
	return model_find(request, false, id);
}

void model_calls_get(struct request *request)
{
	int64_t id;
	if (model_find(request, false, &id))
		show_one(request, id, 200);
}

void model_calls_logs(struct request *request)
{
	int64_t id;
	if (model_find(request, true, &id))
		job_logs_of_model(request, id);
}

static void made(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		show_one(request, engine->reply_id, 201);
	else
		request_fail(request, &engine->error);
}

static void changed(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		show_one(request, engine->reply_id, 200);
	else
		request_fail(request, &engine->error);
}

static void model_write(struct request *request, struct model_record model,
                        void (*done)(struct engine_request *engine))
{
	struct error error = { 0 };
	struct model_reading reading = { .arena = &request->engine.arena,
		                         .roster = &request->service->roster,
		                         .identity = &request->identity,
		                         .secret_keys = request->service->settings.secret_keys };
	if (!model_json_read(request->exchange->body, &reading, &model, &error)) {
		request_fail(request, &error);
		return;
	}
	request->engine.command.kind = COMMAND_PUT_MODEL;
	request->engine.command.model.model = model;
	request->engine.command.model.administrator = request->identity.role == ROLE_ADMIN;
	request_command(request, done);
}

void model_calls_create(struct request *request)
{
	model_write(request, model_json_default(), made);
}

void model_calls_put(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct model_record model = { 0 };
	int64_t id;
	if (!model_find(request, true, &id))
		return;
	catalogue_lock(catalogue);
	const struct model_record *old = catalogue_get(catalogue, RECORD_MODEL, id, 0);
	if (old)
		model =
		    *(struct model_record *)record_copy(&request->engine.arena, RECORD_MODEL, old);
	catalogue_unlock(catalogue);
	if (old)
		model_write(request, model, changed);
	else
		request_unknown(request, "model", request_segment(request, 3));
}

static void removed(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		request_answer_message(request, 200, "Model removed: it goes with its last slot");
	else
		request_fail(request, &engine->error);
}

void model_calls_delete(struct request *request)
{
	int64_t id;
	if (!model_find(request, true, &id))
		return;
	request->engine.command.kind = COMMAND_REMOVE_MODEL;
	request->engine.command.id = id;
	request_command(request, removed);
}

const char *model_calls_evicted_message(const struct engine_request *engine)
{
	return engine->command.evict.now
	           ? "Replicas are being stopped"
	           : "Replicas take no more requests, and stop when they have none";
}

static void evicted(struct engine_request *engine)
{
	struct request *request = request_of(engine);

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	struct json_writer *json = request_object(request);
	json_put_string(json, "message", model_calls_evicted_message(engine));
	json_put_integer(json, "replicas", engine->reply_count);
	json_close(json);
	request_answer_json(request, 200);
}

void model_calls_evict_named(struct request *request, const struct model_eviction *eviction,
                             void (*done)(struct engine_request *engine))
{
	struct command *command = &request->engine.command;
	int64_t id;

	if (!find_named(request, eviction->model, true, &id))
		return;
	command->kind = COMMAND_EVICT_MODEL;
	command->evict.model_id = id;
	command->evict.node =
	    eviction->node.data ? arena_string(&request->engine.arena, eviction->node.data) : "";
	command->evict.now = eviction->now;
	request_command_on(request, eviction->object, done);
}

void model_calls_evict(struct request *request)
{
	const struct query *query = &request->exchange->query;
	struct model_eviction eviction = { .model = request_segment(request, 3),
		                           .node = query_get(query, "node"),
		                           .object = request->exchange->path.data };
	struct error error = { 0 };

	if (query_flag(query, "now", false, &eviction.now, &error))
		model_calls_evict_named(request, &eviction, evicted);
	else
		request_fail(request, &error);
}

static bool look_why(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct request *request = request_of(engine);
	const int64_t *id = request->state;
	return sched_why_model(sched, *id, request_viewer(request), &engine->text, error);
}

static void answer_why(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const int64_t *id = request->state;
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	struct text rest = { engine->text.data, engine->text.size }, line;
	struct json_writer *json = request_object(request);
	json_put_id(json, "model_id", ID_MODEL, *id);
	json_open_array(json, "why");
	while (text_next(&rest, '\n', &line))
		if (line.size > 0)
			json_put_text(json, NULL, line);
	json_close(json);
	json_close(json);
	request_answer_json(request, 200);
}

void model_calls_why(struct request *request)
{
	int64_t id;
	if (!model_find(request, false, &id))
		return;
	request->state = arena_copy(&request->engine.arena, &id, sizeof(id));
	request_look(request, look_why, answer_why);
}
