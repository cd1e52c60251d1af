/* property_keeper.c - keeps the records that effects tell it to, as a store would */
#include "core/test/property_keeper.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* One number for a key of one or two. */
static int64_t number_of(enum record_kind kind, struct record_key key)
{
	if (record_type(kind)->keys == 1)
		return key.first;
	INVARIANT(key.second >= 0 && key.second < TASKS_MAX);
	return key.first * TASKS_MAX + key.second;
}

static size_t place_of(const struct keeper_table *table, int64_t number)
{
	return (size_t)(uintptr_t)map_get(&table->places, number);
}

static void set_place(struct keeper_table *table, int64_t number, size_t place)
{
	map_put(&table->places, number, (void *)(uintptr_t)place);
}

int64_t keeper_place(const struct keeper *keeper, enum record_kind kind, int64_t first,
                     int64_t second)
{
	int64_t number = number_of(kind, (struct record_key){ first, second });

	return (int64_t)place_of(&keeper->tables[kind], number) - 1;
}

const void *keeper_find(const struct keeper *keeper, enum record_kind kind, int64_t first,
                        int64_t second)
{
	int64_t place = keeper_place(keeper, kind, first, second);

	return place < 0 ? NULL : keeper->tables[kind].records[place];
}

static void put(struct keeper *keeper, enum record_kind kind, const void *record)
{
	struct keeper_table *table = &keeper->tables[kind];
	int64_t number = number_of(kind, record_key(kind, record));
	size_t place = place_of(table, number);

	if (place == 0) {
		array_reserve(table->records, table->capacity, table->count + 1);
		place = ++table->count;
		set_place(table, number, place);
	}
	table->records[place - 1] = record_copy(&keeper->arena, kind, record);
	keeper->copied++;
}

static void drop(struct keeper *keeper, enum record_kind kind, struct record_key key)
{
	struct keeper_table *table = &keeper->tables[kind];
	int64_t number = number_of(kind, key);
	size_t place = place_of(table, number);

	if (place == 0)
		panic("%s %lld/%lld is deleted and was not kept", record_type(kind)->name,
		      (long long)key.first, (long long)key.second);
	map_remove(&table->places, number);
	const void *last = table->records[--table->count];
	if (place - 1 == table->count)
		return;
	table->records[place - 1] = last;
	set_place(table, number_of(kind, record_key(kind, last)), place);
}

/* Copies what is still wanted to a new arena. */
static void tidy_up(struct keeper *keeper)
{
	struct arena fresh = { 0 };

	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
		struct keeper_table *table = &keeper->tables[kind];
		for (size_t i = 0; i < table->count; i++)
			table->records[i] = record_copy(&fresh, kind, table->records[i]);
	}
	arena_free(&keeper->arena);
	keeper->arena = fresh;
	keeper->copied = 0;
}

void keeper_apply(struct keeper *keeper, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind == EFFECT_PUT && effect->record_kind != RECORD_DECISION)
			put(keeper, effect->record_kind, effect->record);
		else if (effect->kind == EFFECT_DELETE || effect->kind == EFFECT_ARCHIVE)
			drop(keeper, effect->record_kind, effect->key);
	}
	if (keeper->copied > 100000)
		tidy_up(keeper);
}

void keeper_free(struct keeper *keeper)
{
	for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
		free(keeper->tables[kind].records);
		map_free(&keeper->tables[kind].places);
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

	for (size_t i = 0; i < table->count; i++)
		sorted[i] = (struct keyed){ record_key(kind, table->records[i]), table->records[i] };
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
