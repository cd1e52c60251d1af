/* property_keeper.c - keeps the records that effects tell it to, as a store would */
#include "core/test/property_keeper.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* One number for a key of one or two. */
static int64_t property_keeper_number_of(enum record_kind kind, struct record_key key)
{
	if (record_type(kind)->keys == 1)
		return key.first;
	INVARIANT(key.second >= 0 && key.second < TASKS_MAX);
	return key.first * TASKS_MAX + key.second;
}

static struct keeper_entry *entry_of(const struct keeper *keeper, enum record_kind kind,
                                     struct record_key key)
{
	return map_get(&keeper->tables[kind].by_key, property_keeper_number_of(kind, key));
}

int64_t keeper_place(const struct keeper *keeper, enum record_kind kind, int64_t first,
                     int64_t second)
{
	const struct keeper_entry *entry =
	    entry_of(keeper, kind, (struct record_key){ first, second });

	return entry ? (int64_t)entry->place : -1;
}

const void *keeper_find(const struct keeper *keeper, enum record_kind kind, int64_t first,
                        int64_t second)
{
	const struct keeper_entry *entry =
	    entry_of(keeper, kind, (struct record_key){ first, second });

	return entry ? entry->record : NULL;
}

static void property_keeper_put(struct keeper *keeper, enum record_kind kind, const void *record)
{
	struct keeper_table *table = &keeper->tables[kind];
	struct record_key key = record_key(kind, record);
	struct keeper_entry *entry = entry_of(keeper, kind, key);

	if (!entry) {
		entry = NEW(struct keeper_entry);
		array_reserve(table->entries, table->capacity, table->count + 1);
		entry->place = table->count++;
		table->entries[entry->place] = entry;
		map_put(&table->by_key, property_keeper_number_of(kind, key), entry);
	}
	entry->record = record_copy(&keeper->arena, kind, record);
	keeper->copied++;
}

static void property_keeper_drop(struct keeper *keeper, enum record_kind kind,
                                 struct record_key key)
{
	struct keeper_table *table = &keeper->tables[kind];
	struct keeper_entry *entry =
	    map_remove(&table->by_key, property_keeper_number_of(kind, key));

	if (!entry)
		panic("%s %lld/%lld is deleted and was not kept", record_type(kind)->name,
		      (long long)key.first, (long long)key.second);
	struct keeper_entry *last = table->entries[--table->count];
	last->place = entry->place;
	table->entries[last->place] = last;
	free(entry);
}

/* Copies what is still wanted to a new arena. */
static void tidy_up(struct keeper *keeper)
{
	struct arena fresh = { 0 };

	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
		struct keeper_table *table = &keeper->tables[kind];
		for (size_t i = 0; i < table->count; i++)
			table->entries[i]->record =
			    record_copy(&fresh, kind, table->entries[i]->record);
	}
	arena_free(&keeper->arena);
	keeper->arena = fresh;
	keeper->copied = 0;
}

void keeper_apply(struct keeper *keeper, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind == EFFECT_PUT && !record_is_history(effect->record_kind))
			property_keeper_put(keeper, effect->record_kind, effect->record);
		else if (effect->kind == EFFECT_DELETE || effect->kind == EFFECT_ARCHIVE)
			property_keeper_drop(keeper, effect->record_kind, effect->key);
	}
	if (keeper->copied > 100000)
		tidy_up(keeper);
}

void keeper_free(struct keeper *keeper)
{
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
		for (size_t i = 0; i < keeper->tables[kind].count; i++)
			free(keeper->tables[kind].entries[i]);
		free(keeper->tables[kind].entries);
		map_free(&keeper->tables[kind].by_key);
	}
	arena_free(&keeper->arena);
	*keeper = (struct keeper){ 0 };
}

/* A record with its key, to be sorted. */
struct keyed {
	struct record_key key;
	const void *record;
};

static int compare_keys(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key.first != y->key.first)
		return x->key.first < y->key.first ? -1 : 1;
	return (x->key.second > y->key.second) - (x->key.second < y->key.second);
}

static void load_table(const struct keeper *keeper, enum record_kind kind, struct sched *sched)
{
	const struct keeper_table *table = &keeper->tables[kind];
	struct keyed *sorted = memory_alloc((table->count + 1) * sizeof(*sorted));
	struct error error;

	for (size_t i = 0; i < table->count; i++) {
		const void *record = table->entries[i]->record;
		sorted[i] = (struct keyed){ record_key(kind, record), record };
	}
	qsort(sorted, table->count, sizeof(*sorted), compare_keys);
	for (size_t i = 0; i < table->count; i++)
		if (!sched_load(sched, kind, sorted[i].record, &error))
			panic("a record is not loaded: %s", error.text);
	free(sorted);
}

struct sched *keeper_load(const struct keeper *keeper)
{
	struct sched *sched = sched_new();
	struct error error;

	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++)
		load_table(keeper, kind, sched);
	if (!sched_load_end(sched, &error))
		panic("the records are not loaded: %s", error.text);
	return sched;
}
