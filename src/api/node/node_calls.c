/* node_calls.c - nodes and their GPUs: shown, drained and given up */
#include "api/node/node_calls.h"

#include "api/model/slot_view.h"
#include "api/node/gpu_view.h"
#include "api/read/gpu_books.h"
#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "api/text/labels.h"
#include "api/text/times.h"

#define MIB_BYTES INT64_C(1048576)

static void put_gpu(struct call *call, const struct node_record *node, const struct gpu_record *gpu,
                    bool with_holders)
{
	gpu_view_write(&call->json,
	               &(struct gpu_view){ .service = call->service,
	                                   .identity = &call->identity,
	                                   .with_holders = with_holders },
	               node, gpu);
}

static void put_node(struct call *call, const struct catalogue *catalogue,
                     const struct node_record *node, bool with_gpus)
{
	struct json_writer *json = &call->json;
	const struct gpu_record *const *gpus;
	size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
	const struct reservation_record *const *reservations;
	size_t reservation_count = catalogue_node_reservations(catalogue, node->id, &reservations);
	int64_t available = 0, cpu_milli = 0, host_bytes = 0;

	for (size_t i = 0; i < count; i++) {
		struct gpu_books books = gpu_books(catalogue, gpus[i]);
		available += gpu_is_available(node, &books);
	}
	for (size_t i = 0; i < reservation_count; i++) {
		if (reservations[i]->phase == PHASE_CLAIM)
			continue;
		cpu_milli += reservations[i]->cpu_milli;
		host_bytes += reservations[i]->host_bytes;
	}
	json_open_object(json, NULL);
	json_put_string(json, "id", node->name);
	json_put_string(json, "name", node->name);
	json_put_string(json, "state", word_of(&node_state_words, node->state));
	json_put_flag(json, "online", node->state == NODE_ONLINE);
	json_put_flag(json, "connected", agents_is_connected(call->service->agents, node->name));
	json_put_flag(json, "draining", node->draining);
	json_put_flag(json, "reported", node->reported);
	json_put_string(json, "zone", node->zone);
	json_put_string(json, "rack", node->rack);
	int labels = resource_find(&node_resource, "labels", strlen("labels"));
	labels_write(json, &node_resource.fields[labels], node->labels, &call->ask.arena);
	json_put_integer(json, "total_gpus", (int64_t)count);
	json_put_integer(json, "available_gpus", available);
	json_put_decimal(json, "total_cpu_cores", node->cpu_milli, 3);
	json_put_decimal(json, "used_cpu_cores", cpu_milli, 3);
	json_put_integer(json, "total_memory_mb", node->host_bytes / MIB_BYTES);
	json_put_integer(json, "used_memory_mb", host_bytes / MIB_BYTES);
	json_put_integer(json, "reservations", (int64_t)reservation_count);
	if (with_gpus) {
		json_open_array(json, "gpus");
		for (size_t i = 0; i < count; i++)
			put_gpu(call, node, gpus[i], true);
		json_close(json);
	}
	json_close(json);
}

void node_calls_list(struct call *call)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct node_record *node;
	struct page page;
	int64_t place = 0;

	if (!page_read(call, "", &page))
		return;
	if (!query_get(&call->exchange->query, "limit").data)
		page.limit = call->service->settings.limit_max;
	struct json_writer *json = call_object(call);
	json_open_array(json, "nodes");
	catalogue_lock(catalogue);
	while ((node = catalogue_next(catalogue, &cursor)) != NULL) {
		if (place >= page.offset && place < page.offset + page.limit)
			put_node(call, catalogue, node, false);
		service_breathe(call->service, place++);
	}
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_integer(json, "total", place);
	json_close(json);
	call_answer_json(call, 200);
}

const char *node_calls_of_path(struct call *call)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct text name = call_segment(call, 3);
	catalogue_lock(catalogue);
	bool found = catalogue_node_named(catalogue, name.data) != NULL;
	catalogue_unlock(catalogue);
	if (found)
		return name.data;
	call_unknown(call, "node", name);
	return NULL;
}

void node_calls_get(struct call *call)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	const char *name = node_calls_of_path(call);
	if (!name)
		return;
	buffer_clear(&call->body);
	call->json = json_writer_to(&call->body);
	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, name);
	if (node)
		put_node(call, catalogue, node, true);
	catalogue_unlock(catalogue);
	if (node)
		call_answer_json(call, 200);
	else
		call_unknown(call, "node", call_segment(call, 3));
}

