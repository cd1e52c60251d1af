/* jwt_test.c - tests of JSON Web Tokens: what is let in, and every way to forge one */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/auth/jwt.h"
#include "api/text/base64.h"
#include "sign.h"

#define SECRET "a secret of more than thirty-two bytes"
#define HS256 "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"
#define RS256 "{\"alg\":\"RS256\"}"
#define ES256 "{\"alg\":\"ES256\"}"
#define ALICE                                                                                      \
	"{\"sub\":\"alice\",\"role\":\"tenant\",\"tenant\":\"tenant-3\",\"exp\":2000,"             \
	"\"aud\":\"gpu\",\"iss\":\"us\"}"

static const struct jwt_wanted at_1000_s = { .now_ms = 1000000 };
static struct jwt_claims claims;
static struct error error;

static struct jwt_key *jwt_key_of(const char *id, const char *algorithm, const char *material)
{
	struct jwt_key *key = jwt_key_new(id, algorithm, material, &error);
	assert_non_null(key);
	return key;
}

/* Takes the token over. */
static bool verify(char *token, struct jwt_key *key, const struct jwt_wanted *wanted)
{
	error_clear(&error);
	bool ok = jwt_verify(text_of(token), &key, 1, wanted, &claims, &error);
	assert_int_equal(ok, error.code == ERROR_NONE);
	free(token);
	return ok;
}

static void a_token_of_each_algorithm_is_let_in(void **state)
{
	(void)state;
	EVP_PKEY *rsa = sign_rsa_key(2048), *ec = sign_ec_key("P-256");
	char *rsa_pem = sign_public_pem(rsa), *ec_pem = sign_public_pem(ec);
	struct jwt_key *hmac_key = jwt_key_of("", "HS256", SECRET);
	struct jwt_key *rsa_key = jwt_key_of("", "RS256", rsa_pem);
	struct jwt_key *ec_key = jwt_key_of("", "ES256", ec_pem);

	assert_true(verify(sign_hmac(HS256, ALICE, SECRET), hmac_key, &at_1000_s));
	assert_string_equal(claims.subject, "alice");
	assert_string_equal(claims.role, "tenant");
	assert_string_equal(claims.tenant, "tenant-3");
	assert_string_equal(claims.node, "");
	assert_int_equal(claims.expires_ms, 2000000);
	assert_true(verify(sign_key(RS256, ALICE, rsa), rsa_key, &at_1000_s));
	assert_true(verify(sign_key(ES256, ALICE, ec), ec_key, &at_1000_s));
	jwt_key_free(hmac_key);
	jwt_key_free(rsa_key);
	jwt_key_free(ec_key);
	free(rsa_pem);
	free(ec_pem);
	EVP_PKEY_free(rsa);
	EVP_PKEY_free(ec);
}

static void a_signature_of_another_key_is_refused(void **state)
{
	(void)state;
	EVP_PKEY *ours = sign_rsa_key(2048), *theirs = sign_rsa_key(2048);
	EVP_PKEY *ec = sign_ec_key("P-256"), *other_ec = sign_ec_key("P-256");
	char *pem = sign_public_pem(ours), *ec_pem = sign_public_pem(ec);
	struct jwt_key *hmac_key = jwt_key_of("", "HS256", SECRET),
		       *rsa_key = jwt_key_of("", "RS256", pem);
	struct jwt_key *ec_key = jwt_key_of("", "ES256", ec_pem);

	assert_false(verify(sign_hmac(HS256, ALICE, SECRET "!"), hmac_key, &at_1000_s));
	assert_false(verify(sign_key(RS256, ALICE, theirs), rsa_key, &at_1000_s));
	assert_false(verify(sign_key(ES256, ALICE, other_ec), ec_key, &at_1000_s));
	assert_false(verify(sign_bytes(ES256, ALICE, (char[64]){ 0 }, 64), ec_key, &at_1000_s));
	jwt_key_free(hmac_key);
	jwt_key_free(rsa_key);
	jwt_key_free(ec_key);
	free(pem);
	free(ec_pem);
	EVP_PKEY_free(ours);
	EVP_PKEY_free(theirs);
	EVP_PKEY_free(ec);
	EVP_PKEY_free(other_ec);
}

static void none_is_no_algorithm(void **state)
{
	(void)state;
	struct jwt_key *key = jwt_key_of("", "HS256", SECRET);
	static const char *const headers[] = { "{\"alg\":\"none\"}", "{\"alg\":\"None\"}",
		                               "{\"alg\":\"\"}", "{\"alg\":null}", "{}" };

	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
		assert_false(verify(sign_bytes(headers[i], ALICE, "", 0), key, &at_1000_s));
		assert_false(verify(sign_bytes(headers[i], ALICE, "x", 1), key, &at_1000_s));
		assert_false(verify(sign_hmac(headers[i], ALICE, SECRET), key, &at_1000_s));
	}
	jwt_key_free(key);
}

