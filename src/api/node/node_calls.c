/* node_calls.c - nodes and their GPUs: shown, drained and given up */
#include "api/node/node_calls.h"

#include "api/model/slot_view.h"
#include "api/node/gpu_view.h"
#include "api/read/gpu_books.h"
#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "api/text/resource_json.h"

#define MIB_BYTES INT64_C(1048576)

enum { DRAIN_REASON_MAX = 1024 };

static void put_gpu(struct request *request, const struct node_record *node,
                    const struct gpu_record *gpu, bool with_holders)
{
	gpu_view_write(&request->json,
	               &(struct gpu_view){ .service = request->service,
	                                   .identity = &request->identity,
	                                   .with_holders = with_holders },
	               node, gpu);
}

/* What a node is written from. */
struct node_source {
	struct request *request;
	const struct node_record *node;
	const struct gpu_record *const *gpus;
	size_t gpu_count;
	bool with_gpus;
};

static void write_gpus(struct resource_writer *writer)
{
	const struct node_source *source = writer->context;

	if (!source->with_gpus)
		return;
	json_open_array(writer->json, writer->field->name);
	for (size_t i = 0; i < source->gpu_count; i++)
		put_gpu(source->request, source->node, source->gpus[i], true);
	json_close(writer->json);
}

static void (*const writers[NODE_FIELDS_COUNT])(struct resource_writer *) = {
	[NODE_FIELD_gpus] = write_gpus,
};

static void put_node(struct request *request, const struct catalogue *catalogue,
                     const struct node_record *node, bool with_gpus)
{
	struct node_source source = { .request = request, .node = node, .with_gpus = with_gpus };
	const struct reservation_record *const *reservations;
	size_t reservation_count = catalogue_node_reservations(catalogue, node->id, &reservations);
	int64_t available = 0, cpu_milli = 0, host_bytes = 0;

	source.gpu_count = catalogue_node_gpus(catalogue, node->id, &source.gpus);
	for (size_t i = 0; i < source.gpu_count; i++) {
		struct gpu_books books = gpu_books(catalogue, source.gpus[i]);
		available += gpu_is_available(node, &books);
	}
	for (size_t i = 0; i < reservation_count; i++) {
		if (reservations[i]->phase == PHASE_CLAIM)
			continue;
		cpu_milli += reservations[i]->away ? 0 : reservations[i]->cpu_milli;
		host_bytes += reservations[i]->host_bytes + reservations[i]->copy_bytes;
	}
	const void *const records[RECORD_KINDS] = { [RECORD_NODE] = node };
	const struct field_value values[NODE_FIELDS_COUNT] = {
		[NODE_FIELD_online] = FIELD_NUMBER(node->state == NODE_ONLINE),
		[NODE_FIELD_connected] =
		    FIELD_NUMBER(agents_is_connected(request->service->agents, node->name)),
		[NODE_FIELD_total_gpus] = FIELD_NUMBER((int64_t)source.gpu_count),
		[NODE_FIELD_available_gpus] = FIELD_NUMBER(available),
		[NODE_FIELD_used_cpu_cores] = FIELD_NUMBER(cpu_milli),
		[NODE_FIELD_used_memory_mb] = FIELD_NUMBER(host_bytes / MIB_BYTES),
		[NODE_FIELD_reservations] = FIELD_NUMBER((int64_t)reservation_count),
	};
	json_open_object(&request->json, NULL);
	resource_write(&(struct resource_writer){ .resource = &node_resource,
	                                          .json = &request->json,
	                                          .records = records,
	                                          .special = writers,
	                                          .values = values,
	                                          .context = &source,
	                                          .arena = &request->engine.arena });
	json_close(&request->json);
}

void node_calls_list(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct node_record *node;
	struct page page;
	int64_t place = 0;

	if (!page_read(request, "", &page))
		return;
	if (!query_get(&request->exchange->query, "limit").data)
		page.limit = request->service->settings.limit_max;
	struct json_writer *json = request_object(request);
	json_open_array(json, "nodes");
	catalogue_lock(catalogue);
	while ((node = catalogue_next(catalogue, &cursor)) != NULL) {
		if (place >= page.offset && place < page.offset + page.limit)
			put_node(request, catalogue, node, false);
		service_breathe(request->service, place++);
	}
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_integer(json, "total", place);
	json_close(json);
	request_answer_json(request, 200);
}

const char *node_calls_of_path(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct text name = request_segment(request, 3);
	catalogue_lock(catalogue);
	bool found = catalogue_node_named(catalogue, name.data) != NULL;
	catalogue_unlock(catalogue);
	if (found)
		return name.data;
	request_unknown(request, "node", name);
	return NULL;
}

void node_calls_get(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	const char *name = node_calls_of_path(request);
	if (!name)
		return;
	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, name);
	if (node)
		put_node(request, catalogue, node, true);
	catalogue_unlock(catalogue);
	if (node)
		request_answer_json(request, 200);
	else
		request_unknown(request, "node", request_segment(request, 3));
}

