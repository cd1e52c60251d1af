/* model_calls.c - models: put, shown, explained and removed */
#include "api/model/model_calls.h"

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

static bool look_at_models(struct ask *ask, struct sched *sched, struct error *error)
{
	struct showing *showing = call_of(ask)->state;
	(void)error;
	for (size_t i = 0; i < showing->count; i++)
		if (!sched_model_load(sched, showing->ids[i], &showing->loads[i]))
			showing->ids[i] = 0;
	return true;
}

static void show(struct ask *ask)
{
	struct call *call = call_of(ask);
	const struct showing *showing = call->state;
	struct catalogue *catalogue = service_catalogue(call->service);
	size_t shown = 0;
	if (!ask->ok) {
		call_fail(call, &ask->error);
		return;
	}
	buffer_clear(&call->body);
	call->json = json_writer_to(&call->body);
	if (showing->is_list) {
		json_open_object(&call->json, NULL);
		json_open_array(&call->json, "models");
	}
	catalogue_lock(catalogue);
	for (size_t i = 0; i < showing->count; i++) {
		const struct model_record *model =
		    catalogue_get(catalogue, RECORD_MODEL, showing->ids[i], 0);
		if (!model)
			continue;
		model_json_write(&call->json, model, &showing->loads[i],
		                 slot_view_owns(&call->service->roster, &call->identity, model),
		                 &ask->arena);
		shown++;
	}
	catalogue_unlock(catalogue);
	if (showing->is_list) {
		json_close(&call->json);
		json_put_integer(&call->json, "total", showing->total);
		json_close(&call->json);
	} else if (shown == 0) {
		call_refuse(call, 404, "not_found", "the model is not known");
		return;
	}
	call_answer_json(call, showing->status);
}

static void show_one(struct call *call, int64_t id, int status)
{
	struct showing *showing = arena_alloc(&call->ask.arena, sizeof(*showing));
	*showing = (struct showing){ .count = 1, .status = status };
	showing->ids = arena_copy(&call->ask.arena, &id, sizeof(id));
	showing->loads = arena_alloc(&call->ask.arena, sizeof(*showing->loads));
	memset(showing->loads, 0, sizeof(*showing->loads));
	call->state = showing;
	call_look(call, look_at_models, show);
}

void model_calls_list(struct call *call)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_cursor cursor = { .kind = RECORD_MODEL };
	struct showing *showing = arena_alloc(&call->ask.arena, sizeof(*showing));
	const struct model_record *model;
	struct page page;

	*showing = (struct showing){ .status = 200, .is_list = true };
	call->state = showing;
	if (!page_read(call, ID_MODEL, &page))
		return;
	if (!query_get(&call->exchange->query, "limit").data)
		page.limit = call->service->settings.limit_max;
	size_t limit = (size_t)page.limit;
	showing->ids = arena_alloc(&call->ask.arena, limit * sizeof(*showing->ids));
	showing->loads = arena_alloc(&call->ask.arena, limit * sizeof(*showing->loads));
	memset(showing->loads, 0, limit * sizeof(*showing->loads));
	catalogue_lock(catalogue);
	while ((model = catalogue_next(catalogue, &cursor)) != NULL) {
		if (!slot_view_may_see(&call->service->roster, &call->identity, model))
			continue;
		bool in_page =
		    page.after > 0 ? model->id > page.after : showing->total >= page.offset;
		showing->total++;
		if (in_page && showing->count < limit)
			showing->ids[showing->count++] = model->id;
	}
	catalogue_unlock(catalogue);
	call_look(call, look_at_models, show);
}

