/* lease_keys_test.c - a key of a lease holds until its time, and ends alone */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/host/lease_keys.h"
#include "base/clock.h"

static char path[] = "/tmp/lease-keys-XXXXXX";
static struct lease_keys *keys;
static const struct lease_keys *seen;

static int set_up(void **state)
{
	struct error error = { 0 };

	(void)state;
	int fd = lease_keys_make(path, &error);
	assert_true(fd >= 0);
	seen = lease_keys_map(fd);
	close(fd);
	keys = lease_keys_open(path);
	assert_non_null(seen);
	assert_non_null(keys);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	lease_keys_close(keys);
	lease_keys_close((struct lease_keys *)seen);
	unlink(path);
	return 0;
}

/* A key that ends with the number. */
static struct text key_of(int number)
{
	static char text[2][SLOT_KEY_SIZE + 1];
	static int next;

	next = !next;
	snprintf(text[next], sizeof(text[next]), "%064d", number);
	return text_of(text[next]);
}

static int64_t later(void)
{
	return clock_boot_ms() + 3600000;
}

static void a_key_holds_until_its_time(void **state)
{
	int64_t until_ms = later();

	(void)state;
	assert_false(lease_keys_admit(seen, key_of(1), clock_boot_ms()));
	assert_true(lease_keys_put(keys, 7, key_of(1), until_ms));
	assert_true(lease_keys_admit(seen, key_of(1), until_ms - 1));
	assert_false(lease_keys_admit(seen, key_of(1), until_ms));
	assert_false(lease_keys_admit(seen, key_of(2), until_ms - 1));
	assert_true(lease_keys_put(keys, 7, key_of(1), until_ms + 10));
	assert_true(lease_keys_admit(seen, key_of(1), until_ms));
	assert_int_equal(keys->used, 1);
}

static void a_key_ends_alone(void **state)
{
	(void)state;
	for (int i = 1; i <= 3; i++)
		assert_true(lease_keys_put(keys, i, key_of(i), later()));
	lease_keys_end(keys, 2);
	lease_keys_end(keys, 99);
	assert_true(lease_keys_admit(seen, key_of(1), clock_boot_ms()));
	assert_false(lease_keys_admit(seen, key_of(2), clock_boot_ms()));
	assert_true(lease_keys_admit(seen, key_of(3), clock_boot_ms()));
	/* Nothing opens with what an ended one left behind. */
	assert_false(lease_keys_admit(seen, (struct text){ keys->at[1].key, SLOT_KEY_SIZE },
	                              clock_boot_ms()));
	assert_true(lease_keys_put(keys, 4, key_of(4), later()));
	assert_int_equal(keys->used, 3);
}

static bool is_older(const void *context, int64_t lease_id)
{
	return lease_id < *(const int64_t *)context;
}

static void others_end_together(void **state)
{
	const int64_t first = 3;

	(void)state;
	for (int i = 1; i <= 4; i++)
		assert_true(lease_keys_put(keys, i, key_of(i), later()));
	lease_keys_end_others(keys, is_older, &first);
	for (int i = 1; i <= 4; i++)
		assert_int_equal(lease_keys_admit(seen, key_of(i), clock_boot_ms()), i < 3);
}

static void there_is_an_end_to_how_many_hold(void **state)
{
	(void)state;
	for (int i = 1; i <= LEASE_KEYS_MAX; i++)
		assert_true(lease_keys_put(keys, i, key_of(i), later()));
	assert_false(lease_keys_put(keys, LEASE_KEYS_MAX + 1, key_of(0), later()));
	assert_true(lease_keys_put(keys, 5, key_of(5), later()));
	assert_true(lease_keys_put(keys, 9, key_of(9), 1)); /* long ago */
	assert_true(lease_keys_put(keys, LEASE_KEYS_MAX + 1, key_of(0), later()));
	assert_true(lease_keys_admit(seen, key_of(0), clock_boot_ms()));
	assert_false(lease_keys_admit(seen, key_of(9), clock_boot_ms()));
}

static void what_is_no_key_is_not_taken(void **state)
{
	(void)state;
	assert_false(lease_keys_put(keys, 1, TEXT("short"), later()));
	assert_false(lease_keys_put(keys, 1, key_of(1), 0));
	assert_false(lease_keys_admit(seen, TEXT(""), clock_boot_ms()));
	keys->used = INT64_MAX;
	assert_false(lease_keys_admit(seen, key_of(1), clock_boot_ms()));
}

static void another_file_is_refused(void **state)
{
	(void)state;
	assert_int_equal(truncate(path, 100), 0);
	assert_null(lease_keys_open(path));
	assert_int_equal(truncate(path, sizeof(struct lease_keys)), 0);
	struct stat about;
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_key_holds_until_its_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_key_ends_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_end_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(there_is_an_end_to_how_many_hold, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_key_is_not_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_file_is_refused, set_up, tear_down),
	};
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
