/* grpc_services.h - all that can be called by gRPC */
#ifndef API_GRPC_GRPC_SERVICES_H
#define API_GRPC_GRPC_SERVICES_H

#include "api/engine/audit.h"
#include "api/read/roster.h"
#include "api/session/agents.h"
#include "seal/secret.h"

/* scheduler.SchedulerService, agent.AgentService, grpc.health.v1.Health and
 * grpc.reflection.v1 and v1alpha. In the loop's thread alone. */
struct grpc_services;

/* All of it must last. */
struct grpc_services_settings {
	struct desk *desk;
	struct agents *agents;
	const struct roster *roster;
	const struct secret_keys *secret_keys; /* NULL: none */
	/* GPUs of the largest node; 0: unknown. */
	int64_t (*node_gpus)(void *context);
	void *context;
	struct audit *audit; /* NULL: none */
	bool check_possible;
};
struct grpc_services *grpc_services_new(const struct grpc_services_settings *settings);
void grpc_services_free(struct grpc_services *services);

/* Whether the call is to be handed over when its head is there (handler.head), because its
 * messages come one by one; the others when they are complete (handler.request). */
bool grpc_services_is_stream(const struct exchange *exchange);
/* Whether it is answered without sign-in: health and reflection. `identity` may be NULL
 * then. */
bool grpc_services_is_public(const struct exchange *exchange);
/* Answers the call, now or later; a service or method that is not there too. */
void grpc_services_call(struct grpc_services *services, struct exchange *exchange,
                        const struct identity *identity);
/* The health of the desk has changed: who watches is told. */
void grpc_services_health_changed(struct grpc_services *services);

#endif
