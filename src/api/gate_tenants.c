/* gate_tenants.c - tenants that a token names, found in the catalogue */
#include "api/gate.h"

static int64_t find(void *context, const char *name)
{
	struct catalogue *catalogue = context;

	catalogue_lock(catalogue);
	const struct tenant_record *tenant = catalogue_tenant_named(catalogue, name);
	int64_t id = tenant ? tenant->id : 0;
	catalogue_unlock(catalogue);
	return id;
}

void gate_use_catalogue(struct gate *gate, struct catalogue *catalogue)
{
	gate_find_tenants(gate, find, catalogue);
}