static void a_public_key_is_not_taken_for_the_secret_of_an_hmac(void **state)
{
	(void)state;
	EVP_PKEY *rsa = sign_rsa_key(2048);
	char *pem = sign_public_pem(rsa);
	struct jwt_key *key = jwt_key_of("", "RS256", pem);

	assert_false(verify(sign_hmac(HS256, ALICE, pem), key, &at_1000_s));
	assert_false(verify(sign_hmac(RS256, ALICE, pem), key, &at_1000_s));
	assert_null(jwt_key_new("", "HS256", pem, &error));
	jwt_key_free(key);
	free(pem);
	EVP_PKEY_free(rsa);
}

static void the_algorithm_must_be_that_of_the_key(void **state)
{
	(void)state;
	struct jwt_key *key = jwt_key_of("", "HS256", SECRET);

	assert_false(verify(sign_hmac("{\"alg\":\"HS384\"}", ALICE, SECRET), key, &at_1000_s));
	assert_false(verify(sign_hmac(RS256, ALICE, SECRET), key, &at_1000_s));
	assert_false(verify(sign_hmac("{\"alg\":\"hs256\"}", ALICE, SECRET), key, &at_1000_s));
	jwt_key_free(key);
}

static void extensions_that_are_critical_are_refused(void **state)
{
	(void)state;
	struct jwt_key *key = jwt_key_of("", "HS256", SECRET);

	assert_false(verify(sign_hmac("{\"alg\":\"HS256\",\"crit\":[\"b64\"]}", ALICE, SECRET), key,
	                    &at_1000_s));
	assert_false(
	    verify(sign_hmac("{\"alg\":\"HS256\",\"crit\":[]}", ALICE, SECRET), key, &at_1000_s));
	jwt_key_free(key);
}

static void a_key_id_chooses_the_key(void **state)
{
	(void)state;
	struct jwt_key *keys[] = { jwt_key_of("old", "HS256", SECRET "old"),
		                   jwt_key_of("new", "HS256", SECRET "new") };
	char *old = sign_hmac("{\"alg\":\"HS256\",\"kid\":\"old\"}", ALICE, SECRET "old");
	char *new = sign_hmac("{\"alg\":\"HS256\",\"kid\":\"new\"}", ALICE, SECRET "new");
	char *swapped = sign_hmac("{\"alg\":\"HS256\",\"kid\":\"new\"}", ALICE, SECRET "old");
	char *without = sign_hmac(HS256, ALICE, SECRET "old");
	char *strange = sign_hmac("{\"alg\":\"HS256\",\"kid\":[1]}", ALICE, SECRET "old");

	assert_true(jwt_verify(text_of(old), keys, 2, &at_1000_s, &claims, &error));
	assert_true(jwt_verify(text_of(new), keys, 2, &at_1000_s, &claims, &error));
	assert_false(jwt_verify(text_of(old), keys + 1, 1, &at_1000_s, &claims, &error));
	assert_false(jwt_verify(text_of(swapped), keys, 2, &at_1000_s, &claims, &error));
	assert_false(jwt_verify(text_of(without), keys, 2, &at_1000_s, &claims, &error));
	assert_false(jwt_verify(text_of(strange), keys, 2, &at_1000_s, &claims, &error));
	free(old);
	free(new);
	free(swapped);
	free(without);
	free(strange);
	jwt_key_free(keys[0]);
	jwt_key_free(keys[1]);
}

static bool claims_read(const char *json, const struct jwt_wanted *wanted)
{
	return jwt_read_claims(text_of(json), wanted, &claims, &error);
}

static void a_token_is_good_from_nbf_to_exp_alone(void **state)
{
	(void)state;
	assert_true(claims_read("{\"exp\":1001,\"nbf\":999}", &at_1000_s));
	assert_true(claims_read("{\"exp\":1000.5}", &at_1000_s));
	assert_false(claims_read("{\"exp\":990}", &at_1000_s));
	assert_string_equal(error.text, "the token has expired");
	assert_false(claims_read("{\"exp\":2000,\"nbf\":1010}", &at_1000_s));
	assert_false(claims_read("{}", &at_1000_s));
	assert_false(claims_read("{\"exp\":\"2000\"}", &at_1000_s));
	assert_false(claims_read("{\"exp\":1e300}", &at_1000_s));
	assert_false(claims_read("{\"exp\":-1}", &at_1000_s));
	assert_false(claims_read("{\"exp\":2000,\"nbf\":null}", &at_1000_s));
}