/* The model that a path names; with `owned`, only where its tenant is the caller's. */
static bool find(struct call *call, bool owned, int64_t *id)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct text name = call_segment(call, 3);
	const struct roster *roster = &call->service->roster;
	bool several;

	catalogue_lock(catalogue);
	const struct model_record *model =
	    slot_view_find_model(catalogue, roster, &call->identity, name, &several);
	bool found = model && (!owned || slot_view_owns(roster, &call->identity, model));
	*id = model ? model->id : 0;
	catalogue_unlock(catalogue);
	if (found)
		return true;
	if (several)
		call_refuse(call, 409, "conflict",
		            "several models have the name %.*s: use an id, such as model-3",
		            (int)min64((int64_t)name.size, 128), name.data);
	else if (model)
		call_refuse(call, 403, "forbidden", "the model belongs to another tenant");
	else
		call_unknown(call, "model", name);
	return false;
}

bool model_calls_of_path(struct call *call, int64_t *id)
{
	return find(call, false, id);
}

void model_calls_get(struct call *call)
{
	int64_t id;
	if (find(call, false, &id))
		show_one(call, id, 200);
}

static void made(struct ask *ask)
{
	struct call *call = call_of(ask);
	if (ask->ok)
		show_one(call, ask->reply_id, 201);
	else
		call_fail(call, &ask->error);
}

static void changed(struct ask *ask)
{
	struct call *call = call_of(ask);
	if (ask->ok)
		show_one(call, ask->reply_id, 200);
	else
		call_fail(call, &ask->error);
}

static void put(struct call *call, struct model_record model, void (*done)(struct ask *ask))
{
	struct error error = { 0 };
	struct model_reading reading = { .arena = &call->ask.arena,
		                         .roster = &call->service->roster,
		                         .identity = &call->identity,
		                         .secret_keys = call->service->settings.secret_keys };
	if (!model_json_read(call->exchange->body, &reading, &model, &error)) {
		call_fail(call, &error);
		return;
	}
	call->ask.command.kind = COMMAND_PUT_MODEL;
	call->ask.command.model.model = model;
	call->ask.command.model.administrator = call->identity.role == ROLE_ADMIN;
	call_command(call, done);
}

void model_calls_create(struct call *call)
{
	put(call, model_json_default(), made);
}

void model_calls_put(struct call *call)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct model_record model = { 0 };
	int64_t id;
	if (!find(call, true, &id))
		return;
	catalogue_lock(catalogue);
	const struct model_record *old = catalogue_get(catalogue, RECORD_MODEL, id, 0);
	if (old)
		model = *(struct model_record *)record_copy(&call->ask.arena, RECORD_MODEL, old);
	catalogue_unlock(catalogue);
	if (old)
		put(call, model, changed);
	else
		call_unknown(call, "model", call_segment(call, 3));
}

static void removed(struct ask *ask)
{
	struct call *call = call_of(ask);
	if (ask->ok)
		call_answer_message(call, 200, "Model removed: it goes with its last slot");
	else
		call_fail(call, &ask->error);
}

void model_calls_delete(struct call *call)
{
	int64_t id;
	if (!find(call, true, &id))
		return;
	call->ask.command.kind = COMMAND_REMOVE_MODEL;
	call->ask.command.id = id;
	call_command(call, removed);
}

static bool look_why(struct ask *ask, struct sched *sched, struct error *error)
{
	struct call *call = call_of(ask);
	const int64_t *id = call->state;
	return sched_why_model(sched, *id, call_viewer(call), &ask->text, error);
}

static void answer_why(struct ask *ask)
{
	struct call *call = call_of(ask);
	const int64_t *id = call->state;
	if (!ask->ok) {
		call_fail(call, &ask->error);
		return;
	}
	struct text rest = { ask->text.data, ask->text.size }, line;
	struct json_writer *json = call_object(call);
	json_put_id(json, "model_id", ID_MODEL, *id);
	json_open_array(json, "why");
	while (text_next(&rest, '\n', &line))
		if (line.size > 0)
			json_put_text(json, NULL, line);
	json_close(json);
	json_close(json);
	call_answer_json(call, 200);
}

void model_calls_why(struct call *call)
{
	int64_t id;
	if (!find(call, false, &id))
		return;
	call->state = arena_copy(&call->ask.arena, &id, sizeof(id));
	call_look(call, look_why, answer_why);
}