void node_calls_gpus(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	struct text wanted = query_get(&request->exchange->query, "node");
	const struct node_record *node;
	const struct gpu_record *const *gpus;
	struct error error = { 0 };
	struct page page;
	int64_t place = 0, done = 0;
	bool holders;

	if (!page_read(request, "", &page))
		return;
	if (!query_flag(&request->exchange->query, "holders", false, &holders, &error)) {
		request_fail(request, &error);
		return;
	}
	if (!query_get(&request->exchange->query, "limit").data)
		page.limit = request->service->settings.limit_max;
	struct json_writer *json = request_object(request);
	json_open_array(json, "gpus");
	catalogue_lock(catalogue);
	while ((node = catalogue_next(catalogue, &cursor)) != NULL) {
		if (wanted.data && !text_is(wanted, node->name))
			continue;
		size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
		for (size_t i = 0; i < count; i++)
			if (place++ >= page.offset && place <= page.offset + page.limit)
				put_gpu(request, node, gpus[i], holders);
		service_breathe(request->service, done++);
	}
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_integer(json, "total", place);
	json_close(json);
	request_answer_json(request, 200);
}

/* Changing. */

static void node_answer(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		request_answer_message(request, 200, request->state);
	else
		request_fail(request, &engine->error);
}

static void node_node_drain(struct request *request, bool draining, char *message)
{
	const char *name = node_calls_of_path(request);
	if (!name)
		return;
	struct text reason = query_get(&request->exchange->query, "reason");
	if (reason.size > DRAIN_REASON_MAX) {
		struct error error = { 0 };
		error_set(&error, ERROR_INVALID, "reason has more than %d bytes", DRAIN_REASON_MAX);
		request_fail(request, &error);
		return;
	}
	request->state = message;
	request->engine.command.kind = COMMAND_NODE_DRAIN;
	request->engine.command.drain.name = arena_string(&request->engine.arena, name);
	request->engine.command.drain.draining = draining;
	request->engine.command.drain.reason =
	    reason.data ? arena_string(&request->engine.arena, reason.data) : NULL;
	request_command(request, node_answer);
}

void node_calls_drain(struct request *request)
{
	static char message[] = "Node is draining: no new jobs start there, running jobs finish";
	node_node_drain(request, true, message);
}

void node_calls_resume(struct request *request)
{
	static char message[] = "Node is accepting work";
	node_node_drain(request, false, message);
}

static void given_up(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		agents_given_up(request->service->agents, engine->command.node, request->state);
	node_answer(engine);
}

static void node_give_up(struct request *request, enum command_kind kind, char *message)
{
	const char *name = node_calls_of_path(request);
	if (!name)
		return;
	request->state = message;
	request->engine.command.kind = kind;
	request->engine.command.node = arena_string(&request->engine.arena, name);
	request_command(request, given_up);
}

void node_calls_dead(struct request *request)
{
	static char message[] = "Node is declared dead: what ran there is queued again";
	node_give_up(request, COMMAND_NODE_DEAD, message);
}

void node_calls_remove(struct request *request)
{
	static char message[] = "Node removed";
	node_give_up(request, COMMAND_NODE_REMOVE, message);
}

/* A runner is a node as routers of inference know it. */

static void put_runner_models(struct request *request, const struct catalogue *catalogue,
                              const struct node_record *node)
{
	const struct reservation_record *const *reservations;
	size_t count = catalogue_node_reservations(catalogue, node->id, &reservations);

	json_open_array(&request->json, "models");
	for (size_t i = 0; i < count; i++) {
		bool again = reservations[i]->job_id != 0;
		for (size_t j = 0; j < i && !again; j++)
			again = reservations[j]->job_id == 0 &&
			        reservations[j]->model_id == reservations[i]->model_id;
		const struct model_record *model =
		    again ? NULL
			  : catalogue_get(catalogue, RECORD_MODEL, reservations[i]->model_id, 0);
		if (model &&
		    slot_view_may_see(&request->service->roster, &request->identity, model))
			json_put_string(&request->json, NULL, model->name);
	}
	json_close(&request->json);
}

void node_calls_runner(struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	const char *name = node_calls_of_path(request);
	const struct gpu_record *const *gpus;
	const struct reservation_record *const *reservations;
	if (!name)
		return;
	struct json_writer *json = request_object(request);
	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, name);
	if (!node) {
		catalogue_unlock(catalogue);
		request_unknown(request, "runner", request_segment(request, 3));
		return;
	}
	json_put_string(json, "id", node->name);
	json_put_string(json, "state", word_of(&node_state_words, node->state));
	json_open_array(json, "gpus");
	size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
	for (size_t i = 0; i < count; i++)
		put_gpu(request, node, gpus[i], false);
	json_close(json);
	json_open_array(json, "slots");
	count = catalogue_node_reservations(catalogue, node->id, &reservations);
	for (size_t i = 0; i < count; i++)
		if (reservations[i]->job_id == 0)
			slot_view_write(request, catalogue, reservations[i]->id);
	json_close(json);
	put_runner_models(request, catalogue, node);
	json_close(json);
	catalogue_unlock(catalogue);
	request_answer_json(request, 200);
}
