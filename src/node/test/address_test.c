/* address_test.c - which host a node may send requests to */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/address.h"

static const char *const allowed[] = { "models.example", "*.gpu.example", "10.1.0.0/16",
	                               "192.0.2.7", "2001:db8:5::/48" };
static const struct address_rules rules = { allowed, 5, "head" };
static const struct address_rules strict = { NULL, 0, "head" };

static void settles(const struct address_source *source, const char *announced,
                    const char *expected)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	bool replaced;
	const char *settled = address_settle(source, announced, &arena, &replaced, &error);

	if (!settled)
		fail_msg("%s: %s", announced, error.text);
	assert_string_equal(settled, expected);
	assert_int_equal(replaced, strncmp(announced, expected, strlen(expected)) != 0);
	arena_free(&arena);
}

static bool address_is_refused(const struct address_source *source, const char *announced)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	bool replaced;
	const char *settled = address_settle(source, announced, &arena, &replaced, &error);

	assert_true(settled || error.code != ERROR_NONE);
	arena_free(&arena);
	return !settled;
}

static void a_nodes_own_name_and_the_address_it_connected_from_are_believed(void **state)
{
	struct address_source source = { &strict, "gpu-07", "10.0.0.7" };

	(void)state;
	settles(&source, "http://10.0.0.7:8000", "http://10.0.0.7:8000");
	settles(&source, "http://gpu-07:8000", "http://gpu-07:8000");
	settles(&source, "https://GPU-07:8443/", "https://GPU-07:8443");
	source.peer = "::ffff:10.0.0.7";
	settles(&source, "http://10.0.0.7:8000", "http://10.0.0.7:8000");
	source.peer = "2001:db8::7";
	settles(&source, "http://[2001:db8:0::7]:1", "http://[2001:db8:0::7]:1");
}

static void another_host_is_replaced_by_the_address_it_connected_from(void **state)
{
	struct address_source source = { &strict, "gpu-07", "10.0.0.7" };

	(void)state;
	settles(&source, "http://evil.example:666", "http://10.0.0.7:666");
	settles(&source, "http://gpu-08:80", "http://10.0.0.7:80");
	settles(&source, "http://10.0.0.8:80", "http://10.0.0.7:80");
	settles(&source, "http://127.0.0.1:80", "http://10.0.0.7:80");
	settles(&source, "http://localhost:80", "http://10.0.0.7:80");
	settles(&source, "http://head:80", "http://10.0.0.7:80");
	source.peer = "2001:db8::7";
	settles(&source, "http://evil.example:666", "http://[2001:db8::7]:666");
	source.peer = "";
	assert_true(address_is_refused(&source, "http://evil.example:666"));
}

static void a_node_on_the_schedulers_machine_may_use_that_machines_name(void **state)
{
	struct address_source source = { &strict, "gpu-07", "127.0.0.1" };

	(void)state;
	settles(&source, "http://head:80", "http://head:80");
	settles(&source, "http://localhost:80", "http://localhost:80");
	settles(&source, "http://127.0.0.5:80", "http://127.0.0.5:80");
	settles(&source, "http://evil.example:80", "http://127.0.0.1:80");
}

static void what_the_administrator_allows_is_believed(void **state)
{
	struct address_source source = { &rules, "gpu-07", "10.0.0.7" };

	(void)state;
	settles(&source, "http://models.example:80", "http://models.example:80");
	settles(&source, "http://a.gpu.example:80", "http://a.gpu.example:80");
	settles(&source, "http://10.1.255.1:80", "http://10.1.255.1:80");
	settles(&source, "http://192.0.2.7:80", "http://192.0.2.7:80");
	settles(&source, "http://[2001:db8:5::1]:80", "http://[2001:db8:5::1]:80");
	settles(&source, "http://gpu.example:80", "http://10.0.0.7:80");
	settles(&source, "http://xgpu.example:80", "http://10.0.0.7:80");
	settles(&source, "http://10.2.0.1:80", "http://10.0.0.7:80");
	settles(&source, "http://[2001:db8:6::1]:80", "http://10.0.0.7:80");
	settles(&source, "http://a.gpu.example.evil.example:80", "http://10.0.0.7:80");
}

static void what_is_not_a_scheme_a_host_and_a_port_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"here",
		"10.0.0.7:80",
		"ftp://10.0.0.7:80",
		"file:///etc/passwd",
		"HTTP://10.0.0.7:80",
		"http://10.0.0.7",
		"http://10.0.0.7:",
		"http://10.0.0.7:0",
		"http://10.0.0.7:65536",
		"http://10.0.0.7:000080",
		"http://10.0.0.7:+80",
		"http://10.0.0.7: 80",
		"http://10.0.0.7:80x",
		"http://10.0.0.7:80/path",
		"http://10.0.0.7:80?q",
		"http://10.0.0.7:80#f",
		"http://user@10.0.0.7:80",
		"http://10.0.0.7:80@evil.example:81",
		"http://user:1@evil.example:80",
		"http://evil.example/x:80",
		"http://evil.example\\@10.0.0.7:80",
		"http://evil.example%2f:80",
		"http://:80",
		"http://[::1:80",
		"http://[::1]80",
		"http://[evil.example]:80",
		"http://[127.0.0.1]:80",
		"http://::1:80",
		"http://ev il:80",
		"http://ev\nil:80",
		"http://-x:80",
	};
	struct address_source source = { &rules, "gpu-07", "10.0.0.7" };
	struct address_source trusting = { NULL, "gpu-07", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!address_is_refused(&source, bad[i]) || !address_is_refused(&trusting, bad[i]))
			fail_msg("'%s' is accepted", bad[i]);
	}
	assert_true(address_is_refused(&source, NULL));
}

static void a_rule_that_is_not_one_is_refused_with_a_reason(void **state)
{
	static const char *const bad[] = { "",           "*",           "*.",     "10.0.0.0/33",
		                           "10.0.0.0/",  "x/24",        "::/129", "a b",
		                           "http://x",   "10.0.0.0/-1", "a,b",    "10.0.0.0/8x",
		                           "*.*.example" };
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		assert_true(address_check_rule(allowed[i], &error));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (address_check_rule(bad[i], &error))
			fail_msg("'%s' is accepted", bad[i]);
		assert_non_null(strstr(error.text, "is not a host name"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nodes_own_name_and_the_address_it_connected_from_are_believed),
		cmocka_unit_test(another_host_is_replaced_by_the_address_it_connected_from),
		cmocka_unit_test(a_node_on_the_schedulers_machine_may_use_that_machines_name),
		cmocka_unit_test(what_the_administrator_allows_is_believed),
		cmocka_unit_test(what_is_not_a_scheme_a_host_and_a_port_is_refused),
		cmocka_unit_test(a_rule_that_is_not_one_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
