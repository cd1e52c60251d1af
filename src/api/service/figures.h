/* figures.h - the cluster in numbers */
#ifndef API_SERVICE_FIGURES_H
#define API_SERVICE_FIGURES_H

#include "api/read/identity.h"
#include "wire/text/json_writer.h"

struct service;

/* Appends members to an object that is open: total_nodes, total_gpus, running_jobs and the
 * others of GET /api/v1/cluster/status. Jobs are those that who asks may see, of one tenant
 * (0: all) and those below it. */
void figures_write(struct json_writer *json, const struct service *service,
                   const struct identity *identity, int64_t tenant_id);

#endif
