/* proxy_test.c - tests of what proxies say about clients, and of networks */
#include "wire/net/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After those. */
#include <cmocka.h>

static struct ip_network network(const char *text)
{
	struct ip_network network;
	struct error error = { 0 };
	assert_true(network_read(text, &network, &error));
	return network;
}

static struct ip ip(const char *text)
{
	struct ip ip;
	assert_true(ip_read_text(text_of(text), &ip));
	return ip;
}

static bool has(const char *of, const char *address)
{
	struct ip_network one = network(of);
	struct ip other = ip(address);
	return ip_network_has(&one, &other);
}

static void networks_have_their_addresses(void **state)
{
	(void)state;
	assert_true(has("10.0.0.0/8", "10.255.0.1"));
	assert_false(has("10.0.0.0/8", "11.0.0.1"));
	assert_true(has("192.0.2.128/25", "192.0.2.200"));
	assert_false(has("192.0.2.128/25", "192.0.2.100"));
	assert_true(has("192.0.2.1", "192.0.2.1"));
	assert_true(has("192.0.2.1", "::ffff:192.0.2.1"));
	assert_true(has("2001:db8::/33", "2001:db8:7fff::1"));
	assert_false(has("2001:db8::/33", "2001:db8:8000::1"));
	assert_true(has("0.0.0.0/0", "203.0.113.9"));
	assert_false(has("0.0.0.0/0", "2001:db8::1"));
}

static void networks_that_are_none_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "",          "10.0.0",      "10.0.0.0/33",
		                           "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x",
		                           "::/129",    "proxy" };
	struct ip_network unused;
	struct error error = { 0 };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(network_read(bad[i], &unused, &error));
}

static void proxy_check(struct text bytes, enum proxy_result result, const char *source, int port)
{
	struct proxy_header header;
	char text[IP_TEXT_MAX] = "";
	assert_int_equal(proxy_read(bytes, &header), result);
	if (result != PROXY_DONE)
		return;
	if (header.has_source)
		ip_write(&header.source, text);
	assert_string_equal(text, source);
	assert_int_equal(header.port, port);
	for (size_t i = 0; i < header.size; i++)
		assert_int_equal(proxy_read((struct text){ bytes.data, i }, &header), PROXY_MORE);
}

static void headers_of_version_1_name_the_client(void **state)
{
	(void)state;
	proxy_check(TEXT("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET"), PROXY_DONE,
	            "192.0.2.1", 56324);
	proxy_check(TEXT("PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n"), PROXY_DONE, "2001:db8::1",
	            1);
	proxy_check(TEXT("PROXY UNKNOWN\r\n"), PROXY_DONE, "", 0);
	proxy_check(TEXT("PROXY UNKNOWN what ever\r\n"), PROXY_DONE, "", 0);
	proxy_check(TEXT("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\n"), PROXY_INVALID, "", 0);
	proxy_check(TEXT("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n"), PROXY_INVALID, "", 0);
	proxy_check(TEXT("PROXY TCP4 192.0.2.1 198.51.100.1 65536 443\r\n"), PROXY_INVALID, "", 0);
	proxy_check(TEXT("PROXY TCP4 192.0.2.1  198.51.100.1 1 443\r\n"), PROXY_INVALID, "", 0);
	proxy_check(TEXT("PROXY TCP4 192.0.2.1 198.51.100.1 1\r\n"), PROXY_INVALID, "", 0);
	proxy_check(TEXT("GET / HTTP/1.1\r\n"), PROXY_INVALID, "", 0);
}

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

