/* roster.c - the tenants, as the loop's thread needs them at every request */
#include "api/read/roster.h"

#include <stdlib.h>

#include "api/text/ids.h"

enum { NAME_MAX_BYTES = 256 };

void roster_remove(struct roster *roster, int64_t id)
{
	struct roster_tenant *tenant = map_remove(&roster->by_id, id);
	if (!tenant)
		return;
	if (text_map_get(&roster->by_name, tenant->name) == tenant)
		text_map_remove(&roster->by_name, tenant->name);
	free(tenant->name);
	free(tenant);
}

void roster_put(struct roster *roster, const struct tenant_record *record)
{
	roster_remove(roster, record->id);
	struct roster_tenant *tenant = NEW(struct roster_tenant);
	tenant->id = record->id;
	tenant->parent_id = record->parent_id;
	tenant->name = memory_text(record->name);
	tenant->allow_preemption = record->allow_preemption;
	map_put(&roster->by_id, tenant->id, tenant);
	text_map_put(&roster->by_name, tenant->name, tenant);
}

void roster_free(struct roster *roster)
{
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (!tenant)
			continue;
		free(tenant->name);
		free(tenant);
	}
	map_free(&roster->by_id);
	text_map_free(&roster->by_name);
}

const struct roster_tenant *roster_find(const struct roster *roster, int64_t id)
{
	return map_get(&roster->by_id, id);
}

const struct roster_tenant *roster_named(const struct roster *roster, struct text text)
{
	char name[NAME_MAX_BYTES + 1];
	int64_t id;

	if (id_read(text, ID_TENANT, &id)) {
		const struct roster_tenant *tenant = roster_find(roster, id);
		if (tenant)
			return tenant;
	}
	if (text.size == 0 || text.size > NAME_MAX_BYTES)
		return NULL;
	memcpy(name, text.data, text.size);
	name[text.size] = '\0';
	return text_map_get(&roster->by_name, name);
}

bool roster_is_within(const struct roster *roster, int64_t tenant_id, int64_t ancestor)
{
	/* Parents form a tree, but while tenants change one by one they may not seem to. */
	for (size_t level = 0; tenant_id != 0 && level <= roster->by_id.count; level++) {
		if (tenant_id == ancestor)
			return true;
		const struct roster_tenant *tenant = roster_find(roster, tenant_id);
		if (!tenant)
			return false;
		tenant_id = tenant->parent_id;
	}
	return false;
}

bool roster_may_see(const struct roster *roster, const struct identity *identity, int64_t tenant_id)
{
	if (identity->role == ROLE_ADMIN)
		return true;
	if (identity->role == ROLE_AGENT || identity->role == ROLE_GATEWAY ||
	    identity->role == ROLE_INFERENCE)
		return false;
	if (identity->tenant_id == 0)
		return identity->role == ROLE_VIEWER;
	return roster_is_within(roster, tenant_id, identity->tenant_id);
}
