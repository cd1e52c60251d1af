/* crowd.c - how long the jobs of a user have been running */
#include "core/predict/crowd.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "core/predict/durations.h"

static int64_t crowd_key(const struct traits *traits, bool same_size)
{
	if (traits->user == 0)
		return 0;
	return (int64_t)(same_size ? hash_combine(traits->user, (uint64_t)traits->size) | 1
	                           : traits->user);
}

static void crowd_add(struct crowd *crowd, int64_t key, int64_t count, int64_t started_ms)
{
	struct crowd_group *group = map_get(&crowd->groups, key);

	if (key == 0)
		return;
	if (!group) {
		group = NEW(struct crowd_group);
		map_put(&crowd->groups, key, group);
	}
	group->count += count;
	group->started_ms += started_ms;
	INVARIANT(group->count >= 0);
	if (group->count == 0)
		free(map_remove(&crowd->groups, key));
}

void crowd_enter(struct crowd *crowd, const struct traits *traits, int64_t started_ms)
{
	crowd_add(crowd, crowd_key(traits, false), 1, started_ms);
	crowd_add(crowd, crowd_key(traits, true), 1, started_ms);
}

void crowd_leave(struct crowd *crowd, const struct traits *traits, int64_t started_ms)
{
	crowd_add(crowd, crowd_key(traits, false), -1, -started_ms);
	crowd_add(crowd, crowd_key(traits, true), -1, -started_ms);
}

static const struct crowd_group *crowd_group(const struct crowd *crowd, const struct traits *traits,
                                             bool same_size)
{
	int64_t key = crowd_key(traits, same_size);

	return key != 0 ? map_get(&crowd->groups, key) : NULL;
}

struct crowd_view crowd_see(const struct crowd *crowd, const struct traits *traits, bool same_size,
                            int64_t now_ms)
{
	const struct crowd_group *group = crowd_group(crowd, traits, same_size);

	if (!group)
		return (struct crowd_view){ 0 };
	int64_t age_ms = max64(now_ms - group->started_ms / group->count, 0);
	return (struct crowd_view){ group->count, duration_bin(age_ms) * BIN_LOG };
}

int64_t crowd_count(const struct crowd *crowd, const struct traits *traits)
{
	const struct crowd_group *group = crowd_group(crowd, traits, false);

	return group ? group->count : 0;
}

void crowd_free(struct crowd *crowd)
{
	for (size_t i = 0; i < crowd->groups.capacity; i++)
		free(crowd->groups.entries[i].value);
	map_free(&crowd->groups);
	*crowd = (struct crowd){ 0 };
}
