/* engine_port.h - the engine, as the service sees it */
#ifndef API_ENGINE_ENGINE_PORT_H
#define API_ENGINE_ENGINE_PORT_H

#include "api/engine/engine_request.h"
#include "api/read/catalogue.h"
#include "store/redis.h"
#include "store/writer.h"

/* How the engine does, for /health, /metrics and the log. */
struct engine_health {
	struct writer_health writer;
	struct redis_health redis;
	bool has_redis;
	bool leading; /* false: another scheduler is active, and this one waits */
	int64_t term;
	size_t waiting; /* requests that the core has not seen yet */
	/* Passes, and the time that they took. */
	int64_t passes, pass_us_total;
	/* How far the system clock is from the core's time, where it jumped and the core has not
	 * followed (yet): negative if it is behind. And how often it jumped. */
	int64_t clock_off_ms, clock_steps;
};

/* Called in the loop's thread for what became durable, in the order of commits. Of one commit:
 * orders and routes, then events, then the answers to requests. So a client that got its answer
 * finds the effects done. Texts live during the call. Any function may be NULL. */
struct engine_listener {
	void (*order)(void *context, const struct effect *effect); /* START, STOP, LOAD */
	void (*route)(void *context, const struct route_effect *route);
	void (*event)(void *context, const struct event *event);
	/* Health has changed between ok and not. */
	void (*changed)(void *context);
	void *context;
};

/* Implemented by the server's engine, and by a stand-in in tests. */
struct engine_port {
	void (*send)(struct engine_port *port, struct engine_request *request);
	void (*health)(struct engine_port *port, struct engine_health *health);
	/* When the scheduler last knew that it is the active one, by loop_now_ms's clock. */
	int64_t (*active_ms)(struct engine_port *port);
	/* Milliseconds since 1970, as the core counts them: what its records are compared
	 * with. */
	int64_t (*time_ms)(struct engine_port *port);
	struct catalogue *catalogue;
	struct engine_listener listener; /* set before the loop runs */
	struct loop *loop;
};

/* Hands in a request, in the loop's thread. It never fails here: too many requests, or a store that
 * cannot commit, are errors in the answer (ERROR_FULL, ERROR_UNAVAILABLE). */
static inline void engine_port_send(struct engine_port *port, struct engine_request *request)
{
	port->send(port, request);
}

#endif