static void audience_and_issuer_must_be_ours(void **state)
{
	(void)state;
	struct jwt_wanted wanted = { .audience = "gpu", .issuer = "us", .now_ms = 1000000 };

	assert_true(claims_read(ALICE, &wanted));
	assert_true(claims_read("{\"exp\":2000,\"iss\":\"us\",\"aud\":[\"x\",\"gpu\"]}", &wanted));
	assert_false(claims_read("{\"exp\":2000,\"iss\":\"us\",\"aud\":\"cpu\"}", &wanted));
	assert_false(claims_read("{\"exp\":2000,\"iss\":\"us\",\"aud\":[]}", &wanted));
	assert_false(claims_read("{\"exp\":2000,\"iss\":\"us\"}", &wanted));
	assert_false(claims_read("{\"exp\":2000,\"iss\":\"them\",\"aud\":\"gpu\"}", &wanted));
	assert_false(claims_read("{\"exp\":2000,\"aud\":\"gpu\"}", &wanted));
}

static void claims_of_another_form_are_refused(void **state)
{
	(void)state;
	assert_false(claims_read("{\"exp\":2000,\"role\":1}", &at_1000_s));
	assert_false(claims_read("{\"exp\":2000,\"sub\":\"a\\nb\"}", &at_1000_s));
	assert_false(claims_read("{\"exp\":2000,\"exp\":3000}", &at_1000_s));
	assert_false(claims_read("[2000]", &at_1000_s));
	assert_false(claims_read("", &at_1000_s));
}

static void what_is_not_strict_base64url_is_refused(void **state)
{
	(void)state;
	struct jwt_key *key = jwt_key_of("", "HS256", SECRET);
	char *good = sign_hmac(HS256, ALICE, SECRET);
	char text[1024];
	static const char *const ends[] = { "=", "A", ".", " ", "\n", "+" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		snprintf(text, sizeof(text), "%s%s", good, ends[i]);
		assert_false(jwt_verify(text_of(text), &key, 1, &at_1000_s, &claims, &error));
	}
	/* The last of 43 characters has two bits that say nothing. */
	size_t size = strlen(good);
	char last = good[size - 1];
	good[size - 1] = (char)(last + 1);
	assert_false(jwt_verify(text_of(good), &key, 1, &at_1000_s, &claims, &error));
	assert_false(jwt_verify(TEXT(""), &key, 1, &at_1000_s, &claims, &error));
	assert_false(jwt_verify(TEXT(".."), &key, 1, &at_1000_s, &claims, &error));
	free(good);
	jwt_key_free(key);
}

static void weak_keys_are_refused_and_never_shown(void **state)
{
	(void)state;
	EVP_PKEY *small = sign_rsa_key(1024), *curve = sign_ec_key("P-384");
	char *small_pem = sign_public_pem(small), *curve_pem = sign_public_pem(curve);

	assert_null(jwt_key_new("k", "HS256", "hunter2", &error));
	assert_null(strstr(error.text, "hunter2"));
	assert_null(jwt_key_new("k", "RS256", "hunter2", &error));
	assert_null(strstr(error.text, "hunter2"));
	assert_null(jwt_key_new("k", "RS256", small_pem, &error));
	assert_null(jwt_key_new("k", "ES256", curve_pem, &error));
	assert_null(jwt_key_new("k", "RS256", curve_pem, &error));
	assert_null(jwt_key_new("k", "none", SECRET, &error));
	free(small_pem);
	free(curve_pem);
	EVP_PKEY_free(small);
	EVP_PKEY_free(curve);
}

static void base64url_reads_what_it_writes(void **state)
{
	(void)state;
	unsigned char bytes[40];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 37 + 250);
	for (size_t size = 0; size <= sizeof(bytes); size++) {
		struct buffer text = { 0 }, back = { 0 };
		base64url_write(&text, bytes, size);
		assert_true(base64url_read((struct text){ text.data, text.size }, &back));
		assert_int_equal(back.size, size);
		if (size > 0)
			assert_memory_equal(back.data, bytes, size);
		buffer_free(&text);
		buffer_free(&back);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_of_each_algorithm_is_let_in),
		cmocka_unit_test(a_signature_of_another_key_is_refused),
		cmocka_unit_test(none_is_no_algorithm),
		cmocka_unit_test(a_public_key_is_not_taken_for_the_secret_of_an_hmac),
		cmocka_unit_test(the_algorithm_must_be_that_of_the_key),
		cmocka_unit_test(extensions_that_are_critical_are_refused),
		cmocka_unit_test(a_key_id_chooses_the_key),
		cmocka_unit_test(a_token_is_good_from_nbf_to_exp_alone),
		cmocka_unit_test(audience_and_issuer_must_be_ours),
		cmocka_unit_test(claims_of_another_form_are_refused),
		cmocka_unit_test(what_is_not_strict_base64url_is_refused),
		cmocka_unit_test(weak_keys_are_refused_and_never_shown),
		cmocka_unit_test(base64url_reads_what_it_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
