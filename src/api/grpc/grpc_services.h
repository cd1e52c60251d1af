/* grpc_services.h - all that can be called by gRPC */
#ifndef API_GRPC_GRPC_SERVICES_H
#define API_GRPC_GRPC_SERVICES_H

#include "api/request/request.h"
#include "api/request/route.h"

/* scheduler.SchedulerService, agent.AgentService, grpc.health.v1.Health and
 * grpc.reflection.v1 and v1alpha. In the loop's thread alone. */
struct grpc_services;
struct grpc_services *grpc_services_new(struct service *service);
/* Before the pool of calls is freed. */
/* Ends health watches. */
void grpc_services_stop(struct grpc_services *services);
void grpc_services_free(struct grpc_services *services);

/* All methods; ends with a path that is NULL. */
extern const struct route grpc_routes[];
/* The route of a call; NULL: there is none. */
const struct route *grpc_route_of(const struct exchange *exchange);
/* True if the call is handled when its head is there, because its messages come one by one;
 * the others are when they are complete. */
bool grpc_route_is_stream(const struct route *route);
/* Reads the message of a call that is complete, and handles it. */
void grpc_handle(struct request *request);
/* Answers a call that has no route. */
void grpc_refuse_unknown(struct request *request);

/* The health of the engine has changed: who watches is told. */
void grpc_services_health_changed(struct grpc_services *services);

#endif
