/* gate_test.c - tests of the gate: hosts, origins, sign-in, rates */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/auth/failures.h"
#include "api/auth/gate.h"
#include "base/log.h"
#include "sign.h"

#define SECRET "a secret of more than thirty-two bytes"

static struct identity who;
static struct gate_refusal refusal;
static struct error error;

/* A request as the wire hands it over. */
struct request {
	struct exchange exchange;
	struct header headers[4];
};

static void add_header(struct request *request, const char *name, const char *value)
{
	if (value)
		request->headers[request->exchange.headers.count++] =
		    (struct header){ text_of(name), text_of(value) };
	request->exchange.headers.of = request->headers;
}

static bool gate_verify(struct gate *gate, const char *host, const char *origin, const char *token,
                        int64_t now_ms)
{
	struct request request = { .exchange = { .authority = text_of(host),
		                                 .peer_address = TEXT("192.0.2.1"),
		                                 .received_ms = now_ms } };
	char bearer[2048];

	snprintf(bearer, sizeof(bearer), "Bearer %s", token ? token : "");
	add_header(&request, "origin", origin);
	add_header(&request, "authorization", token ? bearer : NULL);
	memset(&refusal, 0, sizeof(refusal));
	return gate_check(gate, &request.exchange, now_ms, &who, &refusal);
}

static struct gate *open_gate(const char *const *hosts, const char *const *origins)
{
	struct gate *gate = gate_new(
	    &(struct gate_settings){ .open = true, .hosts = hosts, .origins = origins }, &error);
	assert_non_null(gate);
	return gate;
}

static struct gate *closed_gate(void)
{
	static const struct gate_key key = { "", "HS256", SECRET };
	struct gate *gate =
	    gate_new(&(struct gate_settings){ .keys = &key, .key_count = 1 }, &error);
	assert_non_null(gate);
	return gate;
}

static void an_open_service_answers_to_loopback_names_alone(void **state)
{
	(void)state;
	struct gate *gate = open_gate(NULL, NULL);
	static const char *const good[] = { "localhost", "LocalHost:8080", "127.0.0.1:8080",
		                            "127.1.2.3", "[::1]:8080",     "[::1]" };
	static const char *const bad[] = { "evil.example",     "127.0.0.1.evil.example",
		                           "localhost.evil",   "127.evil.example.org",
		                           "10.0.0.1",         "",
		                           "127.0.0.1.",       "[::2]:8080",
		                           "127.0.0.1:8080:80" };

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(gate_verify(gate, good[i], NULL, NULL, 0));
	assert_int_equal(who.role, ROLE_ADMIN);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_false(gate_verify(gate, bad[i], NULL, NULL, 0));
		assert_int_equal(refusal.status, 403);
	}
	gate_free(gate);
}

static void hosts_that_are_listed_are_answered_to(void **state)
{
	(void)state;
	const char *hosts[] = { "gpu.example", "other.example:81", NULL };
	struct gate *gate = open_gate(hosts, NULL);

	assert_true(gate_verify(gate, "gpu.example:8080", NULL, NULL, 0));
	assert_true(gate_verify(gate, "GPU.example", NULL, NULL, 0));
	assert_true(gate_verify(gate, "other.example:81", NULL, NULL, 0));
	assert_false(gate_verify(gate, "other.example:82", NULL, NULL, 0));
	gate_free(gate);
}

static void pages_of_other_origins_are_refused(void **state)
{
	(void)state;
	const char *origins[] = { "https://board.example", NULL };
	struct gate *gate = open_gate(NULL, origins);

	assert_true(gate_verify(gate, "localhost:8080", "http://localhost:8080", NULL, 0));
	assert_true(gate_verify(gate, "localhost:8080", "https://board.example", NULL, 0));
	assert_false(gate_verify(gate, "localhost:8080", "http://localhost:3000", NULL, 0));
	assert_false(gate_verify(gate, "localhost:8080", "https://evil.example", NULL, 0));
	assert_false(gate_verify(gate, "localhost:8080", "null", NULL, 0));
	assert_false(gate_verify(gate, "localhost", "https://board.example.evil", NULL, 0));
	assert_int_equal(refusal.status, 403);
	gate_free(gate);
}

