/* recorded.c - decisions as a scheduler stored them, to hold others against */
#include "sim/whatif/recorded.h"

#include "store/archive.h"
#include "store/store.h"

#define PAGE 10000

static bool read_pages(struct recorded *recorded, struct store *store, struct error *error)
{
	struct decision_filter filter = { .kind = -1, .limit = PAGE };
	struct decision_record *page;
	int64_t count;

	do {
		if (!archive_decisions(store, &filter, &recorded->arena, &page, &count, error))
			return false;
		for (int64_t i = 0; i < count; i++) {
			map_put(&recorded->by_id, page[i].id, &page[i]);
			recorded->first_id = filter.before_id = page[i].id;
			if (recorded->last_id == 0)
				recorded->last_id = page[i].id;
		}
	} while (count == PAGE);
	return true;
}

bool recorded_read(struct recorded *recorded, const char *database, struct error *error)
{
	struct store *store = store_new(&(struct store_options){ .database = database });
	bool done = store_read_only(store, error) == STORE_DONE;

	*recorded = (struct recorded){ 0 };
	done = done && read_pages(recorded, store, error);
	store_free(store);
	return done;
}

void recorded_free(struct recorded *recorded)
{
	map_free(&recorded->by_id);
	buffer_free(&recorded->difference);
	arena_free(&recorded->arena);
}

static void note_difference(struct recorded *recorded, const struct decision_record *stored,
                            const struct decision_record *made)
{
	if (recorded->different++ > 0)
		return;
	buffer_text(&recorded->difference, "stored: ");
	if (stored)
		record_print(&recorded->difference, RECORD_DECISION, stored);
	else
		buffer_text(&recorded->difference, "nothing of that number");
	buffer_text(&recorded->difference, "\nnow:    ");
	record_print(&recorded->difference, RECORD_DECISION, made);
}

void recorded_compare(struct recorded *recorded, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind != EFFECT_PUT || effect->record_kind != RECORD_DECISION)
			continue;
		const struct decision_record *made = effect->record, *stored;
		if (made->id < recorded->first_id || made->id > recorded->last_id)
			continue;
		stored = map_get(&recorded->by_id, made->id);
		if (stored && record_equal(RECORD_DECISION, stored, made))
			recorded->same++;
		else
			note_difference(recorded, stored, made);
	}
}
