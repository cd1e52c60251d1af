/* property_models.c - random models, requests, and what nodes tell of slots */
#include <stdio.h>

#include "core/test/property_generator.h"
#include "core/test/property_random.h"

#define SECOND_MS 1000
#define WAITING_MOST 80 /* requests, before clients go away */

static void draw_splits(struct generator *generator, struct model_record *model)
{
	static const int64_t counts[][3] = { { 1, 0, 0 }, { 2, 0, 0 }, { 1, 2, 0 }, { 1, 2, 4 } };
	uint64_t *random = &generator->random;
	const int64_t *chosen = ONE_OF(random, counts);
	int64_t *rows = arena_alloc(&generator->arena, 3 * MODEL_SPLIT_WIDTH * sizeof(*rows));
	int64_t count = 0;

	for (; count < 3 && chosen[count]; count++) {
		int64_t even = model->memory_mib / chosen[count] + 1;
		rows[MODEL_SPLIT_WIDTH * count] = chosen[count];
		rows[MODEL_SPLIT_WIDTH * count + 1] =
		    chance(random, 50) ? 0 : even + between(random, 0, even / 4);
	}
	model->splits = (struct rows){ rows, count };
}

/* Mostly parts of a GPU, at times more than one GPU has, seldom more than all. */
static int64_t draw_memory(struct generator *generator)
{
	uint64_t *random = &generator->random;
	int64_t capacity = generator->world.hardware.capacity_mib[chance(random, 80) ? 0 : 1];
	int64_t percent = chance(random, 70)   ? between(random, 5, 50)
	                  : chance(random, 85) ? between(random, 50, 180)
	                                       : between(random, 180, 900);

	return max64(capacity * percent / 100, 1);
}

static void draw_users(struct generator *generator, struct model_record *model)
{
	uint64_t *random = &generator->random;
	size_t tenants = keeper_tenant_count(generator->keeper);
	int64_t *rows = arena_alloc(&generator->arena, 2 * sizeof(*rows));
	int64_t count = tenants > 0 ? between(random, 0, 2) : 0;

	model->shared = chance(random, 60);
	for (int64_t i = 0; i < count; i++)
		rows[i] = keeper_tenant(generator->keeper, random_below(random, tenants))->id;
	model->users = (struct rows){ rows, count };
}

static void draw_times(struct generator *generator, struct model_record *model)
{
	uint64_t *random = &generator->random;

	model->idle_ttl_ms = chance(random, 50) ? 0 : between(random, 1, 60) * SECOND_MS;
	model->load_timeout_ms = chance(random, 50) ? 0 : between(random, 1, 300) * SECOND_MS;
}

/* Something that must be refused, or nearly. */
static void spoil(struct generator *generator, struct model_command *command)
{
	struct model_record *model = &command->model;

	switch (between(&generator->random, 0, 7)) {
	case 0:
		model->tenant_id = 999999;
		break;
	case 1:
		model->memory_mib = -model->memory_mib;
		break;
	case 2:
		model->runtime = 17;
		break;
	case 3:
		model->min_replicas = model->max_replicas + 5;
		break;
	case 4:
		model->concurrency = -1;
		break;
	case 5:
		model->runtime = RUNTIME_CUSTOM;
		model->command = "serve";
		command->administrator = false;
		break;
	case 6:
		model->name = "";
		break;
	default:
		model->id = 999999;
		break;
	}
}

static void draw_wishes(struct generator *generator, struct model_record *model)
{
	static const char *const labels[] = { "", "", "disk=ssd", "net=fast" };
	uint64_t *random = &generator->random;

	model->concurrency = chance(random, 80) ? between(random, 1, 4) : 0;
	model->min_replicas = chance(random, 75) ? 0 : between(random, 1, 2);
	model->max_replicas = chance(random, 40) ? 0 : model->min_replicas + between(random, 0, 3);
	model->prewarm = chance(random, generator->flavour.requests ? 15 : 60);
	model->pinned = chance(random, 8);
	model->sleep = (int32_t)between(random, SLEEP_OFF, SLEEP_DRIVER);
	model->priority = 100 * between(random, 0, 9);
	model->policy = chance(random, 60) ? SLOT_SPREAD : SLOT_PACK;
	if (chance(random, generator->flavour.constrained)) {
		model->gpu_models = chance(random, 50)
		                        ? generator->world.hardware.models[between(random, 0, 1)]
		                        : "";
		model->node_labels = ONE_OF(random, labels);
	}
}

