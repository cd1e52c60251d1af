/* id_token_test.c - tests of ID tokens: who is let in by a provider's word, and every forgery */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <openssl/core_names.h>

#include "api/auth/id_token.h"
#include "api/text/base64.h"
#include "base/memory.h"
#include "sign.h"

#define NOW_MS INT64_C(1000000)
#define RS256 "{\"alg\":\"RS256\",\"kid\":\"r\"}"
#define ES256 "{\"alg\":\"ES256\",\"kid\":\"e\"}"
#define EDDSA "{\"alg\":\"EdDSA\",\"kid\":\"d\"}"
#define BASE "\"iss\":\"https://id.example\",\"sub\":\"u-1\",\"preferred_username\":\"alice\""
#define TIMES "\"exp\":2000,\"iat\":900"
#define ALICE "{" BASE "," TIMES ",\"aud\":\"gpu\",\"nonce\":\"n-1\",\"groups\":[\"ml\",\"dev\"]}"

static EVP_PKEY *rsa, *ec, *ed;
static struct jwk_set keys;
static struct id_token token;
static struct error error;

static struct id_token_wanted wanted_now(void)
{
	return (struct id_token_wanted){ .issuer = "https://id.example",
		                         .client_id = "gpu",
		                         .nonce = "n-1",
		                         .user_claim = "preferred_username",
		                         .groups_claim = "groups",
		                         .now_ms = NOW_MS };
}

static void publish_number(struct buffer *json, const EVP_PKEY *key, const char *parameter)
{
	unsigned char bytes[1024];
	BIGNUM *number = NULL;

	assert_int_equal(EVP_PKEY_get_bn_param(key, parameter, &number), 1);
	int least = strcmp(parameter, OSSL_PKEY_PARAM_RSA_N) != 0 &&
	                    strcmp(parameter, OSSL_PKEY_PARAM_RSA_E) != 0
	                ? 32
	                : BN_num_bytes(number);
	assert_int_equal(BN_bn2binpad(number, bytes, least), least);
	base64url_write(json, bytes, (size_t)least);
	BN_free(number);
}

/* What a provider would publish. */
static char *publish(void)
{
	unsigned char bytes[32];
	size_t size = sizeof(bytes);
	struct buffer json = { 0 };

	buffer_text(&json, "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\",\"kid\":\"s\"},"
	                   "{\"kty\":\"RSA\",\"use\":\"enc\",\"kid\":\"x\"},"
	                   "{\"kty\":\"RSA\",\"use\":\"sig\",\"kid\":\"r\",\"n\":\"");
	publish_number(&json, rsa, OSSL_PKEY_PARAM_RSA_N);
	buffer_text(&json, "\",\"e\":\"");
	publish_number(&json, rsa, OSSL_PKEY_PARAM_RSA_E);
	buffer_text(&json, "\"},{\"kty\":\"EC\",\"crv\":\"P-256\",\"alg\":\"ES256\","
	                   "\"kid\":\"e\",\"x\":\"");
	publish_number(&json, ec, OSSL_PKEY_PARAM_EC_PUB_X);
	buffer_text(&json, "\",\"y\":\"");
	publish_number(&json, ec, OSSL_PKEY_PARAM_EC_PUB_Y);
	buffer_text(&json, "\"},{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"d\",\"x\":\"");
	assert_int_equal(EVP_PKEY_get_raw_public_key(ed, bytes, &size), 1);
	base64url_write(&json, bytes, size);
	buffer_text(&json, "\"}]}");
	return json.data;
}

static int keys_setup(void **state)
{
	(void)state;
	rsa = sign_rsa_key(2048);
	ec = sign_ec_key("P-256");
	ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	assert_non_null(ed);
	char *json = publish();
	bool ok = jwk_set_read(text_of(json), &keys, &error);
	if (!ok)
		print_error("%s\n", error.text);
	free(json);
	return ok && keys.count == 3 ? 0 : -1;
}

static int keys_teardown(void **state)
{
	(void)state;
	jwk_set_free(&keys);
	EVP_PKEY_free(rsa);
	EVP_PKEY_free(ec);
	EVP_PKEY_free(ed);
	return 0;
}

/* Takes the text over. */
static bool is_good(char *text, const struct id_token_wanted *wanted)
{
	id_token_free(&token);
	error_clear(&error);
	bool ok = id_token_read(text_of(text), &keys, wanted, &token, &error);
	assert_int_equal(ok, error.code == ERROR_NONE);
	free(text);
	return ok;
}

static bool is_let_in(const char *payload)
{
	struct id_token_wanted wanted = wanted_now();
	return is_good(sign_key(RS256, payload, rsa), &wanted);
}

static void a_token_by_each_published_key_names_user_and_groups(void **state)
{
	struct id_token_wanted wanted = wanted_now();
	(void)state;
	assert_true(is_good(sign_key(RS256, ALICE, rsa), &wanted));
	assert_string_equal(token.user, "alice");
	assert_string_equal(token.subject, "u-1");
	assert_int_equal(json_array_size(token.groups), 2);
	assert_true(is_good(sign_key(ES256, ALICE, ec), &wanted));
	assert_true(is_good(sign_key(EDDSA, ALICE, ed), &wanted));
	id_token_free(&token);
}