static void a_page_of_another_site_cannot_make_a_browser_ask(void **state)
{
	(void)state;
	static const struct {
		const char *site;
		bool good;
	} sites[] = { { "same-origin", true },
		      { "none", true },
		      { NULL, true },
		      { "cross-site", false },
		      { "same-site", false } };
	struct gate *gate = open_gate(NULL, NULL);

	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		struct request request = { .exchange = { .authority = TEXT("localhost"),
			                                 .peer_address = TEXT("192.0.2.1") } };
		add_header(&request, "sec-fetch-site", sites[i].site);
		assert_int_equal(gate_check(gate, &request.exchange, 0, &who, &refusal),
		                 sites[i].good);
	}
	gate_free(gate);
}

static void without_a_token_nobody_is_let_in(void **state)
{
	(void)state;
	struct gate *gate = closed_gate();

	assert_false(gate_verify(gate, "any.example", NULL, NULL, 0));
	assert_int_equal(refusal.status, 401);
	assert_string_equal(refusal.code, "unauthenticated");
	assert_false(gate_verify(gate, "any.example", NULL, "", 0));
	assert_int_equal(refusal.status, 401);
	gate_free(gate);
}

static int64_t find_lab(void *context, const char *name)
{
	(void)context;
	return strcmp(name, "lab") == 0 ? 7 : 0;
}

static bool check_claims(struct gate *gate, const char *claims, int64_t now_ms)
{
	char *token = sign_hmac("{\"alg\":\"HS256\"}", claims, SECRET);
	bool ok = gate_verify(gate, "x", NULL, token, now_ms);
	free(token);
	return ok;
}

static void claims_say_who_it_is(void **state)
{
	(void)state;
	struct gate *gate = closed_gate();

	gate_use_tenants(gate, &(struct gate_tenants){ .find = find_lab });
	assert_true(check_claims(gate, "{\"exp\":9,\"role\":\"admin\",\"sub\":\"eve\"}", 0));
	assert_int_equal(who.role, ROLE_ADMIN);
	assert_string_equal(who.name, "jwt eve");
	assert_true(
	    check_claims(gate, "{\"exp\":9,\"role\":\"tenant\",\"tenant\":\"tenant-3\"}", 0));
	assert_int_equal(who.tenant_id, 3);
	assert_true(check_claims(gate, "{\"exp\":9,\"role\":\"viewer\",\"tenant\":\"lab\"}", 0));
	assert_int_equal(who.tenant_id, 7);
	assert_true(check_claims(gate, "{\"exp\":9,\"role\":\"agent\",\"node\":\"n1\"}", 0));
	assert_string_equal(who.node, "n1");
	assert_false(check_claims(gate, "{\"exp\":9,\"role\":\"tenant\"}", 0));
	assert_false(
	    check_claims(gate, "{\"exp\":9,\"role\":\"tenant\",\"tenant\":\"elsewhere\"}", 0));
	assert_false(check_claims(gate, "{\"exp\":9,\"role\":\"root\"}", 0));
	assert_false(check_claims(gate, "{\"exp\":9}", 0));
	assert_int_equal(refusal.status, 401);
	gate_free(gate);
}

static void a_token_that_was_good_expires_all_the_same(void **state)
{
	(void)state;
	struct gate *gate = closed_gate();
	const char *claims = "{\"exp\":100,\"role\":\"admin\"}";

	assert_true(check_claims(gate, claims, 99000));
	assert_true(check_claims(gate, claims, 99999));
	assert_false(check_claims(gate, claims, 106000));
	gate_free(gate);
}

