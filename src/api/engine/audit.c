/* audit.c - who changed what, when, and from where */
#include "api/engine/audit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number_text.h"

enum { ENTRIES_MAX = 100000 };

/* Entries by number, in a ring: those from `first` on are there. An entry whose change was
 * refused is a gap: it was never kept, and its place is NULL. */
struct audit {
	int64_t most, first, next;
	char **entries; /* JSON, at number % most */
};

struct audit *audit_new(int64_t most)
{
	struct audit *audit = NEW(struct audit);

	audit->most = most > 0 ? most : ENTRIES_MAX;
	audit->first = audit->next = 1;
	audit->entries = memory_zero((size_t)audit->most, sizeof(*audit->entries));
	return audit;
}

void audit_free(struct audit *audit)
{
	if (!audit)
		return;
	for (int64_t i = 0; i < audit->most; i++)
		free(audit->entries[i]);
	free(audit->entries);
	free(audit);
}

static char **audit_place(const struct audit *audit, int64_t number)
{
	return &audit->entries[number % audit->most];
}

static void audit_put(struct audit *audit, int64_t number, char *entry)
{
	if (number >= audit->first + audit->most)
		audit->first = number - audit->most + 1;
	free(*audit_place(audit, number));
	*audit_place(audit, number) = entry;
	if (number >= audit->next)
		audit->next = number + 1;
}

void audit_load(struct audit *audit, const char *key, const char *value)
{
	int64_t number;

	/* The ring may have been larger then; what does not fit any more is left out. */
	if (number_read(text_of(key), 1, INT64_MAX, &number) && number > audit->next - audit->most)
		audit_put(audit, number, memory_text(value));
}

static void write_entry(struct buffer *buffer, int64_t number, const struct audit_entry *entry)
{
	struct json_writer json = json_writer_to(buffer);

	json_open_object(&json, NULL);
	json_put_integer(&json, "number", number);
	json_put_time(&json, "time", entry->unix_ms * 1000);
	json_put_string(&json, "who", entry->identity->name);
	if (entry->identity->tenant_id > 0) {
		char tenant[32];
		snprintf(tenant, sizeof(tenant), "tenant-%lld",
		         (long long)entry->identity->tenant_id);
		json_put_string(&json, "tenant_id", tenant);
	}
	json_put_string(&json, "action", entry->action);
	json_put_string(&json, "object", entry->object);
	if (entry->detail)
		json_put_string(&json, "detail", entry->detail);
	if (entry->exchange)
		json_put_text(&json, "address", entry->exchange->peer_address);
	json_close(&json);
	buffer_text(buffer, "");
}

/* The key sorts as its number does. */
static const char *audit_key_of(struct arena *arena, int64_t number)
{
	char *key = arena_alloc(arena, 32);

	snprintf(key, 32, "%015lld", (long long)number);
	return key;
}

void audit_note(struct audit *audit, struct engine_request *engine, const struct audit_entry *entry)
{
	struct buffer json = { 0 };
	int64_t number = audit->next;
	size_t count = engine->keep_count;
	struct kept *keeps = arena_alloc(&engine->arena, (count + 2) * sizeof(*keeps));

	write_entry(&json, number, entry);
	if (count > 0)
		memcpy(keeps, engine->keeps, count * sizeof(*keeps));
	keeps[count++] = (struct kept){ "audit", audit_key_of(&engine->arena, number),
		                        arena_string(&engine->arena, json.data) };
	if (number - audit->most >= 1)
		keeps[count++] =
		    (struct kept){ "audit", audit_key_of(&engine->arena, number - audit->most),
			           NULL };
	engine->keeps = keeps;
	engine->keep_count = count;
	audit_put(audit, number, json.data);
}

void audit_settle(struct audit *audit, const struct engine_request *engine)
{
	for (size_t i = 0; !engine->ok && i < engine->keep_count; i++) {
		if (strcmp(engine->keeps[i].kind, "audit") != 0 || !engine->keeps[i].value)
			continue;
		int64_t number = 0;
		number_read(text_of(engine->keeps[i].key), 1, INT64_MAX, &number);
		char **entry = audit_place(audit, number);
		if (*entry && strcmp(*entry, engine->keeps[i].value) == 0) {
			free(*entry);
			*entry = NULL;
		}
	}
}

void audit_write(const struct audit *audit, struct json_writer *json, int64_t limit, int64_t before)
{
	int64_t number = before > audit->next ? audit->next : before;

	while (--number >= audit->first && limit > 0) {
		const char *entry = *audit_place(audit, number);
		if (!entry)
			continue;
		json_put_raw(json, NULL, text_of(entry));
		limit--;
	}
}
