/* address_test.c - the URL of a service is taken apart, or refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/client/address.h"

static struct address read_address(const char *url)
{
	struct address address;
	struct error error = { 0 };
	assert_true(address_read(url, &address, &error));
	return address;
}

static void hosts_ports_and_prefixes_are_found(void **state)
{
	(void)state;
	struct address address = read_address("http://127.0.0.1:8080");
	assert_string_equal(address.host, "127.0.0.1");
	assert_string_equal(address.port, "8080");
	assert_string_equal(address.prefix, "");
	assert_false(address.secure);
	address = read_address("https://gpu.example/cluster/a/");
	assert_string_equal(address.port, "443");
	assert_string_equal(address.prefix, "/cluster/a");
	assert_true(address.secure);
	address = read_address("http://[::1]:90/");
	assert_string_equal(address.host, "::1");
	assert_string_equal(address.port, "90");
	assert_string_equal(address.authority, "[::1]:90");
	assert_string_equal(read_address("http://x").port, "80");
}

static void what_is_no_url_of_a_service_is_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",
		"gpu:8080",
		"ftp://x",
		"http://",
		"http://:80",
		"http://x:",
		"http://x:0",
		"http://x:65536",
		"http://x:8a",
		"http://[::1",
		"http://[::1]8",
		"http://a@b",
		"http://x/?q",
		"http://x\r\nA: b",
		"http://a b",
	};
	struct address address;
	struct error error = { 0 };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(address_read(wrong[i], &address, &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_ports_and_prefixes_are_found),
		cmocka_unit_test(what_is_no_url_of_a_service_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