static void a_key_that_was_taken_away_lets_nobody_in(void **state)
{
	(void)state;
	struct gate *gate = closed_gate();
	const char *claims = "{\"exp\":100,\"role\":\"admin\"}";
	static const struct gate_key other = { "", "HS256", SECRET "other" };

	assert_true(check_claims(gate, claims, 1000));
	assert_true(
	    gate_reload(gate, &(struct gate_settings){ .keys = &other, .key_count = 1 }, &error));
	assert_false(check_claims(gate, claims, 1000));
	static const struct gate_key bad = { "", "HS256", "short" };
	assert_false(
	    gate_reload(gate, &(struct gate_settings){ .keys = &bad, .key_count = 1 }, &error));
	gate_free(gate);
}

static void an_api_token_is_let_in_until_it_is_removed_or_expires(void **state)
{
	(void)state;
	struct gate *gate = closed_gate();
	struct gate_token token = { .identity = { .role = ROLE_TENANT, .tenant_id = 4 },
		                    .expires_ms = 5000 };
	char text[96], other[96];
	struct gate_token unknown = { 0 };

	assert_true(gate_make_token(&token, text, &error));
	assert_true(gate_make_token(&unknown, other, &error));
	assert_int_equal(strlen(text), 4 + 43);
	assert_string_not_equal(text, other);
	gate_put_token(gate, &token);
	assert_true(gate_verify(gate, "x", NULL, text, 1000));
	assert_int_equal(who.tenant_id, 4);
	assert_false(gate_verify(gate, "x", NULL, other, 1000));
	assert_false(gate_verify(gate, "x", NULL, token.hash, 1000));
	assert_false(gate_verify(gate, "x", NULL, text, 5000));
	assert_true(gate_remove_token(gate, token.id));
	assert_false(gate_remove_token(gate, token.id));
	assert_false(gate_verify(gate, "x", NULL, text, 1000));
	gate_free(gate);
}

static void a_token_is_read_back_as_it_was_kept(void **state)
{
	(void)state;
	struct gate_token token = { .identity = { .role = ROLE_AGENT, .node = "n\"1" },
		                    .created_ms = 12,
		                    .note = "for the rack" },
			  back;
	char text[96];
	struct buffer json = { 0 };

	assert_true(gate_make_token(&token, text, &error));
	gate_token_write(&token, &json);
	assert_null(strstr(json.data, text));
	assert_true(gate_token_read(json.data, &back, &error));
	assert_string_equal(back.id, token.id);
	assert_string_equal(back.hash, token.hash);
	assert_string_equal(back.identity.node, "n\"1");
	assert_string_equal(back.identity.name, token.identity.name);
	assert_int_equal(back.identity.role, ROLE_AGENT);
	assert_int_equal(back.created_ms, 12);
	assert_string_equal(back.note, "for the rack");
	assert_false(
	    gate_token_read("{\"id\":\"t-1\",\"hash\":\"00\",\"role\":\"admin\"}", &back, &error));
	buffer_free(&json);
}

static void a_client_that_asks_too_often_is_told_when_to_come_back(void **state)
{
	(void)state;
	struct gate *gate =
	    gate_new(&(struct gate_settings){ .open = true, .rate_per_s = 2, .burst = 3 }, &error);

	for (int i = 0; i < 3; i++)
		assert_true(gate_verify(gate, "localhost", NULL, NULL, 0));
	assert_false(gate_verify(gate, "localhost", NULL, NULL, 0));
	assert_int_equal(refusal.status, 429);
	assert_int_equal(refusal.retry_after_s, 1);
	assert_false(gate_verify(gate, "localhost", NULL, NULL, 499));
	assert_true(gate_verify(gate, "localhost", NULL, NULL, 500));
	assert_false(gate_verify(gate, "localhost", NULL, NULL, 500));
	gate_free(gate);
}

