/* roster.h - the tenants, as the loop's thread needs them at every request */
#ifndef API_READ_ROSTER_H
#define API_READ_ROSTER_H

#include "api/read/catalogue.h"
#include "api/read/identity.h"
#include "base/map.h"
#include "base/text.h"

/* The data that checks need, copied from the catalogue when a tenant changes, so that
 * accepting a job takes no lock. Zero-initialized is empty. */
struct roster_tenant {
	int64_t id, parent_id;
	char *name;
	bool allow_preemption;
};
struct roster {
	struct map by_id;
	struct text_map by_name;
};

/* Takes over all that the catalogue has. */
void roster_fill(struct roster *roster, struct catalogue *catalogue);
/* A tenant came, changed or went. */
void roster_changed(struct roster *roster, struct catalogue *catalogue, int64_t tenant_id);
/* One of them. */
void roster_put(struct roster *roster, const struct tenant_record *tenant);
void roster_remove(struct roster *roster, int64_t id);
void roster_free(struct roster *roster);

/* NULL if there is none. By "tenant-3", "3" or the name. */
const struct roster_tenant *roster_find(const struct roster *roster, int64_t id);
const struct roster_tenant *roster_named(const struct roster *roster, struct text text);

/* Whether who asks may see what belongs to the tenant: its own and what is below. */
bool roster_may_see(const struct roster *roster, const struct identity *identity,
                    int64_t tenant_id);
/* Whether it sees what belongs to anyone. */
static inline bool roster_sees_all(const struct identity *identity)
{
	return identity->tenant_id == 0 &&
	       (identity->role == ROLE_ADMIN || identity->role == ROLE_VIEWER);
}
/* Whether it is `ancestor` or below it. */
bool roster_is_within(const struct roster *roster, int64_t tenant_id, int64_t ancestor);

#endif
