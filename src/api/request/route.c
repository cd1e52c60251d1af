/* route.c - finding the function that answers a request */
#include "api/request/route.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

/* A route's path in its segments; data is NULL where any will do. */
struct pattern {
	const struct route *route;
	struct text segments[URL_SEGMENTS_MAX];
	size_t count;
};

struct router {
	struct pattern *patterns;
	size_t count;
};

static void take_apart(struct pattern *pattern, const struct route *route)
{
	struct text rest = text_of(route->path), segment;
	pattern->route = route;
	while (text_next(&rest, '/', &segment)) {
		if (segment.size == 0)
			continue;
		INVARIANT(pattern->count < URL_SEGMENTS_MAX);
		if (segment.data[0] == '{')
			segment.data = NULL;
		pattern->segments[pattern->count++] = segment;
	}
}

struct router *router_new(void)
{
	struct router *router = NEW(struct router);
	while (routes[router->count].path)
		router->count++;
	router->patterns = memory_zero(router->count, sizeof(*router->patterns));
	for (size_t i = 0; i < router->count; i++)
		take_apart(&router->patterns[i], &routes[i]);
	return router;
}

void router_free(struct router *router)
{
	if (!router)
		return;
	free(router->patterns);
	free(router);
}

/* From the last segment on, as that is where paths differ most. */
static bool route_matches(const struct pattern *pattern, const struct url_segments *segments)
{
	if (pattern->count != segments->count)
		return false;
	for (size_t i = pattern->count; i-- > 0;)
		if (pattern->segments[i].data && !text_equal(pattern->segments[i], segments->of[i]))
			return false;
	return true;
}

static void allow(char allowed[ROUTE_ALLOWED_MAX], enum method method)
{
	size_t size = strlen(allowed);
	snprintf(allowed + size, ROUTE_ALLOWED_MAX - size, "%s%s", size > 0 ? ", " : "",
	         method_text(method));
}

const struct route *router_find(const struct router *router, const struct exchange *exchange,
                                char allowed[ROUTE_ALLOWED_MAX])
{
	enum method wanted = exchange->method == METHOD_HEAD ? METHOD_GET : exchange->method;
	allowed[0] = '\0';
	for (size_t i = 0; i < router->count; i++) {
		const struct pattern *pattern = &router->patterns[i];
		if (pattern->route->method != wanted ||
		    !route_matches(pattern, &exchange->segments))
			continue;
		return pattern->route;
	}
	for (size_t i = 0; i < router->count; i++)
		if (route_matches(&router->patterns[i], &exchange->segments)) {
			enum method method = router->patterns[i].route->method;
			allow(allowed, method);
			if (method == METHOD_GET)
				allow(allowed, METHOD_HEAD);
		}
	return NULL;
}
