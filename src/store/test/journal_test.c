/* journal_test.c - the journal of commands */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/batch.h"
#include "store/journal.h"
#include "store/test/scratch.h"

/* Commands that were read: their times, by which they are known here. */
struct heard {
	int64_t times[4096], numbers[4096];
	int count;
};

static bool test_journal_hear(void *context, int64_t number, const struct command *command,
                              struct error *error)
{
	struct heard *heard = context;
	(void)error;
	heard->numbers[heard->count] = number;
	heard->times[heard->count++] = command->now_ms;
	return true;
}

/* Appends `count` commands from `first` on, in one batch; each has its number as its time. */
static bool test_journal_append(struct journal *journal, int64_t first, int count)
{
	static struct schema schema;
	struct error error;
	schema_init(&schema);
	struct batch *batch = batch_new(&schema);
	for (int i = 0; i < count; i++)
		batch_add(batch, &(struct command){ .kind = COMMAND_TIME, .now_ms = first + i },
		          NULL, NULL);
	bool done = journal_append(journal, first, batch->command_count, &batch->commands, &error);
	batch_free(batch);
	return done;
}

static struct journal *journal_begin(struct scratch *scratch, int64_t file_bytes)
{
	scratch_begin(scratch);
	return journal_new(&(struct journal_options){
	    .directory = scratch->directory, .file_bytes = file_bytes, .files = 4 });
}

static void commands_come_back_in_order(void **state)
{
	struct scratch scratch;
	struct heard heard = { .count = 0 };
	struct error error;
	int64_t missing;
	struct journal *journal = journal_begin(&scratch, 1 << 20);
	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(test_journal_append(journal, 1 + i * 10, 10));
	journal_free(journal);
	assert_true(
	    journal_read(scratch.directory, 500, test_journal_hear, &heard, &missing, &error));
	assert_int_equal(heard.count, 500);
	for (int i = 0; i < heard.count; i++) {
		assert_int_equal(heard.numbers[i], 501 + i);
		assert_int_equal(heard.times[i], 501 + i);
	}
	assert_int_equal(missing, 0);
	scratch_end(&scratch);
}

static void old_files_are_deleted_and_gaps_are_counted(void **state)
{
	struct scratch scratch;
	struct heard heard = { .count = 0 };
	struct error error;
	int64_t missing;
	struct journal *journal = journal_begin(&scratch, 200);
	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(test_journal_append(journal, 1 + i * 10, 10));
	journal_free(journal);
	assert_true(
	    journal_read(scratch.directory, 0, test_journal_hear, &heard, &missing, &error));
	assert_true(heard.count > 0 && heard.count < 200);
	assert_int_equal(heard.count + missing, 1000);
	assert_int_equal(heard.numbers[heard.count - 1], 1000);
	scratch_end(&scratch);
}

/* The only file of the journal. */
static void file_of(const struct scratch *scratch, char *path, size_t size)
{
	snprintf(path, size, "%s/journal-%020d", scratch->directory, 1);
}

static void a_torn_tail_is_passed_over(void **state)
{
	(void)state;
	for (int cut = 1; cut <= 50; cut++) {
		struct scratch scratch;
		struct heard heard = { .count = 0 };
		struct error error;
		struct stat status;
		char path[PATH_MAX];
		struct journal *journal = journal_begin(&scratch, 1 << 20);
		test_journal_append(journal, 1, 10);
		test_journal_append(journal, 11, 10);
		journal_free(journal);
		file_of(&scratch, path, sizeof(path));
		assert_int_equal(stat(path, &status), 0);
		assert_int_equal(truncate(path, status.st_size - cut), 0);
		assert_true(
		    journal_read(scratch.directory, 0, test_journal_hear, &heard, NULL, &error));
		assert_int_equal(heard.count, 10);
		scratch_end(&scratch);
	}
}

static void a_flipped_bit_ends_the_file_where_it_is(void **state)
{
	struct scratch scratch;
	struct heard heard = { .count = 0 };
	struct error error;
	char path[PATH_MAX], byte;
	struct journal *journal = journal_begin(&scratch, 1 << 20);
	(void)state;
	test_journal_append(journal, 1, 10);
	test_journal_append(journal, 11, 10);
	journal_free(journal);
	file_of(&scratch, path, sizeof(path));
	int file = open(path, O_RDWR);
	assert_int_equal(pread(file, &byte, 1, 60), 1);
	byte ^= 4;
	assert_int_equal(pwrite(file, &byte, 1, 60), 1);
	close(file);
	assert_true(journal_read(scratch.directory, 0, test_journal_hear, &heard, NULL, &error));
	assert_int_equal(heard.count, 0);
	scratch_end(&scratch);
}

static void a_full_disk_is_told_and_the_next_append_tries_again(void **state)
{
	struct scratch scratch;
	struct error error;
	(void)state;
	scratch_begin(&scratch);
	struct journal *journal =
	    journal_new(&(struct journal_options){ .directory = "/dev/null/nothing" });
	struct buffer commands = { 0 };
	buffer_text(&commands, "x");
	assert_false(journal_append(journal, 1, 1, &commands, &error));
	assert_int_equal(error.code, ERROR_UNAVAILABLE);
	assert_true(journal_append(journal, 1, 0, &commands, &error));
	buffer_free(&commands);
	journal_free(journal);
	scratch_end(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_come_back_in_order),
		cmocka_unit_test(old_files_are_deleted_and_gaps_are_counted),
		cmocka_unit_test(a_torn_tail_is_passed_over),
		cmocka_unit_test(a_flipped_bit_ends_the_file_where_it_is),
		cmocka_unit_test(a_full_disk_is_told_and_the_next_append_tries_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
