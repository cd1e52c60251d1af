/* chaos_liar.c - a node whose token is in the wrong hands: it reports on what others have */
#include <stdlib.h>
#include <string.h>

#include "sim/chaos/chaos_world.h"

static const char liar_gpu[] = "gpu-liar", liar_boot[] = "boot-liar";

/* What the liar has heard of: all that is stored, less what the core has given up since. (A
 * slot that nobody has any more may be adopted: that is no lie about another's.) */
struct heard {
	const void **at;
	size_t count;
};

static bool is_gone(const struct chaos *chaos, enum record_kind kind, int64_t id)
{
	const struct chaos_server *server = &chaos->servers[0];

	for (size_t b = server->stored; b < server->batch_count; b++) {
		const struct effects *effects = &server->batches[b]->effects;
		for (size_t i = 0; i < effects->count; i++)
			if (effects->at[i].kind == EFFECT_DELETE &&
			    effects->at[i].record_kind == kind && effects->at[i].key.first == id)
				return true;
	}
	return false;
}

static struct heard chaos_liar_hear(struct chaos *chaos, enum record_kind kind)
{
	struct rank_cursor cursor = ranktree_seek(&chaos->store.kept[kind], INT64_MIN, INT64_MIN);
	struct heard heard = { 0 };
	const struct rank_entry *entry;
	size_t capacity = 0;

	while ((entry = rank_cursor_next(&cursor))) {
		if (is_gone(chaos, kind, entry->major))
			continue;
		array_reserve(heard.at, capacity, heard.count + 1);
		heard.at[heard.count++] = entry->value;
	}
	return heard;
}

static const void *any_of(struct chaos *chaos, const struct heard *heard)
{
	return heard->count > 0 ? heard->at[random_below(&chaos->dice[CHAOS_LIE], heard->count)]
	                        : NULL;
}

/* Nothing ever runs on the liar, so nothing that it says may touch a reservation, a slot, a
 * task or a job: those are all of others. */
static void check_lie(struct chaos *chaos, const struct command *command,
                      const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		bool kept = effect->kind == EFFECT_PUT || effect->kind == EFFECT_DELETE ||
		            effect->kind == EFFECT_ARCHIVE;
		if (kept &&
		    (effect->record_kind == RECORD_RESERVATION ||
		     effect->record_kind == RECORD_SLOT || effect->record_kind == RECORD_TASK ||
		     effect->record_kind == RECORD_JOB_STATE))
			chaos_broken(chaos, "own", "a %s of a node changed what is on another",
			             command_kind_name(command->kind));
		if (effect->kind == EFFECT_PUT && effect->record_kind == RECORD_GPU &&
		    strcmp(((const struct gpu_record *)effect->record)->uuid, liar_gpu) != 0)
			chaos_broken(chaos, "own", "a %s of a node changed GPU %s of another",
			             command_kind_name(command->kind),
			             ((const struct gpu_record *)effect->record)->uuid);
	}
}

static void chaos_liar_decide(struct chaos *chaos, const struct command *from)
{
	struct command command = *from;
	const struct chaos_batch *batch = server_decide(chaos, 0, &command);

	check_lie(chaos, &command, &batch->effects);
}

static void chaos_liar_say(struct chaos *chaos, struct message message)
{
	struct chaos_server *server = &chaos->servers[0];
	struct session_outputs outputs = { 0 };

	message.boot = liar_boot;
	message.connection = chaos->liar.connection;
	session_message(server->liar, chaos->now_ms + server->clock_ms, &message, &outputs);
	for (size_t i = 0; i < outputs.count; i++)
		if (outputs.at[i].kind == SESSION_COMMAND)
			chaos_liar_decide(chaos, outputs.at[i].command);
	session_outputs_free(&outputs);
}

static void chaos_liar_snapshot(struct chaos *chaos, const struct heard *works,
                                const struct heard *gpus, const struct heard *models)
{
	enum { LIES = 4 };
	struct device device = {
		.uuid = liar_gpu, .model = "toy", .capacity_mib = 1000, .mig_mode = true
	};
	struct slot_report slots[LIES];
	struct measurement measurements[LIES];
	int64_t running[LIES], count = 0, slot_count = 0;
	struct message message = { .kind = MESSAGE_SNAPSHOT, .number = ++chaos->liar.number };

	for (int i = 0; i < LIES && works->count > 0; i++) {
		const struct reservation_record *target = any_of(chaos, works);
		const struct model_record *model = any_of(chaos, models);
		const struct gpu_record *gpu = any_of(chaos, gpus);
		bool there = gpu && chance(&chaos->dice[CHAOS_LIE], 50);
		running[count] = target->id;
		measurements[count++] =
		    (struct measurement){ target->id, there ? gpu->uuid : liar_gpu, 9000 };
		if (model)
			slots[slot_count++] = (struct slot_report){ target->id, model->name,
				                                    "http://liar:666", true };
	}
	message.snapshot = (struct node_report_command){ .name = LIAR,
		                                         .boot = liar_boot,
		                                         .zone = "",
		                                         .rack = "",
		                                         .labels = "",
		                                         .devices = &device,
		                                         .device_count = 1,
		                                         .running = running,
		                                         .running_count = count,
		                                         .measurements = measurements,
		                                         .measurement_count = count,
		                                         .slots = slots,
		                                         .slot_count = slot_count,
		                                         .snapshot = true };
	chaos_liar_say(chaos, message);
}

