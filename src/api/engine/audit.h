/* audit.h - who changed what, when, and from where */
#ifndef API_ENGINE_AUDIT_H
#define API_ENGINE_AUDIT_H

#include "api/engine/desk.h"
#include "api/read/identity.h"
#include "wire/exchange.h"

/* The last changes, in memory and kept (kind "audit", the key is the entry's number): each
 * is written in the transaction of the change itself. In the loop's thread alone. */
struct audit;

/* `most`: entries that are kept; the oldest go when there are more. 0: 100,000. */
struct audit *audit_new(int64_t most);
void audit_free(struct audit *audit);
/* An entry that was kept, at the start. */
void audit_load(struct audit *audit, const char *key, const char *value);

/* Has the ask keep an entry, beside what it keeps already, if what it asks for happens:
 * `action` is a verb and a noun ("cancel job"), `object` the id of what it is done to, or
 * empty, `detail` may be NULL. A node's reports and submissions of jobs are not changes in
 * this sense: jobs themselves say who submitted them. */
struct audit_entry {
	const char *action, *object, *detail;
	const struct identity *identity;
	const struct exchange *exchange;
	int64_t unix_ms;
};
void audit_note(struct audit *audit, struct ask *ask, const struct audit_entry *entry);
/* To be called when the ask is done: what was refused did not happen. */
void audit_settle(struct audit *audit, const struct ask *ask);

/* GET /api/v1/audit?limit&before: for administrators. Answers and ends it. */
void audit_list(struct audit *audit, struct exchange *exchange, const struct identity *identity);

#endif