struct command generator_model(struct generator *generator, const struct model_record *old)
{
	uint64_t *random = &generator->random;
	size_t tenants = keeper_tenant_count(generator->keeper);
	struct command command = { .kind = COMMAND_PUT_MODEL, .now_ms = generator->now_ms };
	struct model_record *model = &command.model.model;
	char name[64];

	snprintf(name, sizeof(name), "model-%lld", (long long)++generator->number);
	*model = (struct model_record){
		.id = old ? old->id : 0,
		.tenant_id = keeper_tenant(generator->keeper, random_below(random, tenants))->id,
		.name =
		    arena_string(&generator->arena, old && chance(random, 90) ? old->name : name),
		.runtime = (int32_t)between(random, RUNTIME_VLLM, RUNTIME_CUSTOM),
		.payload = "",
		.memory_mib = draw_memory(generator),
		.uneven = chance(random, 20),
		.cpu_milli = chance(random, 70) ? 0 : 500 * between(random, 1, 8),
		.host_bytes = chance(random, 70) ? 0 : between(random, 1, 16) << 30,
		.context = between(random, 0, 8192),
		.parallel = between(random, 0, 4),
		.kv_cache = chance(random, 50) ? "" : "q8_0",
		.gpu_models = "",
		.node_labels = "",
		.message = "",
	};
	if (old && chance(random, 95))
		model->tenant_id = old->tenant_id;
	model->command = model->runtime == RUNTIME_CUSTOM ? "serve --here" : "";
	command.model.administrator = true;
	if (chance(random, 40))
		draw_splits(generator, model);
	draw_wishes(generator, model);
	draw_times(generator, model);
	draw_users(generator, model);
	if (chance(random, 3))
		spoil(generator, &command.model);
	return command;
}

static bool generate_model(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	size_t count = keeper_model_count(generator->keeper);
	bool old = count > 0 && ((int64_t)count >= generator->flavour.models || chance(random, 40));
	const struct model_record *model =
	    old ? keeper_model(generator->keeper, random_below(random, count)) : NULL;

	if (keeper_tenant_count(generator->keeper) == 0)
		return false;
	if (model && chance(random, 20)) {
		command->kind = COMMAND_REMOVE_MODEL;
		command->id = model->id;
		return true;
	}
	*command = generator_model(generator, model);
	return true;
}

static bool generate_request(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	size_t models = keeper_model_count(generator->keeper);
	size_t tenants = keeper_tenant_count(generator->keeper);

	if (models == 0 || (int64_t)generator->router->count > WAITING_MOST)
		return false;
	const struct model_record *model =
	    keeper_model(generator->keeper, random_below(random, models));
	if (model->removed && !rarely(random, 50))
		return false;
	command->kind = COMMAND_REQUEST;
	command->request = (struct request_command){
		.request_id = ++generator->last_request,
		.model_id = model->id,
		.tenant_id = chance(random, 80) ? model->tenant_id : 0,
		.lease_ms = chance(random, 70) ? 0 : between(random, 1, 120) * SECOND_MS,
	};
	if (tenants > 0 && chance(random, 15))
		command->request.tenant_id =
		    keeper_tenant(generator->keeper, random_below(random, tenants))->id;
	if (rarely(random, 10))
		command->request.model_id = 999999;
	if (rarely(random, 10))
		command->request.request_id = between(random, 0, generator->last_request);
	return true;
}

/* The next step of a request: it is done, its client leaves, or it takes longer. */
static bool generate_end(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	const struct router *router = generator->router;

	if (router->count == 0)
		return false;
	const struct tracked *request = &router->at[random_below(random, router->count)];
	if (request->slot_id && chance(random, 15)) {
		command->kind = COMMAND_REQUEST_RENEW;
		command->request.request_id = request->id;
		command->request.lease_ms =
		    chance(random, 50) ? 0 : between(random, 1, 120) * SECOND_MS;
		return true;
	}
	/* Most waiting requests keep waiting. */
	if (!request->slot_id && (int64_t)router->count < WAITING_MOST && !chance(random, 5))
		return false;
	command->kind = COMMAND_REQUEST_DONE;
	command->done.request_id =
	    rarely(random, 10) ? between(random, 1, generator->last_request) : request->id;
	command->done.end = !request->slot_id || chance(random, 10) ? REQUEST_GONE
	                    : chance(random, 90)                    ? REQUEST_SUCCEEDED
	                                                            : REQUEST_FAILED;
	return true;
}

