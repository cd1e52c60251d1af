/* roster_fill.c - the tenants, taken over from the catalogue */
#include "api/read/roster.h"

void roster_fill(struct roster *roster, struct catalogue *catalogue)
{
	struct catalogue_cursor cursor = { .kind = RECORD_TENANT };
	const struct tenant_record *record;

	catalogue_lock(catalogue);
	while ((record = catalogue_next(catalogue, &cursor)) != NULL)
		roster_put(roster, record);
	catalogue_unlock(catalogue);
}

void roster_changed(struct roster *roster, struct catalogue *catalogue, int64_t tenant_id)
{
	catalogue_lock(catalogue);
	const struct tenant_record *record = catalogue_get(catalogue, RECORD_TENANT, tenant_id, 0);
	if (record)
		roster_put(roster, record);
	else
		roster_remove(roster, tenant_id);
	catalogue_unlock(catalogue);
}
