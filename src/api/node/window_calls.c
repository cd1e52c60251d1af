/* window_calls.c - windows: made, shown and deleted */
#include "api/node/window_calls.h"

#include <string.h>

#include "api/service/service_state.h"
#include "api/text/resource_change.h"
#include "api/text/resource_json.h"
#include "api/text/times.h"
#include "base/clock.h"
#include "core/cluster/window.h"
#include "json/json_reader.h"

/* What the row of a field does not say. */
static const bool is_special[WINDOW_FIELDS_COUNT] = {
	[WINDOW_FIELD_tenant_id] = true,
	[WINDOW_FIELD_start] = true,
	[WINDOW_FIELD_nodes] = true,
	[WINDOW_FIELD_gpus] = true,
};

/* A list of texts as lines. */
static const char *read_lines(struct json_reader *reader, struct arena *arena,
                              enum window_field place)
{
	const struct resource_field *field = &window_resource.fields[place];
	const json_t *list = json_get_array(reader, field->name, (size_t)field->items), *item;
	struct buffer lines = { 0 };
	size_t i;

	buffer_text(&lines, "");
	json_array_foreach(list, i, item)
	{
		const char *text = json_string_value(item);
		if (!text || !*text || strchr(text, '\n') || strlen(text) > (size_t)field->most)
			json_fail(reader, field->name, "must be a list of names");
		else
			buffer_print(&lines, "%s\n", text);
	}
	const char *copy = arena_string(arena, lines.data);
	buffer_free(&lines);
	return copy;
}

static void read_start(struct json_reader *reader, struct window_record *window)
{
	struct text text = json_get_text(reader, "start", CALENDAR_TEXT_MAX);

	window->start_ms = clock_unix_ms();
	if (text.data && !calendar_read(text, &window->start_ms))
		json_fail(reader, "start", "must be a time such as \"2030-01-31T12:00:00Z\"");
}

static void read_tenant(struct json_reader *reader, const struct roster *roster,
                        struct window_record *window)
{
	struct text name = json_get_text(
	    reader, "tenant_id", (size_t)window_resource.fields[WINDOW_FIELD_tenant_id].most);
	const struct roster_tenant *tenant = name.size > 0 ? roster_named(roster, name) : NULL;

	if (name.size > 0 && !tenant)
		json_fail(reader, "tenant_id", "names no tenant");
	window->tenant_id = tenant ? tenant->id : 0;
}

static bool read_window(const struct request *request, struct text json, struct arena *arena,
                        struct window_command *command, struct error *error)
{
	json_t *document = json_read(json, NULL, error);
	struct json_reader reader = json_reader_of(document, "", error);
	struct resource_change change = { .json = &reader,
		                          .resource = &window_resource,
		                          .record = &command->window,
		                          .arena = arena,
		                          .is_special = is_special };

	if (!document)
		return false;
	resource_store_initial(&window_resource, &command->window);
	command->window.lead_ms = WINDOW_DAY_MS;
	resource_change(&change);
	read_tenant(&reader, &request->service->roster, &command->window);
	read_start(&reader, &command->window);
	command->window.nodes = read_lines(&reader, arena, WINDOW_FIELD_nodes);
	command->window.gpus = read_lines(&reader, arena, WINDOW_FIELD_gpus);
	command->window.user = arena_string(arena, identity_user(&request->identity));
	const struct resource_field *count = &window_resource.fields[WINDOW_FIELD_gpu_count];
	command->gpu_count = json_get_integer(&reader, count->name, count->least, count->most, 0);
	struct text model = json_get_text(&reader, "gpu_model", JOB_NAME_BYTES_MAX);
	command->gpu_model = arena_string(arena, model.data ? model.data : "");
	bool good = resource_change_end(&change);
	json_decref(document);
	return good;
}

static void put_lines(struct resource_writer *writer, const char *list)
{
	struct text rest = text_of(list), line;

	json_open_array(writer->json, writer->field->name);
	while (text_next(&rest, '\n', &line))
		if (line.size > 0)
			json_put_text(writer->json, NULL, line);
	json_close(writer->json);
}

static void put_nodes(struct resource_writer *writer)
{
	put_lines(writer, ((const struct window_record *)writer->context)->nodes);
}

static void put_gpus(struct resource_writer *writer)
{
	put_lines(writer, ((const struct window_record *)writer->context)->gpus);
}

static void (*const writers[WINDOW_FIELDS_COUNT])(struct resource_writer *) = {
	[WINDOW_FIELD_nodes] = put_nodes,
	[WINDOW_FIELD_gpus] = put_gpus,
};