static bool generate_reset(struct generator *generator, struct command *command)
{
	(void)generator;
	command->kind = COMMAND_RESET_REQUESTS;
	return true;
}

bool generate_serving(struct generator *generator, struct command *command)
{
	int64_t at = between(&generator->random, 0, 999);

	if (!generator->flavour.requests)
		return at < 50 && generate_model(generator, command);
	if (at < 420)
		return generate_request(generator, command);
	if (at < 960)
		return generate_end(generator, command);
	if (at < 990)
		return generate_model(generator, command);
	return generate_reset(generator, command);
}

static bool set_slot(struct generator *generator, struct command *command, enum command_kind kind,
                     int64_t id)
{
	command->kind = kind;
	command->slot.reservation_id = id;
	command->slot.address = chance(&generator->random, 95) ? "http://node:1" : "http://node:2";
	command->slot.message = kind == COMMAND_SLOT_EXITED ? "out of memory" : "";
	command->slot.released = chance(&generator->random, 50);
	return true;
}

/* That it sleeps, with what it has now, or woke, or could not. */
static void tell_of_slot_move(struct generator *generator, struct command *command,
                              const struct slot_record *slot)
{
	uint64_t *random = &generator->random;
	bool sleeps = slot->state == SLOT_SLEEPING;

	*command = (struct command){ .kind = sleeps ? COMMAND_TASK_SUSPENDED : COMMAND_TASK_RESUMED,
		                     .now_ms = command->now_ms };
	command->task.reservation_id = slot->id;
	command->task.message = "";
	command->task.released = chance(random, 85);
	command->task.ago_ms = between(random, 0, 60000);
	if (!sleeps || chance(random, 30))
		return;
	const struct reservation_record *reservation =
	    keeper_find(generator->keeper, RECORD_RESERVATION, slot->id, 0);
	command->task.use.peak_mib = between(random, 0, reservation->residue_mib + 500);
	command->task.use.host_peak_bytes =
	    max64(reservation->copy_bytes * between(random, 50, 100) / 100, 1);
}

bool generate_slot_progress(struct generator *generator, struct command *command, int64_t id)
{
	uint64_t *random = &generator->random;
	const struct slot_record *slot = keeper_find(generator->keeper, RECORD_SLOT, id, 0);
	static const enum command_kind kinds[] = { COMMAND_SLOT_LOADING, COMMAND_SLOT_READY,
		                                   COMMAND_SLOT_EXITED };

	if (!slot || rarely(random, 10))
		return set_slot(generator, command, ONE_OF(random, kinds), id);
	switch ((enum slot_state)slot->state) {
	case SLOT_LOADING:
		if (chance(random, 6))
			return set_slot(generator, command, COMMAND_SLOT_EXITED, id);
		if (!chance(random, 50))
			return false;
		return set_slot(generator, command,
		                chance(random, 40) ? COMMAND_SLOT_LOADING : COMMAND_SLOT_READY, id);
	case SLOT_READY:
		return rarely(random, 15) && set_slot(generator, command, COMMAND_SLOT_EXITED, id);
	case SLOT_SLEEPING:
	case SLOT_WAKING:
		if (chance(random, 8))
			return set_slot(generator, command, COMMAND_SLOT_EXITED, id);
		tell_of_slot_move(generator, command, slot);
		return chance(random, generator->flavour.releases);
	case SLOT_ASLEEP:
		return rarely(random, 30) && set_slot(generator, command, COMMAND_SLOT_EXITED, id);
	case SLOT_STOPPING:
		if (!chance(random, generator->flavour.releases))
			return false;
		if (chance(random, 30))
			return set_slot(generator, command, COMMAND_SLOT_EXITED, id);
		*command =
		    (struct command){ .kind = COMMAND_MEMORY_RELEASED, .now_ms = command->now_ms };
		command->task.reservation_id = id;
		command->task.message = "";
		return true;
	default:
		return false;
	}
}
