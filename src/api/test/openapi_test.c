/* openapi_test.c - the description has every route and every field, and no other */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "api/model/model_json.h"
#include "api/request/route.h"
#include "api/tenant/tenant_json.h"
#include "resource/resource.h"

extern const unsigned char openapi_json_text[];
extern const size_t openapi_json_text_size;

static json_t *description;

static int setup(void **state)
{
	json_error_t error;
	(void)state;
	description = json_loadb((const char *)openapi_json_text, openapi_json_text_size,
	                         JSON_REJECT_DUPLICATES, &error);
	return description ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	json_decref(description);
	return 0;
}

static const json_t *operation_of(const struct route *route)
{
	char method[16] = "";
	const char *name = method_text(route->method);
	for (size_t i = 0; name[i] && i < sizeof(method) - 1; i++)
		method[i] = (char)tolower(name[i]);
	const json_t *path = json_object_get(json_object_get(description, "paths"), route->path);
	return json_object_get(path, method);
}

static void every_route_is_described(void **state)
{
	(void)state;
	for (const struct route *route = routes; route->path; route++)
		if (!operation_of(route))
			fail_msg("%s %s is not described", method_text(route->method), route->path);
}

static void nothing_is_described_that_is_not_there(void **state)
{
	const char *path, *method;
	json_t *methods, *operation;
	size_t described = 0, there = 0;
	(void)state;
	json_object_foreach(json_object_get(description, "paths"), path, methods)
	    json_object_foreach(methods, method, operation) described++;
	while (routes[there].path)
		there++;
	assert_int_equal(described, there);
}

static void what_is_open_to_all_is_described_as_such(void **state)
{
	(void)state;
	for (const struct route *route = routes; route->path; route++) {
		const json_t *security = json_object_get(operation_of(route), "security");
		if ((route->access == ACCESS_ANYONE) != json_is_array(security))
			fail_msg("%s: access and security disagree", route->path);
	}
}

static const json_t *properties_of(const char *schema)
{
	const json_t *schemas =
	    json_object_get(json_object_get(description, "components"), "schemas");
	return json_object_get(json_object_get(schemas, schema), "properties");
}

static void check_members(const char *schema, const char *(*member)(size_t place))
{
	for (size_t i = 0; member(i); i++)
		if (!json_object_get(properties_of(schema), member(i)))
			fail_msg("%s.%s is not described", schema, member(i));
}

static void every_field_that_can_be_sent_is_described(void **state)
{
	(void)state;
	for (int i = 0; i < job_resource.field_count; i++)
		if (field_is_accepted(&job_resource.fields[i]) &&
		    !json_object_get(properties_of("JobRequest"), job_resource.fields[i].name))
			fail_msg("JobRequest.%s is not described", job_resource.fields[i].name);
	check_members("TenantRequest", tenant_json_member);
	check_members("ModelRequest", model_json_member);
}

static void every_field_of_a_job_that_is_described_can_be_sent(void **state)
{
	const char *name;
	json_t *property;
	(void)state;
	json_object_foreach((json_t *)properties_of("JobRequest"), name, property)
	{
		int place = resource_find(&job_resource, name, strlen(name));
		if (place < 0 || !field_is_accepted(&job_resource.fields[place]))
			fail_msg("%s is described and cannot be sent", name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_route_is_described),
		cmocka_unit_test(nothing_is_described_that_is_not_there),
		cmocka_unit_test(what_is_open_to_all_is_described_as_such),
		cmocka_unit_test(every_field_that_can_be_sent_is_described),
		cmocka_unit_test(every_field_of_a_job_that_is_described_can_be_sent),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