static void a_forged_token_is_refused(void **state)
{
	struct id_token_wanted wanted = wanted_now();
	EVP_PKEY *other = sign_rsa_key(2048);
	char *pem = sign_public_pem(rsa);
	(void)state;
	assert_false(is_good(sign_key(RS256, ALICE, other), &wanted));
	assert_false(
	    is_good(sign_bytes("{\"alg\":\"none\",\"kid\":\"r\"}", ALICE, "", 0), &wanted));
	assert_false(is_good(sign_bytes("{\"alg\":\"none\"}", ALICE, "x", 1), &wanted));
	/* The public key as the secret of an HMAC. */
	assert_false(is_good(sign_hmac("{\"alg\":\"HS256\",\"kid\":\"r\"}", ALICE, pem), &wanted));
	/* The set's own secret is no key of ours. */
	assert_false(
	    is_good(sign_hmac("{\"alg\":\"HS256\",\"kid\":\"s\"}", ALICE, "AAAA"), &wanted));
	/* A key for another algorithm than its own. */
	assert_false(is_good(sign_key("{\"alg\":\"ES256\",\"kid\":\"r\"}", ALICE, rsa), &wanted));
	assert_false(is_good(sign_key("{\"alg\":\"RS256\",\"kid\":\"e\"}", ALICE, rsa), &wanted));
	/* A key that the token brings along. */
	assert_false(is_good(
	    sign_key("{\"alg\":\"RS256\",\"jwk\":{\"kty\":\"RSA\"}}", ALICE, other), &wanted));
	free(pem);
	EVP_PKEY_free(other);
}

static void a_changed_token_is_refused(void **state)
{
	struct id_token_wanted wanted = wanted_now();
	char *text = sign_key(RS256, ALICE, rsa);
	size_t size = strlen(text);
	(void)state;
	for (size_t i = 0; i < size; i += 7) {
		char *changed = memory_text(text);
		changed[i] = changed[i] == 'A' ? 'B' : 'A';
		assert_false(is_good(changed, &wanted));
	}
	free(text);
}

static void a_token_for_others_is_refused(void **state)
{
	(void)state;
	assert_false(is_let_in("{" BASE "," TIMES ",\"aud\":\"other\",\"nonce\":\"n-1\"}"));
	assert_false(is_let_in("{" BASE "," TIMES ",\"nonce\":\"n-1\"}"));
	assert_false(
	    is_let_in("{" BASE "," TIMES ",\"aud\":\"gpu\",\"azp\":\"other\",\"nonce\":\"n-1\"}"));
	assert_false(is_let_in("{" BASE "," TIMES ",\"aud\":[\"gpu\",\"x\"],\"nonce\":\"n-1\"}"));
	assert_true(is_let_in("{" BASE "," TIMES
	                      ",\"aud\":[\"gpu\",\"x\"],\"azp\":\"gpu\",\"nonce\":\"n-1\"}"));
	assert_false(is_let_in("{\"iss\":\"https://evil.example\",\"sub\":\"u-1\","
	                       "\"preferred_username\":\"alice\"," TIMES
	                       ",\"aud\":\"gpu\",\"nonce\":\"n-1\"}"));
	id_token_free(&token);
}

static void a_token_of_another_sign_in_is_refused(void **state)
{
	struct id_token_wanted wanted = wanted_now();
	(void)state;
	assert_false(is_let_in("{" BASE "," TIMES ",\"aud\":\"gpu\",\"nonce\":\"n-2\"}"));
	assert_false(is_let_in("{" BASE "," TIMES ",\"aud\":\"gpu\"}"));
	wanted.nonce = NULL;
	assert_true(is_good(sign_key(RS256, ALICE, rsa), &wanted));
	id_token_free(&token);
}

static void an_expired_token_is_refused(void **state)
{
	struct id_token_wanted wanted = wanted_now();
	(void)state;
	wanted.now_ms = 2000000 + JWT_CLOCK_SKEW_MS;
	assert_false(is_good(sign_key(RS256, ALICE, rsa), &wanted));
	assert_false(is_let_in("{" BASE ",\"iat\":900,\"aud\":\"gpu\",\"nonce\":\"n-1\"}"));
	assert_false(
	    is_let_in("{" BASE "," TIMES ",\"nbf\":1500,\"aud\":\"gpu\",\"nonce\":\"n-1\"}"));
}

