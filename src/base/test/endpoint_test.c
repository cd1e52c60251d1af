/* endpoint_test.c - tests of URLs of servers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/endpoint.h"

static struct endpoint read_url(const char *url)
{
	struct endpoint endpoint = { 0 };
	assert_true(endpoint_read(text_of(url), &endpoint));
	return endpoint;
}

static void a_url_is_taken_apart(void **state)
{
	(void)state;
	struct endpoint endpoint = read_url("https://example.org:8443/a/b?c=d");
	assert_true(endpoint.is_secure && endpoint.has_port && !endpoint.is_bracketed);
	assert_true(text_is(endpoint.host, "example.org"));
	assert_true(text_is(endpoint.authority, "example.org:8443"));
	assert_true(text_is(endpoint.target, "/a/b?c=d"));
	assert_int_equal(endpoint.port, 8443);
}

static void a_port_that_is_left_out_is_the_schemes(void **state)
{
	(void)state;
	assert_int_equal(read_url("http://x").port, 80);
	assert_int_equal(read_url("https://x?q").port, 443);
	assert_false(read_url("https://x/").has_port);
	assert_int_equal(read_url("http://x").target.size, 0);
}

static void an_ipv6_address_is_in_brackets(void **state)
{
	(void)state;
	struct endpoint endpoint = read_url("http://[2001:db8::1]:81");
	assert_true(endpoint.is_bracketed);
	assert_true(text_is(endpoint.host, "2001:db8::1"));
	assert_true(text_is(endpoint.authority, "[2001:db8::1]:81"));
	assert_int_equal(read_url("http://[::1]").port, 80);
}

static void what_is_no_url_of_a_server_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	static const char *const wrong[] = { "",
		                             "x",
		                             "ftp://x",
		                             "http:/x",
		                             "http://",
		                             "http:///path",
		                             "http://:80",
		                             "http://x:",
		                             "http://x:0",
		                             "http://x:65536",
		                             "http://x:000080",
		                             "http://x:8a",
		                             "http://x:+8",
		                             "http://[::1",
		                             "http://[::1]8",
		                             "http://[]:8",
		                             "http://a@b",
		                             "http://user:password@b:80/",
		                             "http://x/#fragment",
		                             "http://x/a b",
		                             "http://x\\@y",
		                             "http://x/\r\nHost: y",
		                             "http://x/\xc3\xa9" };
	struct endpoint endpoint = { .port = 77 };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(endpoint_read(text_of(wrong[i]), &endpoint));
	assert_int_equal(endpoint.port, 77);
}

static void a_host_name_has_letters_digits_dots_and_dashes(void **state)
{
	(void)state;
	assert_true(endpoint_host_is_name(TEXT("gpu-07.Example_1")));
	assert_false(endpoint_host_is_name(TEXT("")));
	assert_false(endpoint_host_is_name(TEXT("-x")));
	assert_false(endpoint_host_is_name(TEXT(".x")));
	assert_false(endpoint_host_is_name(TEXT("x%2f")));
	assert_false(endpoint_host_is_name((struct text){ "x\0y", 3 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_is_taken_apart),
		cmocka_unit_test(a_port_that_is_left_out_is_the_schemes),
		cmocka_unit_test(an_ipv6_address_is_in_brackets),
		cmocka_unit_test(what_is_no_url_of_a_server_is_refused_and_changes_nothing),
		cmocka_unit_test(a_host_name_has_letters_digits_dots_and_dashes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
