/* agents_samples.c - what nodes measured last: volatile, for those who watch */
#include <stdlib.h>

#include "api/agents_local.h"
#include "base/memory.h"

static void take_sample(struct agents *agents, const struct gpu_sample *from)
{
	struct agents_sample *sample = text_map_get(&agents->samples, from->uuid);

	if (!sample) {
		sample = NEW(struct agents_sample);
		text_map_put(&agents->samples, from->uuid, sample);
	}
	*sample = (struct agents_sample){ .used_mib = from->used_mib,
		                          .temperature_c = from->temperature_c,
		                          .power_mw = from->power_mw,
		                          .utilisation = from->utilisation,
		                          .sampled_ms = loop_now_ms(agents->loop) };
}

void agents_take_beat(struct agents *agents, const struct beat *beat)
{
	for (int64_t i = 0; i < beat->sample_count; i++)
		take_sample(agents, &beat->samples[i]);
	for (int64_t i = 0; i < beat->slot_count; i++) {
		int64_t *active = map_get(&agents->slot_active, beat->slots[i].reservation_id);
		if (!active) {
			active = NEW(int64_t);
			map_put(&agents->slot_active, beat->slots[i].reservation_id, active);
		}
		*active = beat->slots[i].active;
	}
}

bool agents_sample(const struct agents *agents, const char *uuid, struct agents_sample *sample)
{
	const struct agents_sample *found = text_map_get(&agents->samples, uuid);

	if (found)
		*sample = *found;
	return found != NULL;
}

int64_t agents_slot_active(const struct agents *agents, int64_t slot_id)
{
	const int64_t *active = map_get(&agents->slot_active, slot_id);

	return active ? *active : -1;
}

void agents_samples_free(struct agents *agents)
{
	for (size_t i = 0; i < agents->samples.capacity; i++)
		free(agents->samples.entries[i].value);
	for (size_t i = 0; i < agents->slot_active.capacity; i++)
		free(agents->slot_active.entries[i].value);
	text_map_free(&agents->samples);
	map_free(&agents->slot_active);
}