static void chaos_liar_change(struct chaos *chaos, const struct heard *works,
                              const struct heard *gpus)
{
	uint64_t *dice = &chaos->dice[CHAOS_LIE];
	const struct reservation_record *target = any_of(chaos, works);
	const struct gpu_record *gpu = any_of(chaos, gpus);
	struct gpu_sample sample = { .uuid = gpu ? gpu->uuid : liar_gpu, .foreign_mib = 70000 };
	struct message message = { .kind = MESSAGE_CHANGE };

	if (!target)
		return;
	message.number = ++chaos->liar.number;
	message.change =
	    (struct change){ .kind = (int32_t)between(dice, 0, CHANGE_KINDS - 1),
		             .reservation_id = target->id,
		             .slot = target->job_id == 0,
		             .exit_code = between(dice, 0, 1),
		             .message = "a lie",
		             .address = chance(dice, 50) ? "http://liar:666" : "http://node-0:1",
		             .samples = &sample,
		             .sample_count = 1 };
	chaos_liar_say(chaos, message);
}

static void beat(struct chaos *chaos, const struct heard *works, const struct heard *gpus)
{
	const struct reservation_record *target = any_of(chaos, works);
	const struct gpu_record *gpu = any_of(chaos, gpus);
	struct message message = { .kind = MESSAGE_BEAT };

	if (!target || !gpu)
		return;
	struct gpu_sample sample = { .uuid = gpu->uuid, .foreign_mib = 70000 };
	struct use_sample use = { target->id, gpu->uuid, 60000, 1 };
	message.beat = (struct beat){ .sent_ms = chaos->now_ms,
		                      .samples = &sample,
		                      .sample_count = 1,
		                      .uses = &use,
		                      .use_count = 1 };
	chaos_liar_say(chaos, message);
}

/* Begins a connection where this scheduler knows of none. The liar is drained, so that
 * nothing is placed there, and its GPU is one in MIG mode, which nobody could ever use: no job
 * is taken in that waits for it. */
static void chaos_liar_connect(struct chaos *chaos, const struct heard *works,
                               const struct heard *gpus, const struct heard *models)
{
	struct chaos_server *server = &chaos->servers[0];
	struct message hello = { .kind = MESSAGE_HELLO };
	struct command drain = { .kind = COMMAND_NODE_DRAIN };

	server->liar = session_new(LIAR, false, server->term, chaos->now_ms + server->clock_ms,
	                           &chaos->session_policy);
	chaos->liar.connection++;
	chaos->liar.number = 0;
	hello.hello = (struct hello){ LIAR, NODE_PROTOCOL, chaos->now_ms };
	chaos_liar_say(chaos, hello);
	chaos_liar_snapshot(chaos, works, gpus, models);
	drain.drain.name = LIAR;
	drain.drain.draining = true;
	server_decide(chaos, 0, &drain);
}

void liar_speak(struct chaos *chaos)
{
	uint64_t *dice = &chaos->dice[CHAOS_LIE];

	if (!chaos->servers[0].sched)
		return;
	struct heard works = chaos_liar_hear(chaos, RECORD_RESERVATION),
		     gpus = chaos_liar_hear(chaos, RECORD_GPU),
		     models = chaos_liar_hear(chaos, RECORD_MODEL);
	chaos_note(chaos, "the liar speaks");
	if (!chaos->servers[0].liar)
		chaos_liar_connect(chaos, &works, &gpus, &models);
	for (int64_t i = between(dice, 1, 6); i > 0; i--) {
		if (chance(dice, 70))
			chaos_liar_change(chaos, &works, &gpus);
		else if (chance(dice, 50))
			beat(chaos, &works, &gpus);
		else
			chaos_liar_snapshot(chaos, &works, &gpus, &models);
	}
	free(works.at);
	free(gpus.at);
	free(models.at);
}
