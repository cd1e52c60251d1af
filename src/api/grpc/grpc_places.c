/* grpc_places.c - windows, and models that are evicted: the rules are those of REST */
#include <stdio.h>

#include "api/grpc/grpc_local.h"
#include "api/model/model_calls.h"
#include "api/node/window_calls.h"
#include "api/text/resource_message.h"
#include "scheduler.pb-c.h"

#define WINDOWS_PATH "/api/v1/windows"

/* The path in REST of a resource, for the audit log. */
static const char *path_of(struct request *request, const char *format, const char *name)
{
	struct buffer path = { 0 };

	buffer_print(&path, format, name);
	const char *copy = arena_string(&request->engine.arena, path.data);
	buffer_free(&path);
	return copy;
}

static Scheduler__Window *window_message(struct request *request, struct json_scan *scan)
{
	return (Scheduler__Window *)resource_message_write(
	    &window_resource, &scheduler__window__descriptor, scan, &request->engine.arena);
}

static struct json_scan scan_body(struct request *request, struct error *error)
{
	return json_scan_of((struct text){ request->body.data, request->body.size },
	                    &request->engine.arena, error);
}

static void window_made(struct request *request)
{
	Scheduler__CreateWindowResponse response = SCHEDULER__CREATE_WINDOW_RESPONSE__INIT;
	struct error error = { 0 };
	struct json_scan scan = scan_body(request, &error);

	response.window = window_message(request, &scan);
	grpc_answer(request, &response);
}

void grpc_create_window(struct request *request)
{
	struct buffer *scratch = &request->service->services->scratch;
	struct json_writer json = json_writer_to(scratch);
	struct error error = { 0 };

	buffer_clear(scratch);
	if (resource_message_read(&window_resource, request->message, &json, &error))
		window_calls_make(request, (struct text){ scratch->data, scratch->size },
		                  WINDOWS_PATH, window_made);
	else
		request_fail(request, &error);
}

static void window_found(struct request *request)
{
	Scheduler__GetWindowResponse response = SCHEDULER__GET_WINDOW_RESPONSE__INIT;
	struct error error = { 0 };
	struct json_scan scan = scan_body(request, &error);

	response.window = window_message(request, &scan);
	grpc_answer(request, &response);
}

void grpc_get_window(struct request *request)
{
	const Scheduler__GetWindowRequest *message = request->message;

	window_calls_find(request, text_of(message->name), window_found);
}

void grpc_list_windows(struct request *request)
{
	Scheduler__ListWindowsResponse response = SCHEDULER__LIST_WINDOWS_RESPONSE__INIT;
	struct error error = { 0 };
	struct text key;
	size_t room = 0;

	window_calls_write_all(request);
	struct json_scan scan = scan_body(request, &error);
	if (!json_scan_open(&scan, JSON_KIND_OBJECT) || !json_scan_member(&scan, &key) ||
	    !json_scan_open(&scan, JSON_KIND_ARRAY)) {
		request_reject(request, ERROR_CORRUPT, "the windows cannot be shown: %s",
		               error.text);
		return;
	}
	while (json_scan_element(&scan)) {
		Scheduler__Window **before = response.windows;
		if (response.n_windows == room) {
			room = room > 0 ? 2 * room : 16;
			response.windows =
			    arena_alloc(&request->engine.arena, room * sizeof(*before));
			for (size_t i = 0; i < response.n_windows; i++)
				response.windows[i] = before[i];
		}
		response.windows[response.n_windows++] = window_message(request, &scan);
	}
	grpc_answer(request, &response);
}

static void window_deleted(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	Scheduler__DeleteWindowResponse response = SCHEDULER__DELETE_WINDOW_RESPONSE__INIT;
	static char message[] = "Window deleted";

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	response.success = true;
	response.message = message;
	grpc_answer(request, &response);
}

void grpc_delete_window(struct request *request)
{
	const Scheduler__DeleteWindowRequest *message = request->message;

	window_calls_remove(request, text_of(message->name),
	                    path_of(request, WINDOWS_PATH "/%s", message->name), window_deleted);
}

static void model_evicted(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	Scheduler__EvictModelResponse response = SCHEDULER__EVICT_MODEL_RESPONSE__INIT;

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	response.success = true;
	response.message = arena_string(&engine->arena, model_calls_evicted_message(engine));
	response.replicas = (int32_t)min64(engine->reply_count, INT32_MAX);
	grpc_answer(request, &response);
}

void grpc_evict_model(struct request *request)
{
	const Scheduler__EvictModelRequest *message = request->message;

	model_calls_evict_named(
	    request,
	    &(struct model_eviction){
		.model = text_of(message->model),
		.node = text_of(message->node),
		.now = message->now,
		.object = path_of(request, "/api/v1/models/%s/evict", message->model) },
	    model_evicted);
}
