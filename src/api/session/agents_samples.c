/* agents_samples.c - what nodes measured last: volatile, for those who watch */
#include <stdio.h>
#include <stdlib.h>

#include "api/session/agents_local.h"
#include "base/hash.h"
#include "base/memory.h"

static void take_sample(struct agents *agents, const struct gpu_sample *from)
{
	struct agents_sample *sample = text_map_get(&agents->samples, from->uuid);

	if (!sample) {
		sample = NEW(struct agents_sample);
		text_map_put(&agents->samples, from->uuid, sample);
	}
	*sample = (struct agents_sample){ .sm_active = -1,
		                          .dram_active = -1,
		                          .used_mib = from->used_mib,
		                          .temperature_c = from->temperature_c,
		                          .power_mw = from->power_mw,
		                          .utilisation = from->utilisation,
		                          .sampled_ms = loop_now_ms(agents->loop) };
}

static void take_counters(struct agents *agents, const struct gpu_counters *from)
{
	struct agents_sample *sample = text_map_get(&agents->samples, from->uuid);

	if (!sample)
		return;
	sample->sm_active = from->sm_active;
	sample->dram_active = from->dram_active;
	snprintf(sample->reason, sizeof(sample->reason), "%s", from->reason);
}

/* A node's beat changes what is shown of its own GPUs and slots alone. */
static void take_gpus(struct agents_node *node, const struct beat *beat)
{
	for (int64_t i = 0; i < beat->sample_count; i++)
		if (session_has_gpu(node->session, beat->samples[i].uuid))
			take_sample(node->agents, &beat->samples[i]);
	for (int64_t i = 0; i < beat->counter_count; i++)
		if (session_has_gpu(node->session, beat->counters[i].uuid))
			take_counters(node->agents, &beat->counters[i]);
}

static void take_slots(struct agents_node *node, const struct beat *beat)
{
	node->slot_count = (size_t)beat->slot_count;
	array_reserve(node->slots, node->slot_capacity, node->slot_count + 1);
	for (size_t i = 0; i < node->slot_count; i++)
		node->slots[i] = beat->slots[i];
}

/* They come in the order of their reservations. */
static void take_works(struct agents_node *node, const struct beat *beat)
{
	node->work_count = 0;
	array_reserve(node->works, node->work_capacity, (size_t)beat->work_count + 1);
	for (int64_t i = 0; i < beat->work_count; i++)
		if (i == 0 || beat->works[i].reservation_id > beat->works[i - 1].reservation_id)
			node->works[node->work_count++] = beat->works[i];
}

/* A beat without samples measured nothing, so what was measured before still holds. */
static void take_uses(struct agents_node *node, const struct beat *beat)
{
	if (beat->sample_count == 0)
		return;
	node->use_count = (size_t)beat->use_count;
	array_reserve(node->uses, node->use_capacity, node->use_count + 1);
	for (size_t i = 0; i < node->use_count; i++)
		node->uses[i] =
		    (struct part_use){ beat->uses[i].reservation_id, beat->uses[i].memory_mib,
			               hash_text(beat->uses[i].uuid) };
}

void agents_take_beat(struct agents_node *node, const struct beat *beat)
{
	take_uses(node, beat);
	take_gpus(node, beat);
	take_works(node, beat);
	take_slots(node, beat);
}

bool agents_sample(const struct agents *agents, const char *uuid, struct agents_sample *sample)
{
	const struct agents_sample *found = text_map_get(&agents->samples, uuid);

	if (found)
		*sample = *found;
	return found != NULL;
}

bool agents_use(const struct agents *agents, const char *node, int64_t reservation_id,
                struct task_use *use)
{
	const struct agents_node *of = node ? agents_find(agents, node) : NULL;
	size_t low = 0, high = of ? of->work_count : 0;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (of->works[middle].reservation_id < reservation_id)
			low = middle + 1;
		else
			high = middle;
	}
	if (!of || low == of->work_count || of->works[low].reservation_id != reservation_id)
		return false;
	*use = of->works[low].use;
	return true;
}

int64_t agents_part_use(const struct agents *agents, const char *node, int64_t reservation_id,
                        const char *uuid)
{
	const struct agents_node *of = node ? agents_find(agents, node) : NULL;
	uint64_t hash = hash_text(uuid);

	for (size_t i = 0; of && i < of->use_count; i++)
		if (of->uses[i].reservation_id == reservation_id && of->uses[i].uuid == hash)
			return of->uses[i].memory_mib;
	return -1;
}

int64_t agents_slot_active(const struct agents *agents, const char *node, int64_t slot_id)
{
	const struct agents_node *of = node ? agents_find(agents, node) : NULL;

	for (size_t i = 0; of && i < of->slot_count; i++)
		if (of->slots[i].reservation_id == slot_id)
			return of->slots[i].active;
	return -1;
}

void agents_samples_free(struct agents *agents)
{
	for (size_t i = 0; i < agents->samples.capacity; i++)
		free(agents->samples.entries[i].value);
	text_map_free(&agents->samples);
}
