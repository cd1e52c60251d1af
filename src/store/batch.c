/* batch.c - the effects of many commands, to be written in one transaction */
#include "store/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { FIRST_PLACES = 64 };

struct batch *batch_new(const struct schema *schema)
{
	struct batch *batch = NEW(struct batch);
	batch->schema = schema;
	return batch;
}

void batch_clear(struct batch *batch)
{
	for (int i = 0; i < batch->schema->count; i++) {
		struct batch_table *table = &batch->tables[i];
		if (table->count > 0 && table->places)
			memset(table->places, 0, table->place_count * sizeof(*table->places));
		table->count = 0;
	}
	batch->outgoing_count = batch->reply_count = batch->kept_count = 0;
	batch->command_count = 0;
	batch->archives = false;
	batch->rows = batch->bytes = 0;
	buffer_clear(&batch->commands);
	buffer_clear(&batch->sql);
	arena_reset(&batch->arena);
}

void batch_free(struct batch *batch)
{
	if (!batch)
		return;
	for (int i = 0; i < batch->schema->count; i++) {
		free(batch->tables[i].rows);
		free(batch->tables[i].places);
	}
	free(batch->outgoing);
	free(batch->replies);
	free(batch->kept);
	buffer_free(&batch->commands);
	buffer_free(&batch->sql);
	arena_free(&batch->arena);
	free(batch);
}

static struct batch_table *table_in(struct batch *batch, const struct table *table)
{
	return &batch->tables[table - batch->schema->tables];
}

static size_t batch_place_of(const struct batch_table *table, struct record_key key)
{
	uint64_t hash = hash_combine((uint64_t)key.first, (uint64_t)key.second);
	size_t place = hash & (table->place_count - 1);
	while (table->places[place] != 0) {
		const struct batch_row *row = &table->rows[table->places[place] - 1];
		if (row->key.first == key.first && row->key.second == key.second)
			break;
		place = (place + 1) & (table->place_count - 1);
	}
	return place;
}

static void table_rehash(struct batch_table *table)
{
	size_t wanted = table->place_count ? table->place_count * 2 : FIRST_PLACES;
	free(table->places);
	table->places = memory_zero(wanted, sizeof(*table->places));
	table->place_count = wanted;
	for (size_t i = 0; i < table->count; i++)
		table->places[batch_place_of(table, table->rows[i].key)] = (uint32_t)(i + 1);
}

static struct batch_row *row_append(struct batch *batch, struct batch_table *table,
                                    struct record_key key)
{
	array_reserve(table->rows, table->capacity, table->count + 1);
	struct batch_row *row = &table->rows[table->count++];
	*row = (struct batch_row){ .key = key };
	batch->rows++;
	return row;
}

/* The row with this key, which is made if need be. */
static struct batch_row *row_of(struct batch *batch, struct batch_table *table,
                                struct record_key key)
{
	if (2 * (table->count + 1) > table->place_count)
		table_rehash(table);
	size_t place = batch_place_of(table, key);
	if (table->places[place] != 0)
		return &table->rows[table->places[place] - 1];
	struct batch_row *row = row_append(batch, table, key);
	table->places[place] = (uint32_t)table->count;
	return row;
}

void batch_put(struct batch *batch, enum record_kind kind, const void *record, bool archived)
{
	const struct table *table = batch->schema->kinds[kind].table;
	struct batch_table *rows = table_in(batch, table);
	struct record_key key = record_key(kind, record);
	bool is_once = table->is_log && !table->is_revised;
	struct batch_row *row = is_once ? row_append(batch, rows, key) : row_of(batch, rows, key);
	row->records[batch->schema->kinds[kind].of] = record_copy(&batch->arena, kind, record);
	row->deleted = false;
	row->archived = archived;
	batch->bytes += record_type(kind)->size;
}

void batch_event(struct batch *batch, const struct event *event)
{
	struct batch_table *rows = table_in(batch, batch->schema->events);
	struct batch_row *row =
	    row_append(batch, rows, (struct record_key){ .first = event->number });
	row->records[0] = arena_copy(&batch->arena, event, sizeof(*event));
	batch->bytes += sizeof(*event);
}

