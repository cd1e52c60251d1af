/* parameters_test.c - unknown query parameters are refused, and the sentence helps */
#include "api/request/parameters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After those. */
#include <cmocka.h>

static const struct route list = { METHOD_GET, "/list", ACCESS_READ,
	                           NULL,       0,       "tenant_id state limit offset" };
static const struct route plain = { METHOD_DELETE, "/plain", ACCESS_CHANGE, NULL, 0, "" };
static const struct route page = { METHOD_GET, "/page", ACCESS_ANYONE, NULL, 0, PARAMETERS_ANY };

static bool parameters_verify(const struct route *route, const char *text, struct error *error)
{
	struct buffer storage = { 0 };
	struct query_parameter parameters[QUERY_PARAMETERS_MAX];
	struct query query;
	bool parsed = query_parse(text_of(text), &storage, parameters, &query, error);
	bool known = parsed && parameters_check(route, &query, error);
	assert_true(parsed);
	buffer_free(&storage);
	return known;
}

static void parameters_refuse(const struct route *route, const char *text, const char *sentence)
{
	struct error error = { 0 };
	assert_false(parameters_verify(route, text, &error));
	assert_int_equal(error.code, ERROR_INVALID);
	assert_string_equal(error.text, sentence);
}

static void the_parameters_of_a_route_are_accepted(void **state)
{
	struct error error = { 0 };
	(void)state;
	assert_true(parameters_verify(&list, "", &error));
	assert_true(parameters_verify(&list, "offset=1&limit=2&tenant_id=x&state=", &error));
	assert_true(parameters_verify(&plain, "", &error));
}

static void a_misspelled_parameter_is_refused_with_the_one_that_was_meant(void **state)
{
	(void)state;
	parameters_refuse(&list, "limit=1&stat=running",
	                  "unknown query parameter 'stat': did you mean state?");
	parameters_refuse(&list, "tenant=3",
	                  "unknown query parameter 'tenant': did you mean tenant_id?");
	parameters_refuse(&list, "Limit=3", "unknown query parameter 'Limit': did you mean limit?");
}

static void a_strange_parameter_is_refused_with_those_that_there_are(void **state)
{
	(void)state;
	parameters_refuse(
	    &list, "flavor=red",
	    "unknown query parameter 'flavor': GET /list has tenant_id, state, limit and "
	    "offset");
	parameters_refuse(&plain, "force=1",
	                  "unknown query parameter 'force': DELETE /plain has none");
}

static void an_endless_name_is_refused_and_cut(void **state)
{
	char name[300];
	struct error error = { 0 };
	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_false(parameters_verify(&list, name, &error));
	assert_true(strlen(error.text) < 200);
}

static void a_page_does_not_care_about_its_query(void **state)
{
	struct error error = { 0 };
	(void)state;
	assert_true(parameters_verify(&page, "utm_source=mail", &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parameters_of_a_route_are_accepted),
		cmocka_unit_test(a_misspelled_parameter_is_refused_with_the_one_that_was_meant),
		cmocka_unit_test(a_strange_parameter_is_refused_with_those_that_there_are),
		cmocka_unit_test(an_endless_name_is_refused_and_cut),
		cmocka_unit_test(a_page_does_not_care_about_its_query),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
