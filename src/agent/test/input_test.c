/* input_test.c - the keeper passes on the input that is due, once, and holds little of it */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/host/file.h"
#include "agent/keeper/input.h"
#include "agent/test/place.h"

/* A relay, the agent's end of its FIFO and the task's end of its pipe. */
struct desk {
	struct input_relay relay;
	const char *place;
	int agent, task;
};

static void desk_open(struct desk *desk)
{
	*desk = (struct desk){ .relay = { .from = -1, .to = -1 }, .place = place_make() };
	char *path = file_path("%s/fifo", desk->place);

	assert_int_equal(mkfifo(path, 0600), 0);
	desk->task = input_relay_open(&desk->relay, path, -1, -1);
	assert_true(desk->task >= 0);
	assert_int_equal(fcntl(desk->task, F_SETFL, O_NONBLOCK), 0);
	desk->agent = open(path, O_WRONLY | O_NONBLOCK);
	assert_true(desk->agent >= 0);
	free(path);
}

static void desk_close(struct desk *desk)
{
	input_relay_close(&desk->relay);
	close(desk->agent);
	close(desk->task);
	place_remove(desk->place);
}

static bool desk_send(struct desk *desk, int64_t offset, const char *data, size_t size)
{
	struct input_frame frame = { .offset = offset, .size = (int64_t)size };

	memcpy(frame.data, data, size);
	return write(desk->agent, &frame, input_frame_bytes(&frame)) ==
	       (ssize_t)input_frame_bytes(&frame);
}

static void assert_task_reads(struct desk *desk, const char *expected)
{
	char data[256] = { 0 };
	ssize_t got = read(desk->task, data, sizeof(data) - 1);

	assert_int_equal(got, (ssize_t)strlen(expected));
	assert_string_equal(data, expected);
}

static void what_is_sent_reaches_the_task_and_then_the_end(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	assert_true(desk_send(&desk, 0, "hello ", 6) && desk_send(&desk, 6, "world", 5));
	input_relay_move(&desk.relay);
	assert_task_reads(&desk, "hello world");
	assert_true(desk_send(&desk, 11, "", 0));
	input_relay_move(&desk.relay);
	assert_int_equal(read(desk.task, &(char){ 0 }, 1), 0);
	desk_close(&desk);
}

static void what_is_sent_again_is_passed_on_once(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	assert_true(desk_send(&desk, 0, "abc", 3) && desk_send(&desk, 0, "abc", 3) &&
	            desk_send(&desk, 1, "bcde", 4));
	input_relay_move(&desk.relay);
	assert_task_reads(&desk, "abcde");
	desk_close(&desk);
}

static void an_agent_that_leaves_is_not_the_end(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	assert_true(desk_send(&desk, 0, "abc", 3));
	close(desk.agent);
	desk.agent = -1;
	input_relay_move(&desk.relay);
	assert_task_reads(&desk, "abc");
	assert_int_equal(read(desk.task, &(char){ 0 }, 1), -1);
	assert_int_equal(errno, EAGAIN);
	desk_close(&desk);
}

static void bytes_behind_a_gap_end_the_input(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	assert_true(desk_send(&desk, 5, "abc", 3));
	input_relay_move(&desk.relay);
	assert_int_equal(read(desk.task, &(char){ 0 }, 1), 0);
	assert_int_equal(desk.relay.from, -1);
	desk_close(&desk);
}

static void a_task_that_does_not_read_fills_the_fifo(void **state)
{
	struct desk desk;
	static char data[INPUT_DATA_BYTES];
	int64_t sent = 0, passed = 0;

	(void)state;
	desk_open(&desk);
	while (desk_send(&desk, sent, data, sizeof(data))) {
		sent += INPUT_DATA_BYTES;
		input_relay_move(&desk.relay);
		assert_true(sent < 4 << 20);
	}
	assert_int_equal(errno, EAGAIN);
	for (ssize_t got = 1; got > 0; passed += got > 0 ? got : 0) {
		got = read(desk.task, data, sizeof(data));
		input_relay_move(&desk.relay);
	}
	assert_int_equal(passed, sent);
	desk_close(&desk);
}

static void a_task_that_closes_its_input_leaves_the_fifo_without_a_reader(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	close(desk.task);
	desk.task = -1;
	assert_true(desk_send(&desk, 0, "abc", 3));
	input_relay_move(&desk.relay);
	assert_int_equal(desk.relay.from, -1);
	assert_false(desk_send(&desk, 3, "abc", 3));
	assert_int_equal(errno, EPIPE);
	desk_close(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_reaches_the_task_and_then_the_end),
		cmocka_unit_test(what_is_sent_again_is_passed_on_once),
		cmocka_unit_test(an_agent_that_leaves_is_not_the_end),
		cmocka_unit_test(bytes_behind_a_gap_end_the_input),
		cmocka_unit_test(a_task_that_does_not_read_fills_the_fifo),
		cmocka_unit_test(a_task_that_closes_its_input_leaves_the_fifo_without_a_reader),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
