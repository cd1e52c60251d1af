/* property_liar.c - a node that reports on what other nodes have */
#include "core/test/property_liar.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/test/property_random.h"

static struct machine *any_known(struct generator *generator)
{
	for (int tries = 0; tries < 8; tries++) {
		struct machine *machine =
		    &generator->world.machines[between(&generator->random, 0, MACHINES - 1)];
		if (machine_record(machine, generator->keeper))
			return machine;
	}
	return NULL;
}

/* A reservation that is not on the node, or NULL. */
static const struct reservation_record *of_other(struct generator *generator, int64_t node_id)
{
	size_t count = keeper_reservation_count(generator->keeper);

	for (int tries = 0; count > 0 && tries < 8; tries++) {
		const struct reservation_record *reservation =
		    keeper_reservation(generator->keeper, random_below(&generator->random, count));
		if (reservation->node_id != node_id)
			return reservation;
	}
	return NULL;
}

static const char *gpu_of_other(struct generator *generator, int64_t node_id)
{
	size_t count = keeper_gpu_count(generator->keeper);

	for (int tries = 0; count > 0 && tries < 8; tries++) {
		const struct gpu_record *gpu =
		    keeper_gpu(generator->keeper, random_below(&generator->random, count));
		if (gpu->node_id != node_id)
			return arena_string(&generator->arena, gpu->uuid);
	}
	return NULL;
}

static bool lie_about_gpu(struct generator *generator, const struct machine *liar,
                          struct command *command)
{
	const struct node_record *node = machine_record(liar, generator->keeper);

	command->kind = COMMAND_GPU_REPORT;
	command->gpu = (struct gpu_report_command){
		.uuid = gpu_of_other(generator, node->id),
		.foreign_mib = between(&generator->random, 0, 80000),
		.temperature_c = between(&generator->random, 0, 120),
		.healthy = chance(&generator->random, 50),
		.node = liar->name,
	};
	return command->gpu.uuid != NULL;
}

static bool lie_about_work(struct generator *generator, const struct machine *liar,
                           struct command *command)
{
	static const enum command_kind tasks[] = { COMMAND_TASK_STARTED,    COMMAND_TASK_REFUSED,
		                                   COMMAND_TASK_EXITED,     COMMAND_TASK_CHECKPOINT,
		                                   COMMAND_TASK_SUSPENDED,  COMMAND_TASK_RESUMED,
		                                   COMMAND_MEMORY_RELEASED, COMMAND_TASK_NOTICE };
	static const enum command_kind slots[] = { COMMAND_SLOT_LOADING, COMMAND_SLOT_READY,
		                                   COMMAND_SLOT_EXITED, COMMAND_MEMORY_RELEASED };
	uint64_t *random = &generator->random;
	const struct node_record *node = machine_record(liar, generator->keeper);
	const struct reservation_record *target = of_other(generator, node->id);

	if (!target)
		return false;
	command->kind = target->job_id == 0 && chance(random, 80) ? ONE_OF(random, slots)
	                                                          : ONE_OF(random, tasks);
	if (command->kind == COMMAND_SLOT_LOADING || command->kind == COMMAND_SLOT_READY ||
	    command->kind == COMMAND_SLOT_EXITED) {
		command->slot.reservation_id = target->id;
		command->slot.address = "http://liar:666";
		command->slot.released = chance(random, 50);
		command->slot.node = liar->name;
	} else {
		command->task.reservation_id = target->id;
		command->task.exit_code = between(random, 0, 9);
		command->task.released = chance(random, 50);
		command->task.node = liar->name;
	}
	return true;
}

/* Adds work of others to what the node has. */
static void spoil(struct generator *generator, const struct machine *liar,
                  struct node_report_command *report)
{
	enum { LIES = 6 };
	struct arena *arena = &generator->arena;
	int64_t node_id = machine_record(liar, generator->keeper)->id;
	size_t runs = (size_t)report->running_count, slot_count = (size_t)report->slot_count,
	       measured = (size_t)report->measurement_count;
	int64_t *running = arena_alloc(arena, (runs + LIES) * sizeof(*running));
	struct slot_report *slots = arena_alloc(arena, (slot_count + LIES) * sizeof(*slots));
	struct measurement *measurements =
	    arena_alloc(arena, (measured + LIES) * sizeof(*measurements));

