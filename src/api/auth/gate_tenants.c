/* gate_tenants.c - the tenants that credentials are for, found in the roster */
#include "api/auth/gate.h"
#include "api/read/roster.h"

static int64_t gate_tenants_find(void *context, const char *name)
{
	const struct roster *roster = context;
	const struct roster_tenant *tenant = text_map_get(&roster->by_name, name);

	return tenant ? tenant->id : 0;
}

static bool exists(void *context, int64_t id)
{
	return roster_find(context, id) != NULL;
}

void gate_use_roster(struct gate *gate, struct roster *roster)
{
	gate_use_tenants(gate, &(struct gate_tenants){ gate_tenants_find, exists, roster });
}