void node_calls_gpus(struct call *call)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	struct text wanted = query_get(&call->exchange->query, "node");
	const struct node_record *node;
	const struct gpu_record *const *gpus;
	struct error error = { 0 };
	struct page page;
	int64_t place = 0, done = 0;
	bool holders;

	if (!page_read(call, "", &page))
		return;
	if (!query_flag(&call->exchange->query, "holders", false, &holders, &error)) {
		call_fail(call, &error);
		return;
	}
	if (!query_get(&call->exchange->query, "limit").data)
		page.limit = call->service->settings.limit_max;
	struct json_writer *json = call_object(call);
	json_open_array(json, "gpus");
	catalogue_lock(catalogue);
	while ((node = catalogue_next(catalogue, &cursor)) != NULL) {
		if (wanted.data && !text_is(wanted, node->name))
			continue;
		size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
		for (size_t i = 0; i < count; i++)
			if (place++ >= page.offset && place <= page.offset + page.limit)
				put_gpu(call, node, gpus[i], holders);
		service_breathe(call->service, done++);
	}
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_integer(json, "total", place);
	json_close(json);
	call_answer_json(call, 200);
}

/* Changing. */

static void answer(struct ask *ask)
{
	struct call *call = call_of(ask);
	if (ask->ok)
		call_answer_message(call, 200, call->state);
	else
		call_fail(call, &ask->error);
}

static void drain(struct call *call, bool draining, char *message)
{
	const char *name = node_calls_of_path(call);
	if (!name)
		return;
	call->state = message;
	call->ask.command.kind = COMMAND_NODE_DRAIN;
	call->ask.command.drain.name = arena_string(&call->ask.arena, name);
	call->ask.command.drain.draining = draining;
	call_command(call, answer);
}

void node_calls_drain(struct call *call)
{
	static char message[] = "Node is draining: it takes no new work";
	drain(call, true, message);
}

void node_calls_resume(struct call *call)
{
	static char message[] = "Node takes work again";
	drain(call, false, message);
}

static void given_up(struct ask *ask)
{
	struct call *call = call_of(ask);
	if (ask->ok)
		agents_given_up(call->service->agents, ask->command.node, call->state);
	answer(ask);
}

static void give_up(struct call *call, enum command_kind kind, char *message)
{
	const char *name = node_calls_of_path(call);
	if (!name)
		return;
	call->state = message;
	call->ask.command.kind = kind;
	call->ask.command.node = arena_string(&call->ask.arena, name);
	call_command(call, given_up);
}

void node_calls_dead(struct call *call)
{
	static char message[] = "Node is declared dead: what ran there is queued again";
	give_up(call, COMMAND_NODE_DEAD, message);
}

void node_calls_remove(struct call *call)
{
	static char message[] = "Node removed";
	give_up(call, COMMAND_NODE_REMOVE, message);
}

/* A runner is a node as routers of inference know it. */

static void put_runner_models(struct call *call, const struct catalogue *catalogue,
                              const struct node_record *node)
{
	const struct reservation_record *const *reservations;
	size_t count = catalogue_node_reservations(catalogue, node->id, &reservations);

	json_open_array(&call->json, "models");
	for (size_t i = 0; i < count; i++) {
		bool again = reservations[i]->job_id != 0;
		for (size_t j = 0; j < i && !again; j++)
			again = reservations[j]->job_id == 0 &&
			        reservations[j]->model_id == reservations[i]->model_id;
		const struct model_record *model =
		    again ? NULL
			  : catalogue_get(catalogue, RECORD_MODEL, reservations[i]->model_id, 0);
		if (model && slot_view_may_see(&call->service->roster, &call->identity, model))
			json_put_string(&call->json, NULL, model->name);
	}
	json_close(&call->json);
}

void node_calls_runner(struct call *call)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	const char *name = node_calls_of_path(call);
	const struct gpu_record *const *gpus;
	const struct reservation_record *const *reservations;
	if (!name)
		return;
	struct json_writer *json = call_object(call);
	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, name);
	if (!node) {
		catalogue_unlock(catalogue);
		call_unknown(call, "runner", call_segment(call, 3));
		return;
	}
	json_put_string(json, "id", node->name);
	json_put_string(json, "state", word_of(&node_state_words, node->state));
	json_open_array(json, "gpus");
	size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
	for (size_t i = 0; i < count; i++)
		put_gpu(call, node, gpus[i], false);
	json_close(json);
	json_open_array(json, "slots");
	count = catalogue_node_reservations(catalogue, node->id, &reservations);
	for (size_t i = 0; i < count; i++)
		if (reservations[i]->job_id == 0)
			slot_view_write(call, catalogue, reservations[i]->id);
	json_close(json);
	put_runner_models(call, catalogue, node);
	json_close(json);
	catalogue_unlock(catalogue);
	call_answer_json(call, 200);
}
