/* openapi_test.c - the description has every route and every field, and no other */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "api/request/parameters.h"
#include "api/request/route.h"
#include "core/record/record.h"
#include "resource/resource.h"

extern const unsigned char openapi_json_text[];
extern const size_t openapi_json_text_size;

static json_t *description;

static int openapi_setup(void **state)
{
	json_error_t error;
	(void)state;
	description = json_loadb((const char *)openapi_json_text, openapi_json_text_size,
	                         JSON_REJECT_DUPLICATES, &error);
	return description ? 0 : -1;
}

static int openapi_teardown(void **state)
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

static void every_field_that_can_be_sent_is_described(void **state)
{
	(void)state;
	for (int i = RESOURCE_NESTED + 1; i < RESOURCE_COUNT; i++) {
		const struct resource *resource = resources[i];
		for (int j = 0; resource->request_schema && j < resource->field_count; j++)
			if (field_is_accepted(&resource->fields[j]) &&
			    !json_object_get(properties_of(resource->request_schema),
			                     resource->fields[j].name))
				fail_msg("%s.%s is not described", resource->request_schema,
				         resource->fields[j].name);
	}
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

/* A parameter may be described elsewhere, by a reference such as '#/components/...'. */
static const json_t *resolve(const json_t *item)
{
	const char *reference = json_string_value(json_object_get(item, "$ref"));
	if (!reference)
		return item;
	const json_t *at = description;
	struct text rest = text_of(reference + 2), step;
	while (text_next(&rest, '/', &step))
		at = json_object_getn(at, step.data, step.size);
	return at;
}

static const json_t *described_parameter(const struct route *route, const char *name)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(operation_of(route), "parameters"), i, item)
	{
		const json_t *parameter = resolve(item);
		if (strcmp(json_string_value(json_object_get(parameter, "in")), "query") == 0 &&
		    strcmp(json_string_value(json_object_get(parameter, "name")), name) == 0)
			return parameter;
	}
	return NULL;
}

static void the_query_parameters_of_a_route_are_those_that_are_described(void **state)
{
	(void)state;
	for (const struct route *route = routes; route->path; route++) {
		size_t accepted = 0, described = 0, i;
		struct text names = text_of(route->parameters), name;
		json_t *item;
		if (strcmp(route->parameters, PARAMETERS_ANY) == 0)
			continue;
		while (text_next(&names, ' ', &name)) {
			char copy[64] = "";
			memcpy(copy, name.data, name.size);
			accepted++;
			if (!described_parameter(route, copy))
				fail_msg("%s of %s is not described", copy, route->path);
		}
		json_array_foreach(json_object_get(operation_of(route), "parameters"), i, item)
		    described +=
		    strcmp(json_string_value(json_object_get(resolve(item), "in")), "query") == 0;
		if (accepted != described)
			fail_msg("%s: %zu query parameters are accepted, %zu described",
			         route->path, accepted, described);
	}
}

static void check_words(const json_t *schema, const struct words *words)
{
	const json_t *list = json_object_get(schema, "enum");
	assert_int_equal(json_array_size(list), words->count);
	for (int i = 0; i < words->count; i++)
		assert_string_equal(json_string_value(json_array_get(list, (size_t)i)),
		                    words->at[i]);
}

static void every_kind_of_decision_is_described(void **state)
{
	const struct route *route = routes;
	(void)state;
	while (strcmp(route->path, "/api/v1/scheduler/decisions") != 0)
		route++;
	check_words(json_object_get(described_parameter(route, "type"), "schema"), &decision_words);
	check_words(json_object_get(properties_of("Decision"), "type"), &decision_words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_route_is_described),
		cmocka_unit_test(nothing_is_described_that_is_not_there),
		cmocka_unit_test(what_is_open_to_all_is_described_as_such),
		cmocka_unit_test(every_field_that_can_be_sent_is_described),
		cmocka_unit_test(every_field_of_a_job_that_is_described_can_be_sent),
		cmocka_unit_test(the_query_parameters_of_a_route_are_those_that_are_described),
		cmocka_unit_test(every_kind_of_decision_is_described),
	};
	return cmocka_run_group_tests(tests, openapi_setup, openapi_teardown);
}
