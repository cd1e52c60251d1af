/* state_test.c - what is kept is there afterwards, whatever happened in between */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/host/state.h"
#include "agent/test/place.h"

struct table {
	int count;
	int64_t keys[8];
	char values[8][32];
};

static bool state_collect(void *context, int64_t key, const void *data, size_t size,
                          struct error *error)
{
	struct table *table = context;

	(void)error;
	assert_true(table->count < 8 && size < 32);
	table->keys[table->count] = key;
	memcpy(table->values[table->count], data, size);
	table->values[table->count][size] = '\0';
	table->count++;
	return true;
}

static struct state *open_state(const char *path)
{
	struct error error = { 0 };
	struct state *state = state_open(path, &error);

	if (!state)
		fail_msg("%s", error.text);
	return state;
}

static struct table state_read_all(const char *path)
{
	struct table table = { 0 };
	struct state *state = open_state(path);

	assert_true(state_each(state, state_collect, &table, NULL));
	state_close(state);
	return table;
}

static void state_write(struct state *state, int64_t key, const char *value)
{
	state_put(state, key, value, strlen(value), false);
	assert_true(state_sync(state, NULL));
}

static void the_last_value_under_a_key_counts(void **context)
{
	const char *path = place_make();
	struct state *state = open_state(path);

	(void)context;
	state_write(state, 1, "one");
	state_write(state, 2, "two");
	state_write(state, 1, "uno");
	state_erase(state, 2);
	assert_true(state_sync(state, NULL));
	state_close(state);
	struct table table = state_read_all(path);
	assert_int_equal(table.count, 1);
	assert_int_equal(table.keys[0], 1);
	assert_string_equal(table.values[0], "uno");
	place_remove(path);
}

static void a_value_that_was_cut_off_is_not_there(void **context)
{
	const char *path = place_make();
	struct state *state = open_state(path);
	char journal[600];
	struct stat status;

	(void)context;
	state_write(state, 1, "one");
	state_write(state, 2, "twotwotwo");
	state_close(state);
	snprintf(journal, sizeof(journal), "%s/journal", path);
	assert_int_equal(stat(journal, &status), 0);
	assert_int_equal(truncate(journal, status.st_size - 3), 0);
	struct table table = state_read_all(path);
	assert_int_equal(table.count, 1);
	assert_string_equal(table.values[0], "one");

	/* And what is written next is not lost behind it. */
	state = open_state(path);
	state_write(state, 3, "three");
	state_close(state);
	assert_int_equal(state_read_all(path).count, 2);
	place_remove(path);
}

static void a_value_with_a_wrong_byte_is_not_there(void **context)
{
	const char *path = place_make();
	struct state *state = open_state(path);
	char journal[600];

	(void)context;
	state_write(state, 1, "one");
	state_close(state);
	snprintf(journal, sizeof(journal), "%s/journal", path);
	int fd = open(journal, O_RDWR);
	assert_int_equal(pwrite(fd, "X", 1, 17), 1);
	close(fd);
	assert_int_equal(state_read_all(path).count, 0);
	place_remove(path);
}

static void a_journal_of_old_values_is_written_anew(void **context)
{
	const char *path = place_make();
	struct state *state = open_state(path);
	static char large[1 << 20];
	char journal[600];
	struct stat status;

	(void)context;
	memset(large, 'x', sizeof(large));
	state_write(state, 9, "nine");
	for (int i = 0; i < 12; i++) {
		state_put(state, 1, large, sizeof(large), false);
		assert_true(state_sync(state, NULL));
	}
	state_erase(state, 1);
	state_write(state, 2, "two");
	state_close(state);
	snprintf(journal, sizeof(journal), "%s/journal", path);
	assert_int_equal(stat(journal, &status), 0);
	assert_true(status.st_size < 6 << 20);
	struct table table = state_read_all(path);
	assert_int_equal(table.count, 2);
	place_remove(path);
}

static void a_second_one_is_refused(void **context)
{
	const char *path = place_make();
	struct state *state = open_state(path);
	struct error error = { 0 };

	(void)context;
	assert_null(state_open(path, &error));
	assert_int_equal(error.code, ERROR_CONFLICT);
	state_close(state);
	state_close(open_state(path));
	place_remove(path);
}

static void a_lease_is_what_was_last_told(void **context)
{
	const char *path = place_make();
	struct state *state = open_state(path);

	(void)context;
	assert_int_equal(state_lease(state), 0);
	assert_true(state_set_lease(state, 12345));
	state_close(state);
	state = open_state(path);
	assert_int_equal(state_lease(state), 12345);
	state_close(state);
	place_remove(path);
}

static void a_directory_keeps_its_name_and_shares_it_with_none(void **context)
{
	const char *path = place_make();
	struct state *state = open_state(path);
	char name[32], other[600];

	(void)context;
	snprintf(name, sizeof(name), "%s", state_instance(state));
	assert_int_equal(strlen(name), 8);
	state_write(state, 1, "one");
	snprintf(other, sizeof(other), "%s/other", path);
	struct state *beside = open_state(other);
	assert_string_not_equal(state_instance(beside), name);
	state_close(beside);
	state_close(state);
	state = open_state(path);
	assert_string_equal(state_instance(state), name);
	state_close(state);
	place_remove(path);
}

static void a_directory_of_an_older_version_has_no_name(void **context)
{
	const char *path = place_make();
	struct state *state = open_state(path);
	char file[600];

	(void)context;
	state_write(state, 1, "one");
	state_close(state);
	snprintf(file, sizeof(file), "%s/instance", path);
	assert_int_equal(unlink(file), 0);
	for (int i = 0; i < 2; i++) {
		state = open_state(path);
		assert_string_equal(state_instance(state), "");
		state_close(state);
	}
	place_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_value_under_a_key_counts),
		cmocka_unit_test(a_value_that_was_cut_off_is_not_there),
		cmocka_unit_test(a_value_with_a_wrong_byte_is_not_there),
		cmocka_unit_test(a_journal_of_old_values_is_written_anew),
		cmocka_unit_test(a_second_one_is_refused),
		cmocka_unit_test(a_lease_is_what_was_last_told),
		cmocka_unit_test(a_directory_keeps_its_name_and_shares_it_with_none),
		cmocka_unit_test(a_directory_of_an_older_version_has_no_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