/* A row goes, or is put aside, with its first type. */
static void batch_end_row(struct batch *batch, const struct effect *effect)
{
	const struct table *table = batch->schema->kinds[effect->record_kind].table;
	if (batch->schema->kinds[effect->record_kind].of != 0)
		return;
	struct batch_row *row = row_of(batch, table_in(batch, table), effect->key);
	if (effect->kind == EFFECT_ARCHIVE) {
		row->archived = batch->archives = true;
		return;
	}
	row->deleted = true;
	row->archived = false;
	memset(row->records, 0, sizeof(row->records));
}

static void batch_send(struct batch *batch, const struct effect *effect)
{
	array_reserve(batch->outgoing, batch->outgoing_capacity, batch->outgoing_count + 1);
	batch->outgoing[batch->outgoing_count++] = effect_copy(&batch->arena, effect);
	batch->bytes += sizeof(*effect);
}

static void batch_take(struct batch *batch, const struct effect *effect)
{
	switch (effect->kind) {
	case EFFECT_PUT:
		batch_put(batch, effect->record_kind, effect->record, false);
		break;
	case EFFECT_DELETE:
	case EFFECT_ARCHIVE:
		batch_end_row(batch, effect);
		break;
	case EFFECT_EVENT:
		/* A submission is one row: the job's, which says when it came. */
		if (effect->event.kind != EVENT_JOB_SUBMITTED)
			batch_event(batch, &effect->event);
		batch_send(batch, effect);
		break;
	default:
		batch_send(batch, effect);
		break;
	}
}

void batch_note(struct batch *batch, const struct command *command)
{
	size_t before = batch->commands.size;
	struct buffer *buffer = &batch->commands;
	/* The size comes first, so the bytes are moved up when it is known. */
	command_encode(buffer, command);
	size_t size = buffer->size - before;
	buffer_varint(buffer, size);
	char head[VARINT_BYTES_MAX];
	size_t head_size = buffer->size - before - size;
	memcpy(head, buffer->data + before + size, head_size);
	memmove(buffer->data + before + head_size, buffer->data + before, size);
	memcpy(buffer->data + before, head, head_size);
	batch->command_count++;
}

void batch_add(struct batch *batch, const struct command *command, const struct effects *effects,
               void *cookie)
{
	size_t first = batch->outgoing_count;
	for (size_t i = 0; effects && i < effects->count; i++)
		batch_take(batch, &effects->at[i]);
	if (command)
		batch_note(batch, command);
	array_reserve(batch->replies, batch->reply_capacity, batch->reply_count + 1);
	batch->replies[batch->reply_count++] = (struct batch_reply){
		.cookie = cookie,
		.first = first,
		.last = batch->outgoing_count,
		.reply_id = effects ? effects->reply_id : 0,
		.reply_count = effects ? effects->reply_count : 0,
		.repeated = effects && effects->repeated,
	};
}

void batch_keep(struct batch *batch, const char *kind, const char *key, const char *value)
{
	array_reserve(batch->kept, batch->kept_capacity, batch->kept_count + 1);
	batch->kept[batch->kept_count++] = (struct kept){
		.kind = arena_string(&batch->arena, kind),
		.key = arena_string(&batch->arena, key),
		.value = arena_string(&batch->arena, value),
	};
	batch->rows++;
	batch->bytes += strlen(kind) + strlen(key) + (value ? strlen(value) : 0);
}

void batch_note_highest(const struct batch *batch, int64_t highest[TABLES_MAX])
{
	for (int i = 0; i < batch->schema->count; i++) {
		const struct batch_table *rows = &batch->tables[i];
		for (size_t j = 0; j < rows->count; j++)
			if (!rows->rows[j].deleted && rows->rows[j].key.first > highest[i])
				highest[i] = rows->rows[j].key.first;
	}
}