static void who_fails_to_sign_in_again_and_again_is_not_listened_to(void **state)
{
	(void)state;
	struct gate *gate = closed_gate();

	for (int i = 0; i < 200; i++) {
		assert_false(gate_verify(gate, "x", NULL, "a.b.c", 0));
		assert_int_equal(refusal.status, 401);
	}
	assert_false(gate_verify(gate, "x", NULL, "a.b.c", 0));
	assert_int_equal(refusal.status, 429);
	assert_false(gate_verify(gate, "x", NULL, "a.b.c", 2000));
	assert_int_equal(refusal.status, 401);
	gate_free(gate);
}

/* A gate for tokens that a private key signs. */
static struct gate *public_key_gate(EVP_PKEY *key)
{
	char *pem = sign_public_pem(key);
	struct gate_key public_key = { "", "ES256", pem };
	struct gate *gate =
	    gate_new(&(struct gate_settings){ .keys = &public_key, .key_count = 1 }, &error);

	assert_non_null(gate);
	free(pem);
	return gate;
}

static bool check_signed(struct gate *gate, EVP_PKEY *key, const char *subject, uint16_t port,
                         int64_t now_ms)
{
	char claims[160], bearer[2048];
	snprintf(claims, sizeof(claims), "{\"exp\":900,\"role\":\"admin\",\"sub\":\"%s\"}",
	         subject);
	char *token = sign_key("{\"alg\":\"ES256\"}", claims, key);
	struct request request = { .exchange = { .authority = TEXT("x"),
		                                 .peer_address = TEXT("192.0.2.1"),
		                                 .peer_port = port,
		                                 .received_ms = now_ms } };

	snprintf(bearer, sizeof(bearer), "Bearer %s", token);
	free(token);
	add_header(&request, "authorization", bearer);
	return gate_check(gate, &request.exchange, now_ms, &who, &refusal);
}

/* Until no more of them are checked. */
static void flood(struct gate *gate, EVP_PKEY *forger, uint16_t port)
{
	for (int i = 0; i < 1000; i++) {
		assert_false(check_signed(gate, forger, "mallory", port, 0));
		if (refusal.status == 429)
			return;
		assert_int_equal(refusal.status, 401);
	}
	fail_msg("forged tokens are checked without end");
}

static void forged_tokens_keep_no_good_one_out(void **state)
{
	(void)state;
	EVP_PKEY *key = sign_ec_key("P-256"), *forger = sign_ec_key("P-256");
	struct gate *gate = public_key_gate(key);

	assert_true(check_signed(gate, key, "alice", 1, 0));
	flood(gate, forger, 1);
	/* By another connection of the same address. */
	assert_true(check_signed(gate, key, "bob", 2, 0));
	/* By the connection of the forger: a new token of an account that was let in before. */
	assert_true(check_signed(gate, key, "alice", 1, 0));
	assert_false(check_signed(gate, key, "carol", 1, 0));
	assert_int_equal(refusal.status, 429);
	/* And API tokens anywhere. */
	struct gate_token token = { .identity = { .role = ROLE_VIEWER } };
	char text[96];
	assert_true(gate_make_token(&token, text, &error));
	gate_put_token(gate, &token);
	assert_true(gate_verify(gate, "x", NULL, text, 0));
	EVP_PKEY_free(key);
	EVP_PKEY_free(forger);
	gate_free(gate);
}

static void bad_tokens_of_an_address_keep_no_good_one_out(void **state)
{
	(void)state;
	struct gate *gate = closed_gate();
	const char *good = "{\"exp\":100,\"role\":\"admin\",\"sub\":\"%d\"}";
	char claims[160];

	for (int i = 0; i < 2000; i++) {
		char *forged = sign_hmac("{\"alg\":\"HS256\"}", "{\"exp\":100,\"role\":\"admin\"}",
		                         SECRET "?");
		assert_false(gate_verify(gate, "x", NULL, forged, 0));
		free(forged);
		if (i % 100 != 0)
			continue;
		snprintf(claims, sizeof(claims), good, i);
		assert_true(check_claims(gate, claims, 0));
	}
	assert_false(gate_verify(gate, "x", NULL, "gst_unknown", 0));
	assert_int_equal(refusal.status, 429);
	gate_free(gate);
}

