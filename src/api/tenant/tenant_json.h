/* tenant_json.h - a tenant as people send it and read it */
#ifndef API_TENANT_TENANT_JSON_H
#define API_TENANT_TENANT_JSON_H

#include "api/read/catalogue.h"
#include "api/read/roster.h"
#include "core/sched.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

/* What a tenant is where nothing is said: no limits, no quota, no price. */
struct tenant_record tenant_json_default(void);

/* Changes `tenant` as the JSON says: what is left out stays, null takes the default. Texts
 * are in the arena. False with a sentence that names the field. */
bool tenant_json_read(struct text body, const struct roster *roster, struct arena *arena,
                      struct tenant_record *tenant, struct error *error);

/* Writes the tenant with its current and total use. `jobs`: all jobs that it ever had. */
void tenant_json_write(struct json_writer *json, const char *key,
                       const struct tenant_record *tenant, const struct tenant_figures *figures,
                       int64_t jobs);

/* Whether its notify_webhook is at an address of this machine or of a private network. */
bool tenant_webhook_is_private(const struct tenant_record *tenant);
/* The Unix user that the tenant's tasks run as, in the arena; empty: none of its own. */
const char *tenant_unix_user(const struct tenant_record *tenant, struct arena *arena);

/* The word for a priority, or NULL: "high". */
const char *tenant_tier(int64_t priority);

#endif