	memcpy(running, report->running, runs * sizeof(*running));
	memcpy(slots, report->slots, slot_count * sizeof(*slots));
	memcpy(measurements, report->measurements, measured * sizeof(*measurements));
	for (int i = 0; i < LIES; i++) {
		const struct reservation_record *target = of_other(generator, node_id);
		const char *uuid = chance(&generator->random, 50) || report->device_count == 0
		                       ? gpu_of_other(generator, node_id)
		                       : report->devices[0].uuid;
		if (!target || !uuid)
			continue;
		running[runs++] = target->id;
		measurements[measured++] = (struct measurement){ target->id, uuid, 1000 };
		size_t models = keeper_model_count(generator->keeper);
		if (models == 0)
			continue;
		const char *model =
		    keeper_model(generator->keeper, random_below(&generator->random, models))->name;
		slots[slot_count++] =
		    (struct slot_report){ target->id, arena_string(arena, model), "http://liar:666",
			                  chance(&generator->random, 50) };
	}
	report->running = running;
	report->running_count = (int64_t)runs;
	report->slots = slots;
	report->slot_count = (int64_t)slot_count;
	report->measurements = measurements;
	report->measurement_count = (int64_t)measured;
}

/* What was decided about work: events, orders and the node's own GPUs are left out. */
static void encode_work(struct buffer *bytes, const struct effects *effects)
{
	struct effects work = *effects;

	work.at = memory_alloc((effects->count + 1) * sizeof(*work.at));
	work.count = 0;
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		bool kept = effect->kind == EFFECT_PUT || effect->kind == EFFECT_DELETE ||
		            effect->kind == EFFECT_ARCHIVE;
		if (kept &&
		    (effect->record_kind == RECORD_RESERVATION ||
		     effect->record_kind == RECORD_SLOT || effect->record_kind == RECORD_TASK ||
		     effect->record_kind == RECORD_JOB_STATE))
			work.at[work.count++] = *effect;
	}
	buffer_clear(bytes);
	effects_encode(bytes, &work);
	free(work.at);
}

static void property_liar_compare(struct run *run, struct sched *twin, const struct command *honest,
                                  bool applied)
{
	struct effects effects = { 0 };
	struct buffer one = { 0 }, other = { 0 };
	struct error error;

	if (sched_apply(twin, honest, &effects, &error) != applied)
		panic("lies of a node decide whether its report is taken");
	encode_work(&one, &run->effects);
	encode_work(&other, &effects);
	if (applied && (one.size != other.size || memcmp(one.data, other.data, one.size) != 0))
		panic("lies of a node change what others have");
	buffer_free(&one);
	buffer_free(&other);
	effects_free(&effects);
}

static void lie_in_report(struct run *run, struct generator *generator, struct machine *liar)
{
	/* A core that is loaded knows no requests, and would not decide the same. */
	struct sched *twin = run->volatile_state ? NULL : keeper_load(&run->keeper);
	struct command honest = generator_report(generator, liar, true), lie = honest;

	spoil(generator, liar, &lie.report);
	bool applied = run_command(run, &lie);
	if (twin)
		property_liar_compare(run, twin, &honest, applied);
	sched_free(twin);
}

void liar_speaks(struct run *run, struct generator *generator)
{
	struct command command = { .now_ms = generator->now_ms };

	arena_reset(&generator->arena);
	struct machine *liar = any_known(generator);
	if (!liar)
		return;
	if (chance(&generator->random, 20)) {
		lie_in_report(run, generator, liar);
		return;
	}
	bool lies = chance(&generator->random, 20) ? lie_about_gpu(generator, liar, &command)
	                                           : lie_about_work(generator, liar, &command);
	if (lies && run_command(run, &command))
		panic("a %s of %s about what is on another node is believed",
		      command_kind_name(command.kind), liar->name);
}
