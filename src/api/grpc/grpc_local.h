/* grpc_local.h - what the files of the gRPC services share */
#ifndef API_GRPC_GRPC_LOCAL_H
#define API_GRPC_GRPC_LOCAL_H

#include "api/grpc/grpc_services.h"
#include "api/text/protobuf.h"
#include "base/clock.h"

/* A unary call on its way: what it needs is in the ask's arena, and is used again. */
struct grpc_call {
	struct ask ask; /* first: one pointer is the other */
	struct grpc_services *services;
	struct exchange *exchange;
	struct identity identity;
	void *request, *state; /* of the method */
	struct grpc_call *next, *next_of_all;
};

struct health_watch;
struct reflection;

struct grpc_services {
	struct grpc_services_settings settings;
	struct grpc_call *spare, *all; /* all: also those that are under way */
	struct buffer scratch, payload;
	struct health_watch *watches;
	struct reflection *reflection;
};

static inline struct grpc_call *grpc_call_of(struct ask *ask) { return (struct grpc_call *)ask; }

/* Answers and gives the call back. */
void grpc_call_reply(struct grpc_call *call, const void *message);
void grpc_call_fail(struct grpc_call *call, const struct error *error);
void grpc_call_refuse(struct grpc_call *call, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Hands in the call's ask; `done` finds the call again by grpc_call_of. */
void grpc_call_ask(struct grpc_call *call, void (*done)(struct ask *ask));
enum grpc_status grpc_status_of_error(enum error_code code);

/* Who may do what; false: answered. */
bool grpc_call_may_change(struct grpc_call *call);
/* The tenant that a request names, which who calls may see; 0 where it names none and who
 * calls is bound to none. False: answered. */
bool grpc_call_tenant(struct grpc_call *call, const char *name, int64_t *tenant_id);

/* scheduler.SchedulerService, each with its request read. */
void grpc_submit_job(struct grpc_call *call);
void grpc_cancel_job(struct grpc_call *call);
void grpc_job_status(struct grpc_call *call);
void grpc_list_jobs(struct grpc_call *call);
void grpc_update_quota(struct grpc_call *call);
void grpc_metrics(struct grpc_call *call);
void grpc_cluster_status(struct grpc_call *call);

/* grpc_health.c, grpc_reflection.c */
void grpc_health_call(struct grpc_services *services, struct exchange *exchange);
void grpc_health_free(struct grpc_services *services);
void grpc_reflection_call(struct grpc_services *services, struct exchange *exchange);
void grpc_reflection_free(struct grpc_services *services);
/* Whether a service of that name is there. */
bool grpc_services_has(const char *name);
extern const char *const grpc_service_names[];

#endif