static void headers_of_version_2_name_the_client(void **state)
{
	(void)state;
	proxy_check(TEXT(SIGNATURE "\x21\x11\0\x0c"
	                           "\xc0\0\2\1\xc6\x33\x64\1\xdc\4\1\xbbGET"),
	            PROXY_DONE, "192.0.2.1", 56324);
	proxy_check(TEXT(SIGNATURE "\x21\x21\0\x24"
	                           "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
	                           "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2"
	                           "\0\7\0\x50"),
	            PROXY_DONE, "2001:db8::1", 7);
	proxy_check(TEXT(SIGNATURE "\x20\0\0\0"), PROXY_DONE, "", 0);
	proxy_check(TEXT(SIGNATURE "\x20\x11\0\x0c"
	                           "\xc0\0\2\1\xc6\x33\x64\1\xdc\4\1\xbb"),
	            PROXY_DONE, "", 0);
	proxy_check(TEXT(SIGNATURE "\x22\x11\0\x0c"), PROXY_INVALID, "", 0);
	proxy_check(TEXT(SIGNATURE "\x11\x11\0\x0c"), PROXY_INVALID, "", 0);
	proxy_check(TEXT(SIGNATURE "\x21\x11\0\x0b"), PROXY_INVALID, "", 0);
	proxy_check(TEXT(SIGNATURE "\x21\x11\xff\xff"), PROXY_INVALID, "", 0);
}

static void check_client(enum forwarded_header kind, const char *value, const char *peer,
                         const char *client)
{
	struct ip_network trusted[] = { network("10.0.0.0/8"), network("fd00::/8") };
	struct proxies proxies = { .networks = trusted, .count = 2, .forwarded = kind };
	struct header headers[] = {
		{ TEXT("x-forwarded-for"),
		  kind == FORWARDED_FOR ? text_of(value) : TEXT("203.0.113.66") },
		{ TEXT("forwarded"),
		  kind == FORWARDED_RFC7239 ? text_of(value) : TEXT("for=203.0.113.66") },
	};
	struct ip from = ip(peer);
	struct ip found = proxies_client(&proxies, &(struct headers){ headers, 2 }, &from);
	char text[IP_TEXT_MAX];
	ip_write(&found, text);
	assert_string_equal(text, client);
}

static void the_last_address_that_is_no_proxy_is_the_client(void **state)
{
	(void)state;
	check_client(FORWARDED_FOR, "192.0.2.1", "10.0.0.1", "192.0.2.1");
	check_client(FORWARDED_FOR, "203.0.113.7, 192.0.2.1", "10.0.0.1", "192.0.2.1");
	check_client(FORWARDED_FOR, "192.0.2.1, 10.0.0.2", "10.0.0.1", "192.0.2.1");
	check_client(FORWARDED_FOR, "192.0.2.1:4711", "10.0.0.1", "192.0.2.1");
	check_client(FORWARDED_FOR, "2001:db8::1", "fd00::1", "2001:db8::1");
	check_client(FORWARDED_RFC7239, "for=192.0.2.1;proto=http", "10.0.0.1", "192.0.2.1");
	check_client(FORWARDED_RFC7239, "for=1.2.3.4, For=\"[2001:db8::1]:80\"", "10.0.0.1",
	             "2001:db8::1");
}

static void others_than_proxies_are_not_believed(void **state)
{
	(void)state;
	check_client(FORWARDED_FOR, "192.0.2.1", "203.0.113.5", "203.0.113.5");
	check_client(FORWARDED_FOR, "192.0.2.9, 192.0.2.1", "10.0.0.1", "192.0.2.1");
	check_client(FORWARDED_FOR, "unknown", "10.0.0.1", "10.0.0.1");
	check_client(FORWARDED_FOR, "", "10.0.0.1", "10.0.0.1");
	check_client(FORWARDED_RFC7239, "for=_hidden", "10.0.0.1", "10.0.0.1");
	check_client(FORWARDED_NONE, "", "10.0.0.1", "10.0.0.1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(networks_have_their_addresses),
		cmocka_unit_test(networks_that_are_none_are_refused),
		cmocka_unit_test(headers_of_version_1_name_the_client),
		cmocka_unit_test(headers_of_version_2_name_the_client),
		cmocka_unit_test(the_last_address_that_is_no_proxy_is_the_client),
		cmocka_unit_test(others_than_proxies_are_not_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