static void failures_are_counted_by_method_and_reason(void **state)
{
	(void)state;
	struct gate *gate = closed_gate();
	struct failure_summary summaries[FAILURE_SUMMARIES_MAX];
	struct buffer text = { 0 };

	log_set_verbosity(0);
	gate_verify(gate, "x", NULL, NULL, 0);
	gate_verify(gate, "x", NULL, "gst_unknown", 0);
	gate_verify(gate, "x", NULL, "gst_unknown", 0);
	check_claims(gate, "{\"exp\":1,\"role\":\"admin\"}", 100000);
	assert_int_equal(failures_take(gate_failures(gate), summaries), 1);
	assert_string_equal(summaries[0].address, "192.0.2.1");
	failure_summary_print(&summaries[0], &text);
	assert_string_equal(text.data, "3 failed: token unknown 2, jwt expired 1");
	assert_int_equal(failures_take(gate_failures(gate), summaries), 0);
	buffer_clear(&text);
	failures_print(gate_failures(gate), &text);
	assert_non_null(strstr(text.data, "{method=\"none\",reason=\"missing\"} 1\n"));
	assert_non_null(strstr(text.data, "{method=\"token\",reason=\"unknown\"} 2\n"));
	buffer_free(&text);
	gate_free(gate);
}

static void an_identity_is_admitted_as_long_as_its_credential_holds(void **state)
{
	(void)state;
	struct gate *gate = closed_gate();
	struct gate_token token = { .identity = { .role = ROLE_VIEWER }, .expires_ms = 5000 };
	static const struct gate_key other = { "", "HS256", SECRET "other" };
	char text[96];
	const char *reason;

	assert_true(gate_make_token(&token, text, &error));
	gate_put_token(gate, &token);
	assert_true(gate_verify(gate, "x", NULL, text, 0));
	assert_true(gate_admits(gate, &who, 4999, &reason));
	assert_false(gate_admits(gate, &who, 5000, &reason));
	gate_remove_token(gate, token.id);
	assert_false(gate_admits(gate, &who, 0, &reason));
	assert_string_equal(reason, "the token was revoked");
	assert_true(check_claims(gate, "{\"exp\":9,\"role\":\"admin\"}", 0));
	assert_true(gate_admits(gate, &who, 8999, &reason));
	assert_false(gate_admits(gate, &who, 9000, &reason));
	assert_true(
	    gate_reload(gate, &(struct gate_settings){ .keys = &other, .key_count = 1 }, &error));
	assert_false(gate_admits(gate, &who, 0, &reason));
	gate_free(gate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_open_service_answers_to_loopback_names_alone),
		cmocka_unit_test(hosts_that_are_listed_are_answered_to),
		cmocka_unit_test(pages_of_other_origins_are_refused),
		cmocka_unit_test(a_page_of_another_site_cannot_make_a_browser_ask),
		cmocka_unit_test(without_a_token_nobody_is_let_in),
		cmocka_unit_test(claims_say_who_it_is),
		cmocka_unit_test(a_token_that_was_good_expires_all_the_same),
		cmocka_unit_test(a_key_that_was_taken_away_lets_nobody_in),
		cmocka_unit_test(an_api_token_is_let_in_until_it_is_removed_or_expires),
		cmocka_unit_test(a_token_is_read_back_as_it_was_kept),
		cmocka_unit_test(a_client_that_asks_too_often_is_told_when_to_come_back),
		cmocka_unit_test(who_fails_to_sign_in_again_and_again_is_not_listened_to),
		cmocka_unit_test(forged_tokens_keep_no_good_one_out),
		cmocka_unit_test(bad_tokens_of_an_address_keep_no_good_one_out),
		cmocka_unit_test(failures_are_counted_by_method_and_reason),
		cmocka_unit_test(an_identity_is_admitted_as_long_as_its_credential_holds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
