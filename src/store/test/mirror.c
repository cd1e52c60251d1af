/* mirror.c - what a store should hold: the encodings of all records */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/backend.h"
#include "store/test/workload.h"

/* A record's encoding, and whether it was archived. */
struct entry {
	size_t size;
	bool archived;
	char bytes[];
};

struct mirror {
	struct text_map entries;
	struct buffer scratch, difference;
	size_t seen; /* while comparing */
	enum record_kind kind;
	bool archived;
};

struct mirror *mirror_new(void)
{
	return NEW(struct mirror);
}

void mirror_free(struct mirror *mirror)
{
	for (size_t i = 0; i < mirror->entries.capacity; i++)
		free(mirror->entries.entries[i].value);
	text_map_free(&mirror->entries);
	buffer_free(&mirror->scratch);
	buffer_free(&mirror->difference);
	free(mirror);
}

static void name(char *text, size_t size, enum record_kind kind, struct record_key key)
{
	snprintf(text, size, "%s/%lld/%lld", record_type(kind)->name, (long long)key.first,
	         (long long)key.second);
}

static void mirror_put(struct mirror *mirror, enum record_kind kind, const void *record)
{
	char text[96];
	name(text, sizeof(text), kind, record_key(kind, record));
	buffer_clear(&mirror->scratch);
	record_encode(&mirror->scratch, kind, record);
	struct entry *entry = memory_zero(1, sizeof(*entry) + mirror->scratch.size);
	entry->size = mirror->scratch.size;
	memcpy(entry->bytes, mirror->scratch.data, entry->size);
	free(text_map_get(&mirror->entries, text));
	text_map_put(&mirror->entries, text, entry);
}

void mirror_apply(struct mirror *mirror, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		char text[96];
		if (effect->kind == EFFECT_PUT)
			mirror_put(mirror, effect->record_kind, effect->record);
		if (effect->kind != EFFECT_DELETE && effect->kind != EFFECT_ARCHIVE)
			continue;
		name(text, sizeof(text), effect->record_kind, effect->key);
		if (effect->kind == EFFECT_DELETE)
			free(text_map_remove(&mirror->entries, text));
		else
			((struct entry *)text_map_get(&mirror->entries, text))->archived = true;
	}
}

static bool mirror_compare(void *context, const void *record, struct error *error)
{
	struct mirror *mirror = context;
	char text[96];
	name(text, sizeof(text), mirror->kind, record_key(mirror->kind, record));
	const struct entry *entry = text_map_get(&mirror->entries, text);
	if (!entry)
		return error_set(error, ERROR_CORRUPT, "%s is stored and should not be", text);
	buffer_clear(&mirror->scratch);
	record_encode(&mirror->scratch, mirror->kind, record);
	if (entry->size != mirror->scratch.size ||
	    memcmp(entry->bytes, mirror->scratch.data, entry->size) != 0)
		return error_set(error, ERROR_CORRUPT, "%s is stored with other values", text);
	if (entry->archived != mirror->archived)
		return error_set(error, ERROR_CORRUPT, "%s is archived or not", text);
	mirror->seen++;
	return true;
}

static bool compare_kind(struct mirror *mirror, struct store *store, struct error *error)
{
	const struct schema *schema = store_schema(store);
	const struct table *table = schema->kinds[mirror->kind].table;
	struct backend *backend = store_backend(store);
	for (int archived = 0; archived < (table->is_log ? 1 : 2); archived++) {
		const char *rest = table->is_log ? ""
		                   : archived    ? "WHERE archived"
		                                 : "WHERE NOT archived";
		mirror->archived = archived == 1;
		if (!backend->scan(backend, table, schema->kinds[mirror->kind].of, rest,
		                   mirror_compare, mirror, error))
			return false;
	}
	return true;
}

const char *mirror_differs(struct mirror *mirror, struct store *store)
{
	struct error error = { 0 };
	mirror->seen = 0;
	for (mirror->kind = 0; mirror->kind < RECORD_KINDS; mirror->kind++) {
		if (!compare_kind(mirror, store, &error)) {
			buffer_clear(&mirror->difference);
			buffer_text(&mirror->difference, error.text);
			return mirror->difference.data;
		}
	}
	return mirror->seen == mirror->entries.count ? NULL : "some records are not stored";
}
