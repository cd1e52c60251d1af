/* models_fixture.c - models in slots, on nodes that load and unload at once */
#include "core/bench/models_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const struct node_kind node_kind = {
	.gpus = GPUS_OF_NODE,
	.model = "H100",
	.memory_mib = 81920,
	.cpu_milli = 128000,
	.host_bytes = 1024 * GIB,
};

static int64_t models_fixture_put_model(struct models_fixture *fixture, int place,
                                        int64_t memory_mib)
{
	struct command command = { .kind = COMMAND_PUT_MODEL };
	char name[32];
	snprintf(name, sizeof(name), "model-%05d", place);
	command.model.model = (struct model_record){
		.tenant_id = fixture->tenant_id,
		.name = name,
		.runtime = RUNTIME_VLLM,
		.command = "",
		.payload = "",
		.memory_mib = memory_mib,
		.kv_cache = "",
		.gpu_models = "",
		.node_labels = "",
		.message = "",
	};
	fixture_send(&fixture->world, &command);
	return fixture->world.effects.reply_id;
}

void models_begin(struct models_fixture *fixture, int gpus, int model_count,
                  const int64_t *sizes_mib, int size_count)
{
	*fixture = (struct models_fixture){ .gpus = gpus, .model_count = model_count };
	fixture_begin(&fixture->world);
	for (int i = 0; i < gpus / GPUS_OF_NODE; i++) {
		char name[32];
		snprintf(name, sizeof(name), "node-%04d", i);
		fixture_node(&fixture->world, name, "", &node_kind);
	}
	fixture->tenant_id = fixture_tenant(&fixture->world, "serving", 0, QUOTA_UNSET, 1000);
	fixture->models = memory_zero((size_t)model_count, sizeof(*fixture->models));
	fixture->loaded = memory_zero((size_t)model_count, sizeof(*fixture->loaded));
	for (int i = 0; i < model_count; i++)
		fixture->models[i] =
		    models_fixture_put_model(fixture, i, sizes_mib[i % size_count]);
}

void models_end(struct models_fixture *fixture)
{
	fixture_end(&fixture->world);
	free(fixture->models);
	free(fixture->loaded);
	free(fixture->orders);
	*fixture = (struct models_fixture){ 0 };
}

static void models_fixture_note(struct models_fixture *fixture, int64_t id, bool load)
{
	array_reserve(fixture->orders, fixture->order_capacity, fixture->order_count + 1);
	fixture->orders[fixture->order_count++] = (struct slot_order){ id, load };
}

/* Models were put one after the other: ids follow each other. */
static int models_fixture_place_of(const struct models_fixture *fixture, int64_t model_id)
{
	int64_t place = model_id - fixture->models[0];
	INVARIANT(place >= 0 && place < fixture->model_count);
	return (int)place;
}

static bool models_fixture_note_effects(struct models_fixture *fixture)
{
	const struct effects *effects = &fixture->world.effects;
	bool more = false;
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind == EFFECT_LOAD) {
			models_fixture_note(fixture, effect->load.reservation_id, true);
			fixture->loaded[models_fixture_place_of(fixture, effect->load.model_id)] =
			    true;
		} else if (effect->kind == EFFECT_STOP) {
			models_fixture_note(fixture, effect->order.reservation_id, false);
			fixture->stopped++;
		} else if (effect->kind == EFFECT_PUT && effect->record_kind == RECORD_SLOT) {
			const struct slot_record *slot = effect->record;
			if (slot->state == SLOT_STOPPING)
				fixture->loaded[models_fixture_place_of(fixture, slot->model_id)] =
				    false;
		}
		more = more || effect->kind == EFFECT_MORE;
	}
	return more;
}

int64_t models_request(struct models_fixture *fixture, int place)
{
	struct command command = { .kind = COMMAND_REQUEST };
	command.request.request_id = ++fixture->requests;
	command.request.model_id = fixture->models[place];
	fixture_send(&fixture->world, &command);
	return fixture->requests;
}

void models_done(struct models_fixture *fixture, int64_t request_id, enum request_end end)
{
	struct command command = { .kind = COMMAND_REQUEST_DONE };
	command.done.request_id = request_id;
	command.done.end = end;
	fixture_send(&fixture->world, &command);
}

void models_pass(struct models_fixture *fixture)
{
	struct command command = { .kind = COMMAND_PASS, .units = INT64_MAX };
	do {
		fixture_send(&fixture->world, &command);
	} while (models_fixture_note_effects(fixture));
}

static void models_fixture_answer(struct models_fixture *fixture, struct slot_order order)
{
	struct command command = { .kind = COMMAND_SLOT_READY };
	if (order.load) {
		command.slot.reservation_id = order.id;
		command.slot.address = "http://10.0.0.1:8000";
		command.slot.message = "";
	} else {
		command.kind = COMMAND_MEMORY_RELEASED;
		command.task.reservation_id = order.id;
		command.task.message = "";
	}
	fixture_send(&fixture->world, &command);
	models_fixture_note_effects(fixture);
}

void models_answer(struct models_fixture *fixture)
{
	do {
		for (size_t i = 0; i < fixture->order_count; i++)
			models_fixture_answer(fixture, fixture->orders[i]);
		fixture->order_count = 0;
		models_pass(fixture);
	} while (fixture->order_count > 0);
}
