/* audit.h - who changed what, when, and from where */
#ifndef API_ENGINE_AUDIT_H
#define API_ENGINE_AUDIT_H

#include "api/engine/engine_port.h"
#include "api/read/identity.h"
#include "wire/exchange.h"
#include "wire/text/json_writer.h"

/* The last changes, in memory and kept (kind "audit", the key is the entry's number): each
 * is written in the transaction of the change itself. In the loop's thread alone. */
struct audit;

/* `most`: entries that are kept; the oldest go when there are more. 0: 100,000. */
struct audit *audit_new(int64_t most);
void audit_free(struct audit *audit);
/* At the start: restores a stored entry. */
void audit_load(struct audit *audit, const char *key, const char *value);

/* Has the engine request keep an entry, beside what it keeps already, if what it asks for happens:
 * `action` is one word for all interfaces: the name of the command, or a verb and a noun;
 * `object` is what it is done to, or empty; `detail` may be NULL. A node's reports and
 * submissions of jobs are not changes in this sense: jobs themselves say who submitted them. */
struct audit_entry {
	const char *action, *object, *detail;
	const struct identity *identity;
	const struct exchange *exchange;
	int64_t unix_ms;
};
void audit_note(struct audit *audit, struct engine_request *engine,
                const struct audit_entry *entry);
/* Call it when the engine request is done: a refused change leaves no entry. */
void audit_settle(struct audit *audit, const struct engine_request *engine);

/* Writes up to `limit` entries with numbers below `before`, the newest first, into an array
 * that is open. */
void audit_write(const struct audit *audit, struct json_writer *json, int64_t limit,
                 int64_t before);

#endif
