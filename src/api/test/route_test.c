/* route_test.c - every request finds its function, or is told what else there is */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/login/login.h"
#include "api/request/route.h"

static const struct route *route_find(struct router *router, enum method method, const char *path,
                                      char allowed[ROUTE_ALLOWED_MAX])
{
	static struct exchange exchange;
	struct text rest = text_of(path), segment;
	exchange = (struct exchange){ .method = method };
	while (text_next(&rest, '/', &segment))
		if (segment.size > 0)
			exchange.segments.of[exchange.segments.count++] = segment;
	return router_find(router, &exchange, allowed);
}

static void every_route_is_found_by_its_own_path(void **state)
{
	char allowed[ROUTE_ALLOWED_MAX];
	struct router *router = router_new();
	(void)state;
	for (const struct route *route = routes; route->path; route++)
		assert_ptr_equal(route_find(router, route->method, route->path, allowed), route);
	router_free(router);
}

static void a_head_is_answered_as_a_get(void **state)
{
	char allowed[ROUTE_ALLOWED_MAX];
	struct router *router = router_new();
	(void)state;
	const struct route *route = route_find(router, METHOD_HEAD, "/api/v1/jobs/job-1", allowed);
	assert_string_equal(route->path, "/api/v1/jobs/{id}");
	assert_int_equal(route->method, METHOD_GET);
	router_free(router);
}

static void another_method_is_told_which_there_are(void **state)
{
	char allowed[ROUTE_ALLOWED_MAX];
	struct router *router = router_new();
	(void)state;
	assert_null(route_find(router, METHOD_PATCH, "/api/v1/tenants/x", allowed));
	assert_string_equal(allowed, "GET, HEAD, PUT, DELETE");
	assert_null(route_find(router, METHOD_GET, "/api/v1/jobs/x/y/z", allowed));
	assert_string_equal(allowed, "");
	router_free(router);
}

static void only_what_changes_nothing_is_open_to_all(void **state)
{
	(void)state;
	for (const struct route *route = routes; route->path; route++) {
		/* Signing in makes a session. */
		if (route->handle == login_device || route->handle == login_device_token)
			continue;
		if (route->access == ACCESS_ANYONE || route->access == ACCESS_READ)
			assert_int_equal(route->method, METHOD_GET);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_route_is_found_by_its_own_path),
		cmocka_unit_test(a_head_is_answered_as_a_get),
		cmocka_unit_test(another_method_is_told_which_there_are),
		cmocka_unit_test(only_what_changes_nothing_is_open_to_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