/* Whose window it is, and why, is for those who may see that tenant. */
static void window_write(struct request *request, const struct window_record *window)
{
	const struct roster *roster = &request->service->roster;
	struct window_time time = window_time(window, clock_unix_ms());
	bool seen =
	    window->tenant_id == 0 || roster_may_see(roster, &request->identity, window->tenant_id);
	bool comes = time.begin_ms != INT64_MAX;
	struct window_record shown = *window;
	const void *const records[RECORD_KINDS] = { [RECORD_WINDOW] = &shown };
	const struct field_value values[WINDOW_FIELDS_COUNT] = {
		[WINDOW_FIELD_tenant_id] = FIELD_ID(seen ? window->tenant_id : 0),
		[WINDOW_FIELD_open] = FIELD_NUMBER(window->open),
		[WINDOW_FIELD_next_start] = FIELD_NUMBER_IF(comes, comes ? time.begin_ms : 0),
		[WINDOW_FIELD_next_end] = FIELD_NUMBER_IF(comes, comes ? time.end_ms : 0),
	};

	if (!seen)
		shown.reason = shown.user = "";
	json_open_object(&request->json, NULL);
	resource_write(&(struct resource_writer){ .resource = &window_resource,
	                                          .json = &request->json,
	                                          .records = records,
	                                          .special = writers,
	                                          .values = values,
	                                          .context = &shown,
	                                          .arena = &request->engine.arena });
	json_close(&request->json);
}

/* The catalogue is locked by the caller. */
static const struct window_record *window_named(const struct catalogue *catalogue, const char *name)
{
	struct catalogue_cursor cursor = { .kind = RECORD_WINDOW };
	const struct window_record *window;

	while ((window = catalogue_next(catalogue, &cursor)) != NULL)
		if (strcmp(window->name, name) == 0)
			return window;
	return NULL;
}

/* Writes the window of that id or, where that is 0, of that name; `shown` answers. */
static void show_window(struct request *request, int64_t id, struct text name, window_shown *shown)
{
	struct catalogue *catalogue = service_catalogue(request->service);

	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	catalogue_lock(catalogue);
	const struct window_record *window = id > 0 ? catalogue_get(catalogue, RECORD_WINDOW, id, 0)
	                                            : window_named(catalogue, name.data);
	if (window)
		window_write(request, window);
	catalogue_unlock(catalogue);
	if (window)
		shown(request);
	else
		request_unknown(request, "window", name);
}

/* What a request that makes one keeps. */
struct window_making {
	window_shown *shown;
};

static void made(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct window_making *making = request->state;

	if (engine->ok)
		show_window(request, engine->reply_id, text_of(engine->command.window.window.name),
		            making->shown);
	else
		request_fail(request, &engine->error);
}

void window_calls_make(struct request *request, struct text json, const char *object,
                       window_shown *shown)
{
	struct error error = { 0 };
	struct command *command = &request->engine.command;
	struct window_making *making = arena_alloc(&request->engine.arena, sizeof(*making));

	command->window = (struct window_command){ .gpu_model = "" };
	if (!read_window(request, json, &request->engine.arena, &command->window, &error)) {
		request_fail(request, &error);
		return;
	}
	making->shown = shown;
	request->state = making;
	command->kind = COMMAND_PUT_WINDOW;
	request_command_on(request, object, made);
}

void window_calls_find(struct request *request, struct text name, window_shown *shown)
{
	show_window(request, 0, name, shown);
}

void window_calls_write_all(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_WINDOW };
	struct json_writer *json = request_object(request);
	const struct window_record *window;
	int64_t count = 0;

	json_open_array(json, "windows");
	catalogue_lock(catalogue);
	for (; (window = catalogue_next(catalogue, &cursor)) != NULL; count++)
		window_write(request, window);
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_integer(json, "total", count);
	json_close(json);
}

void window_calls_remove(struct request *request, struct text name, const char *object,
                         void (*done)(struct engine_request *engine))
{
	struct catalogue *catalogue = service_catalogue(request->service);

	catalogue_lock(catalogue);
	const struct window_record *window = window_named(catalogue, name.data);
	int64_t id = window ? window->id : 0;
	catalogue_unlock(catalogue);
	if (!window) {
		request_unknown(request, "window", name);
		return;
	}
	request->engine.command.kind = COMMAND_REMOVE_WINDOW;
	request->engine.command.id = id;
	request_command_on(request, object, done);
}

/* Over REST. */

static void answer_made(struct request *request)
{
	request_answer_json(request, 201);
}

static void answer_found(struct request *request)
{
	request_answer_json(request, 200);
}

static void deleted(struct engine_request *engine)
{
	struct request *request = request_of(engine);

	if (engine->ok)
		request_answer_message(request, 200, "Window deleted");
	else
		request_fail(request, &engine->error);
}

void window_calls_create(struct request *request)
{
	window_calls_make(request, request->exchange->body, request->exchange->path.data,
	                  answer_made);
}

void window_calls_list(struct request *request)
{
	window_calls_write_all(request);
	request_answer_json(request, 200);
}

void window_calls_get(struct request *request)
{
	window_calls_find(request, request_segment(request, 3), answer_found);
}

void window_calls_delete(struct request *request)
{
	window_calls_remove(request, request_segment(request, 3), request->exchange->path.data,
	                    deleted);
}
