/* hash_test.c - tests of hashing */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../hash.h"

static void a_hash_is_the_same_on_every_machine(void **state)
{
	(void)state;
	/* Stored digests depend on these values: they never change. */
	assert_true(hash_number(1) == UINT64_C(0x4179b061e0c0e0d0));
	assert_true(hash_combine(1, 2) == UINT64_C(0x11ae01006bb62ce3));
	assert_true(hash_text("") == UINT64_C(0x0000000000000000));
	assert_true(hash_text("gpu-scheduler") == UINT64_C(0x0f5957021cf963ba));
}

static void combining_depends_on_the_order(void **state)
{
	(void)state;
	assert_true(hash_combine(1, 2) != hash_combine(2, 1));
	assert_true(hash_combine(0, 0) != hash_combine(hash_combine(0, 0), 0));
}

static void text_hashes_like_its_bytes(void **state)
{
	(void)state;
	assert_true(hash_text("tenant") == hash_bytes("tenant", 6));
}

static void every_byte_and_the_size_count(void **state)
{
	(void)state;
	enum { SIZE = 40 };
	unsigned char bytes[SIZE] = { 0 };
	for (size_t size = 0; size < SIZE; size++) {
		uint64_t hash = hash_bytes(bytes, size);
		assert_true(hash != hash_bytes(bytes, size + 1));
		for (size_t i = 0; i < size; i++) {
			bytes[i] ^= 0x80;
			assert_true(hash != hash_bytes(bytes, size));
			bytes[i] ^= 0x80;
		}
	}
}

static void bytes_hash_the_same_wherever_they_start(void **state)
{
	(void)state;
	const char text[] = "0123456789abcdefghij";
	char shifted[sizeof(text) + 8];
	for (size_t offset = 0; offset < 8; offset++) {
		memcpy(shifted + offset, text, sizeof(text));
		assert_true(hash_text(shifted + offset) == hash_text(text));
	}
}

static void neighbouring_numbers_spread_over_all_buckets(void **state)
{
	(void)state;
	enum { BUCKETS = 64, EACH = 1000 };
	int count[BUCKETS] = { 0 };
	for (uint64_t i = 0; i < (uint64_t)BUCKETS * EACH; i++)
		count[hash_number(i) % BUCKETS]++;
	for (int i = 0; i < BUCKETS; i++)
		assert_in_range(count[i], EACH * 8 / 10, EACH * 12 / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hash_is_the_same_on_every_machine),
		cmocka_unit_test(combining_depends_on_the_order),
		cmocka_unit_test(text_hashes_like_its_bytes),
		cmocka_unit_test(every_byte_and_the_size_count),
		cmocka_unit_test(bytes_hash_the_same_wherever_they_start),
		cmocka_unit_test(neighbouring_numbers_spread_over_all_buckets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
