/* route.h - which function answers which request, and who may make it */
#ifndef API_REQUEST_ROUTE_H
#define API_REQUEST_ROUTE_H

#include "wire/exchange.h"

struct request;

enum access {
	ACCESS_ANYONE, /* without sign-in */
	ACCESS_READ,   /* administrators, tenants and viewers */
	ACCESS_CHANGE, /* administrators and tenants */
	ACCESS_MANAGE, /* administrators, also of tenants */
	ACCESS_ADMIN,
	ACCESS_AGENT,     /* nodes, and administrators */
	ACCESS_GATEWAY,   /* gateways, and administrators */
	ACCESS_SIGNED_IN, /* whoever has signed in */
};

/* `path` is /api/v1/jobs/{id}: what is in braces is any one segment. */
struct route {
	enum method method;
	const char *path;
	enum access access;
	void (*handle)(struct request *request);
	size_t body_bytes;      /* of the request; 0: as the listener has it */
	const char *parameters; /* of the query, with spaces between; others are refused */
};

/* All of REST; ends with a path that is NULL. */
extern const struct route routes[];

/* The table taken apart for finding. */
struct router;
struct router *router_new(void);
void router_free(struct router *router);
/* The route of a request; HEAD is answered as GET. NULL: there is none. `allowed`, with room
 * for ROUTE_ALLOWED_MAX bytes, then gets the methods that the path has ("GET, POST"), or
 * nothing if no method is answered there. */
enum { ROUTE_ALLOWED_MAX = 64 };
const struct route *router_find(const struct router *router, const struct exchange *exchange,
                                char allowed[ROUTE_ALLOWED_MAX]);

#endif
