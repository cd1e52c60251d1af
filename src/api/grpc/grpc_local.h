/* grpc_local.h - what the files of the gRPC services share */
#ifndef API_GRPC_GRPC_LOCAL_H
#define API_GRPC_GRPC_LOCAL_H

#include "api/grpc/grpc_services.h"
#include "api/service/service_state.h"
#include "api/session/agents.h"
#include "api/text/protobuf.h"
#include "base/clock.h"

struct health_watch;
struct reflection;

struct grpc_services {
	struct service *service;
	struct buffer scratch; /* of one function at a time */
	struct health_watch *watches;
	struct reflection *reflection;
};

/* Answers with a message of protobuf. */
void grpc_answer(struct request *request, const void *message);
/* A command on a resource, which is known by its path in REST. */
void grpc_command(struct request *request, const char *collection, const char *name,
                  void (*done)(struct engine_request *engine));
/* The tenant that a request names, which who calls may see; 0 where it names none and who
 * calls is bound to none. False: answered. */
bool grpc_tenant(struct request *request, const char *name, int64_t *tenant_id);

/* scheduler.SchedulerService, each with its message read. */
void grpc_submit_job(struct request *request);
void grpc_cancel_job(struct request *request);
void grpc_job_status(struct request *request);
void grpc_list_jobs(struct request *request);
void grpc_update_quota(struct request *request);
void grpc_metrics(struct request *request);
void grpc_cluster_status(struct request *request);
void grpc_create_window(struct request *request);
void grpc_get_window(struct request *request);
void grpc_list_windows(struct request *request);
void grpc_delete_window(struct request *request);
void grpc_evict_model(struct request *request);

/* grpc_health.c, grpc_reflection.c */
void grpc_health_check(struct request *request);
void grpc_health_watch(struct request *request);
void grpc_health_free(struct grpc_services *services);
void grpc_reflection_open(struct request *request);
void grpc_reflection_free(struct grpc_services *services);
/* Whether a service of that name is there. */
bool grpc_services_has(const char *name);
extern const char *const grpc_service_names[];

#endif
