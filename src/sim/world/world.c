/* world.c - a keeper of records in memory: what a store is to the core, without a disk */
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

static void world_drop(struct ranktree *tree, struct record_key key)
{
	free(ranktree_remove(tree, key.first, key.second));
}

void world_put(struct world *world, enum record_kind kind, const void *record)
{
	struct record_key key = record_key(kind, record);
	/* Copied first: the record may be the one that it replaces. */
	void *copy = record_clone(kind, record);
	world_drop(&world->kept[kind], key);
	world_drop(&world->archived[kind], key);
	ranktree_insert(&world->kept[kind], key.first, key.second, copy);
}

static void put_aside(struct world *world, enum record_kind kind, struct record_key key)
{
	void *record = ranktree_remove(&world->kept[kind], key.first, key.second);
	if (record)
		ranktree_insert(&world->archived[kind], key.first, key.second, record);
}

void world_apply(struct world *world, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind == EFFECT_PUT)
			world_put(world, effect->record_kind, effect->record);
		else if (effect->kind == EFFECT_DELETE)
			world_drop(&world->kept[effect->record_kind], effect->key);
		else if (effect->kind == EFFECT_ARCHIVE)
			put_aside(world, effect->record_kind, effect->key);
	}
}

static const void *find_in(const struct ranktree *tree, int64_t first, int64_t second)
{
	struct rank_cursor cursor = ranktree_seek(tree, first, second);
	const struct rank_entry *entry = rank_cursor_next(&cursor);
	bool found = entry && entry->major == first && entry->minor == second;
	return found ? entry->value : NULL;
}

const void *world_find(const struct world *world, enum record_kind kind, int64_t first,
                       int64_t second)
{
	const void *record = find_in(&world->kept[kind], first, second);
	return record ? record : find_in(&world->archived[kind], first, second);
}

static bool load_all(const struct world *world, struct sched *sched, struct error *error)
{
	for (int kind = 0; kind < RECORD_KINDS; kind++) {
		struct rank_cursor cursor = ranktree_seek(&world->kept[kind], INT64_MIN, INT64_MIN);
		const struct rank_entry *entry;
		while ((entry = rank_cursor_next(&cursor))) {
			if (!sched_load(sched, (enum record_kind)kind, entry->value, error))
				return false;
		}
	}
	return sched_load_end(sched, error);
}

struct sched *world_load(const struct world *world, struct error *error)
{
	struct sched *sched = sched_new();
	if (load_all(world, sched, error))
		return sched;
	sched_free(sched);
	return NULL;
}

static void free_all(struct ranktree *tree)
{
	struct rank_cursor cursor = ranktree_seek(tree, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;
	while ((entry = rank_cursor_next(&cursor)))
		free(entry->value);
	ranktree_free(tree);
}

void world_free(struct world *world)
{
	for (int kind = 0; kind < RECORD_KINDS; kind++) {
		free_all(&world->kept[kind]);
		free_all(&world->archived[kind]);
	}
	*world = (struct world){ 0 };
}
