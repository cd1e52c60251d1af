/* tenant_users.h - a numeric user for each tenant, from a range, with a home on this node */
#ifndef AGENT_WORKLOAD_TENANT_USERS_H
#define AGENT_WORKLOAD_TENANT_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* User ids without entries in the system's accounts; first is 0 where there is no range. */
struct uid_range {
	int64_t first, last;
};

/* Reads 'FIRST-LAST' or 'none'. False with a reason. */
bool uid_range_parse(const char *text, struct uid_range *range, struct error *error);

/* The directory of all homes; to be freed. In the state directory where users can reach that, in
 * /var/tmp else. `label` as in struct run_settings. */
char *tenant_users_homes(const char *state_directory, const char *label);

/* Finds or makes the home of a tenant in `homes`. Whoever owns the home is the tenant's user, so a
 * tenant keeps its user for as long as its home is there, and no two have the same one. `home` is
 * to be freed. False with a reason, such as that all ids of the range are taken. */
bool tenant_users_find(const char *homes, const struct uid_range *range, const char *tenant,
                       int64_t *uid, char **home, struct error *error);

/* The user that 'TENANT=NAME,...' names for a tenant; to be freed. NULL: none. */
char *tenant_users_named(const char *list, const char *tenant);
/* False with a reason if the list is not of that form. */
bool tenant_users_check(const char *list, struct error *error);

#endif