static void a_user_needs_a_name_that_is_no_token(void **state)
{
	struct id_token_wanted wanted = wanted_now();
#define REST TIMES ",\"aud\":\"gpu\",\"nonce\":\"n-1\",\"iss\":\"https://id.example\"}"
	(void)state;
	assert_false(is_let_in("{\"sub\":\"u\"," REST));
	assert_false(is_let_in("{\"preferred_username\":\"alice\"," REST));
	assert_false(is_let_in("{\"sub\":\"u\",\"preferred_username\":7," REST));
	assert_false(is_let_in("{\"sub\":\"u\",\"preferred_username\":\"\"," REST));
	assert_false(is_let_in("{\"sub\":\"u\",\"preferred_username\":\"a\\u001b[2J\"," REST));
	assert_false(is_let_in("{\"sub\":\"u\",\"preferred_username\":\"t-20df1e19dc55\"," REST));
	wanted.user_claim = "email";
#define MAIL "{\"sub\":\"u\",\"email\":\"a@b.example\",\"email_verified\":"
	assert_false(is_good(sign_key(RS256, MAIL "false," REST, rsa), &wanted));
	assert_true(is_good(sign_key(RS256, MAIL "true," REST, rsa), &wanted));
	id_token_free(&token);
}

static void groups_may_be_in_a_claim_of_a_claim(void **state)
{
	struct id_token_wanted wanted = wanted_now();
	(void)state;
#define NAMED "{\"sub\":\"u\",\"preferred_username\":\"alice\""
	wanted.groups_claim = "realm_access.roles";
	assert_true(is_good(
	    sign_key(RS256, NAMED ",\"realm_access\":{\"roles\":[\"ml\"]}," REST, rsa), &wanted));
	assert_string_equal(json_string_value(json_array_get(token.groups, 0)), "ml");
	assert_false(is_good(sign_key(RS256, NAMED ",\"realm_access\":{\"roles\":[7]}," REST, rsa),
	                     &wanted));
	id_token_free(&token);
}

static void the_first_rule_that_applies_counts(void **state)
{
	const char *const texts[] = { "admins=admin", "cn=ml,ou=groups=tenant:vision", "*=viewer",
		                      NULL };
	struct group_rules rules;
	json_t *groups = json_pack("[s,s]", "dev", "cn=ml,ou=groups");
	(void)state;
	assert_true(group_rules_read(texts, &rules, &error));
	const struct group_rule *rule = group_rules_find(&rules, groups);
	assert_int_equal(rule->role, ROLE_TENANT);
	assert_string_equal(rule->tenant, "vision");
	json_array_append_new(groups, json_string("admins"));
	assert_int_equal(group_rules_find(&rules, groups)->role, ROLE_ADMIN);
	json_array_clear(groups);
	assert_int_equal(group_rules_find(&rules, groups)->role, ROLE_VIEWER);
	rules.count = 2;
	assert_null(group_rules_find(&rules, groups));
	rules.count = 3;
	group_rules_free(&rules);
	json_decref(groups);
}

static void a_rule_that_makes_no_sense_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",          "ml",       "=admin",          "ml=",       "ml=boss",
		"ml=tenant", "ml=agent", "ml=admin:vision", "ml=gateway"
	};
	struct group_rule rule;
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		error_clear(&error);
		assert_false(group_rule_read(wrong[i], &rule, &error));
		assert_true(error.text[0] != '\0');
	}
}

static void a_weak_or_broken_key_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{}",
		"{\"keys\":{}}",
		"{\"keys\":[]}",
		"{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}",
		"{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
		"{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\"}]}",
		"{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQ==\",\"e\":\"AQAB\"}]}",
		"{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQAB\",\"y\":\"AQAB\"}]}",
		/* A point that is not on the curve. */
		"{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
		"\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\","
		"\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}]}",
		"{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AQAB\"}]}",
	};
	struct jwk_set set;
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		error_clear(&error);
		if (jwk_set_read(text_of(wrong[i]), &set, &error))
			fail_msg("%s was read", wrong[i]);
		assert_true(error.text[0] != '\0');
	}
}

static void a_key_with_the_exponent_one_is_refused(void **state)
{
	struct buffer json = { 0 };
	struct jwk_set set;
	(void)state;
	buffer_text(&json, "{\"keys\":[{\"kty\":\"RSA\",\"e\":\"AQ\",\"n\":\"");
	publish_number(&json, rsa, OSSL_PKEY_PARAM_RSA_N);
	buffer_text(&json, "\"}]}");
	assert_false(jwk_set_read(text_of(json.data), &set, &error));
	buffer_free(&json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_by_each_published_key_names_user_and_groups),
		cmocka_unit_test(a_forged_token_is_refused),
		cmocka_unit_test(a_changed_token_is_refused),
		cmocka_unit_test(a_token_for_others_is_refused),
		cmocka_unit_test(a_token_of_another_sign_in_is_refused),
		cmocka_unit_test(an_expired_token_is_refused),
		cmocka_unit_test(a_user_needs_a_name_that_is_no_token),
		cmocka_unit_test(groups_may_be_in_a_claim_of_a_claim),
		cmocka_unit_test(the_first_rule_that_applies_counts),
		cmocka_unit_test(a_rule_that_makes_no_sense_is_refused),
		cmocka_unit_test(a_weak_or_broken_key_is_refused),
		cmocka_unit_test(a_key_with_the_exponent_one_is_refused),
	};
	return cmocka_run_group_tests(tests, keys_setup, keys_teardown);
}
