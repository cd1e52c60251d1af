/* tenant_calls.h - the requests about tenants */
#ifndef API_TENANT_TENANT_CALLS_H
#define API_TENANT_TENANT_CALLS_H

#include "api/request/request.h"

void tenant_calls_create(struct request *request);
void tenant_calls_list(struct request *request);
void tenant_calls_get(struct request *request);
void tenant_calls_put(struct request *request);
void tenant_calls_delete(struct request *request);

/* A change of a tenant, by whatever interface. */
struct tenant_change {
	int64_t id;
	struct text name;                       /* as the request has it */
	struct text json;                       /* what changes, as PUT has it */
	const char *object;                     /* for the audit log */
	void (*shown)(struct request *request); /* answers, with the tenant as JSON in the body */
};
void tenant_calls_change(struct request *request, const struct tenant_change *change);

/* The tenant of the path, the caller's to see; or answers 404. */
bool tenant_calls_of_path(struct request *request, int64_t *id);

#endif
