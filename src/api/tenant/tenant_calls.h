/* tenant_calls.h - the requests about tenants */
#ifndef API_TENANT_TENANT_CALLS_H
#define API_TENANT_TENANT_CALLS_H

#include "api/request/call.h"

void tenant_calls_create(struct call *call);
void tenant_calls_list(struct call *call);
void tenant_calls_get(struct call *call);
void tenant_calls_put(struct call *call);
void tenant_calls_delete(struct call *call);

/* A change of a tenant, by whatever interface. */
struct tenant_change {
	int64_t id;
	struct text name;                 /* as the request has it */
	struct text json;                 /* what changes, as PUT has it */
	const char *object;               /* for the audit log */
	void (*shown)(struct call *call); /* answers, with the tenant as JSON in the body */
};
void tenant_calls_change(struct call *call, const struct tenant_change *change);

/* The tenant of the path, the caller's to see; or answers 404. */
bool tenant_calls_of_path(struct call *call, int64_t *id);

#endif
