/* vault_test.c - secrets in orders are sealed, and open for their own reservation alone */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/host/vault.h"
#include "agent/test/place.h"
#include "json/json_reader.h"

#define PLAIN "{\"command\":[\"a\"],\"secret_environment\":{\"P\":\"hidden\\n\"},\"image\":\"\"}"

static struct secret_keys *keys_in(const char *path)
{
	struct error error = { 0 };
	struct secret_keys *keys = vault_keys(path, &error);

	if (!keys)
		fail_msg("%s", error.text);
	return keys;
}

static void a_sealed_payload_has_all_but_the_secrets(void **state)
{
	const char *path = place_make();
	struct secret_keys *keys = keys_in(path);
	struct arena arena = { 0 };
	struct error error = { 0 };
	char *plain = arena_string(&arena, PLAIN);
	struct node_order order = { .reservation_id = 7, .payload = plain };

	(void)state;
	assert_true(vault_has_secrets(PLAIN, strlen(PLAIN)));
	vault_seal(keys, &arena, &order);
	assert_null(strstr(order.payload, "hidden"));
	assert_int_equal(plain[0], '\0');
	json_t *payload = json_read(text_of(order.payload), NULL, &error);
	assert_non_null(payload);
	assert_int_equal(json_array_size(json_object_get(payload, "command")), 1);
	assert_null(vault_open(keys, 8, payload, &error));
	json_t *secrets = vault_open(keys, 7, payload, &error);
	assert_string_equal(json_string_value(json_object_get(secrets, "P")), "hidden\n");
	vault_forget(secrets);
	json_decref(payload);
	secret_keys_free(keys);
	arena_free(&arena);
	place_remove(path);
}

static void the_key_is_made_once(void **state)
{
	const char *path = place_make();
	struct secret_keys *first = keys_in(path), *second = keys_in(path);
	struct buffer sealed = { 0 }, plain = { 0 };
	struct error error = { 0 };

	(void)state;
	assert_true(secret_seal(first, "x", "text", 4, &sealed, &error));
	assert_true(secret_open(second, "x", sealed.data, &plain, &error));
	buffer_free(&sealed);
	buffer_free(&plain);
	secret_keys_free(first);
	secret_keys_free(second);
	place_remove(path);
}

static void a_payload_that_is_no_json_keeps_no_secret(void **state)
{
	const char *path = place_make();
	struct secret_keys *keys = keys_in(path);
	struct arena arena = { 0 };
	struct error error = { 0 };
	char *plain = arena_string(&arena, "{\"secret_environment\":{\"P\":\"hidden\"");
	struct node_order order = { .reservation_id = 7, .payload = plain };

	(void)state;
	vault_seal(keys, &arena, &order);
	assert_null(strstr(order.payload, "hidden"));
	json_t *payload = json_read(text_of(order.payload), NULL, &error);
	assert_null(vault_open(keys, 7, payload, &error));
	json_decref(payload);
	secret_keys_free(keys);
	arena_free(&arena);
	place_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sealed_payload_has_all_but_the_secrets),
		cmocka_unit_test(the_key_is_made_once),
		cmocka_unit_test(a_payload_that_is_no_json_keeps_no_secret),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
