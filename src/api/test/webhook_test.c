/* webhook_test.c - tests of where notifications may go */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/notify/smtp.h"
#include "api/notify/webhook.h"

static struct webhook_url url;
static struct error error;

static void a_url_is_taken_apart(void **state)
{
	(void)state;
	assert_true(webhook_url_read("https://example.org/a/b?c=d", &url, &error));
	assert_string_equal(url.host, "example.org");
	assert_string_equal(url.target, "/a/b?c=d");
	assert_int_equal(url.port, 443);
	assert_true(url.tls);
	assert_true(webhook_url_read("http://example.org:8080", &url, &error));
	assert_string_equal(url.target, "/");
	assert_int_equal(url.port, 8080);
	assert_false(url.tls);
	assert_true(webhook_url_read("http://[::1]:81?x", &url, &error));
	assert_string_equal(url.host, "::1");
	assert_string_equal(url.target, "/?x");
	assert_int_equal(url.port, 81);
}

static void what_could_say_more_than_a_url_is_refused(void **state)
{
	static const char *const bad[] = { "ftp://example.org/",
		                           "example.org",
		                           "http://",
		                           "http:///path",
		                           "http://user:password@example.org/",
		                           "http://example.org/a b",
		                           "http://example.org/\r\nHost: x",
		                           "http://example.org:0/",
		                           "http://example.org:70000/",
		                           "http://example.org:-1/",
		                           "http://example.org:8x/",
		                           "http://[::1/",
		                           "http://[::1]x/",
		                           "http://example.org/#part",
		                           "http://exa\xc3\xa4mple.org/" };
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(webhook_url_read(bad[i], &url, &error));
}

static void an_address_of_mail_needs_no_quoting(void **state)
{
	(void)state;
	assert_true(smtp_address_check("name.of+tag@example.org", &error));
	assert_false(smtp_address_check("name", &error));
	assert_false(smtp_address_check("@example.org", &error));
	assert_false(smtp_address_check("name@", &error));
	assert_false(smtp_address_check("a@b@c", &error));
	assert_false(smtp_address_check("a b@example.org", &error));
	assert_false(smtp_address_check("a@example.org>\r\nRCPT TO:<x@y", &error));
}

static void private_addresses_are_told_from_public_ones(void **state)
{
	static const char *const private_ones[] = {
		"127.0.0.1",       "10.1.2.3",   "192.168.0.1",  "172.16.0.1", "169.254.1.1",
		"0.0.0.0",         "100.64.0.1", "::1",          "fe80::1",    "fd00::1",
		"::ffff:10.0.0.1", "224.0.0.1",  "2002:7f00:1::"
	};
	(void)state;
	for (size_t i = 0; i < sizeof(private_ones) / sizeof(*private_ones); i++) {
		char target[64];
		bool is_ipv6 = strchr(private_ones[i], ':') != NULL;
		snprintf(target, sizeof(target), "http://%s%s%s:9/", is_ipv6 ? "[" : "",
		         private_ones[i], is_ipv6 ? "]" : "");
		struct webhook webhook = { .url = target,
			                   .event = "test",
			                   .body = TEXT("{}"),
			                   .only_public = true,
			                   .timeout_ms = 60000 };
		assert_false(webhook_post(&webhook, &error));
		assert_int_equal(error.code, ERROR_FORBIDDEN);
	}
}

static void a_password_is_not_sent_in_the_clear(void **state)
{
	(void)state;
	assert_false(smtp_send(&(struct smtp_mail){ .host = "127.0.0.1",
	                                            .security = SMTP_PLAIN,
	                                            .user = "u",
	                                            .password = "hunter2",
	                                            .from = "a@example.org",
	                                            .to = "b@example.org" },
	                       &error));
	assert_int_equal(error.code, ERROR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_is_taken_apart),
		cmocka_unit_test(what_could_say_more_than_a_url_is_refused),
		cmocka_unit_test(an_address_of_mail_needs_no_quoting),
		cmocka_unit_test(private_addresses_are_told_from_public_ones),
		cmocka_unit_test(a_password_is_not_sent_in_the_clear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
