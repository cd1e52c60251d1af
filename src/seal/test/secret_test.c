/* secret_test.c - sealing and opening secrets */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seal/secret.h"

#define KEY_A "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define KEY_B "new:HwECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

static struct secret_keys *keys_of(const char *text)
{
	struct error error;
	struct secret_keys *keys = secret_keys_read(text, &error);
	if (!keys)
		fail_msg("%s", error.text);
	return keys;
}

static void seal(const struct secret_keys *keys, const char *context, const char *plain,
                 struct buffer *sealed)
{
	struct error error;
	buffer_clear(sealed);
	assert_true(secret_seal(keys, context, plain, strlen(plain), sealed, &error));
}

static void what_is_sealed_opens_and_does_not_show(void **state)
{
	static const char *const secrets[] = { "", "x", "TOKEN=hunter2",
		                               "a\nb\nc with more to it" };
	struct buffer sealed = { 0 }, again = { 0 }, plain = { 0 };
	struct error error;
	struct secret_keys *keys = keys_of(KEY_A);
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		seal(keys, "tenant 1", secrets[i], &sealed);
		seal(keys, "tenant 1", secrets[i], &again);
		assert_string_not_equal(sealed.data, again.data);
		assert_true(!*secrets[i] || i == 1 || !strstr(sealed.data, secrets[i]));
		buffer_clear(&plain);
		assert_true(secret_open(keys, "tenant 1", sealed.data, &plain, &error));
		buffer_text(&plain, "");
		assert_string_equal(plain.data, secrets[i]);
	}
	secret_keys_free(keys);
	buffer_free(&sealed);
	buffer_free(&again);
	buffer_free(&plain);
}

static void nothing_that_was_changed_opens(void **state)
{
	struct buffer sealed = { 0 }, plain = { 0 };
	struct error error;
	struct secret_keys *keys = keys_of(KEY_A);
	(void)state;
	seal(keys, "tenant 1", "a secret that is long enough", &sealed);
	for (size_t i = 0; i < sealed.size; i++) {
		sealed.data[i] ^= 1;
		assert_false(secret_open(keys, "tenant 1", sealed.data, &plain, &error));
		sealed.data[i] ^= 1;
	}
	assert_false(secret_open(keys, "tenant 2", sealed.data, &plain, &error));
	assert_non_null(strstr(error.text, "belongs to someone else"));
	for (size_t i = 0; i < sealed.size; i++) {
		char kept = sealed.data[i];
		sealed.data[i] = '\0';
		assert_false(secret_open(keys, "tenant 1", sealed.data, &plain, &error));
		sealed.data[i] = kept;
	}
	assert_int_equal(plain.size, 0);
	secret_keys_free(keys);
	buffer_free(&sealed);
	buffer_free(&plain);
}

static void a_new_key_is_put_in_front_of_the_old_one(void **state)
{
	struct buffer sealed = { 0 }, plain = { 0 };
	struct error error;
	struct secret_keys *old = keys_of(KEY_A), *both = keys_of(KEY_B ", " KEY_A),
			   *new = keys_of(KEY_B "\n");
	(void)state;
	seal(old, "", "secret", &sealed);
	assert_true(secret_open(both, "", sealed.data, &plain, &error));
	assert_true(secret_is_old(both, sealed.data));
	assert_false(secret_open(new, "", sealed.data, &plain, &error));
	assert_int_equal(error.code, ERROR_NOT_FOUND);
	seal(both, "", "secret", &sealed);
	assert_false(secret_is_old(both, sealed.data));
	assert_true(secret_open(new, "", sealed.data, &plain, &error));
	secret_keys_free(old);
	secret_keys_free(both);
	secret_keys_free(new);
	buffer_free(&sealed);
	buffer_free(&plain);
}

static void a_key_that_is_none_is_refused_without_showing_it(void **state)
{
	static const char *const texts[] = { "",
		                             "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
		                             "a:hunter2",
		                             "a:aHVudGVyMg==",
		                             ":AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
		                             KEY_A " " KEY_A,
		                             "a b:x" };
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error error = { 0 };
		assert_null(secret_keys_read(texts[i], &error));
		assert_int_equal(error.code, ERROR_INVALID);
		assert_null(strstr(error.text, "hunter2"));
		assert_null(strstr(error.text, "AAEC"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sealed_opens_and_does_not_show),
		cmocka_unit_test(nothing_that_was_changed_opens),
		cmocka_unit_test(a_new_key_is_put_in_front_of_the_old_one),
		cmocka_unit_test(a_key_that_is_none_is_refused_without_showing_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
