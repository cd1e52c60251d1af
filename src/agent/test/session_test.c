/* session_test.c - a session passes bytes on once and in order, holds little, and ends by its rules
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/keeper/session.h"
#include "channel/frame.h"

/* A session in a raw terminal; the command's end and the client's end are the test's. */
struct desk {
	struct session *session;
	int command, client;
	int64_t now_ms, output; /* the client has output up to here */
	struct buffer shown;
	struct frame last;
	char last_data[FRAME_DATA_BYTES];
};

static void desk_attach(struct desk *desk, int64_t offset)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	desk->client = ends[0];
	session_link(desk->session, ends[1], offset, desk->now_ms);
}

static void desk_open(struct desk *desk)
{
	struct termios settings;

	*desk = (struct desk){ .now_ms = 1000 };
	desk->session = session_open("one", true, desk->now_ms);
	desk->command = session_open_terminal(desk->session, -1, 80, 24);
	assert_true(desk->command >= 0);
	assert_int_equal(tcgetattr(desk->command, &settings), 0);
	cfmakeraw(&settings);
	assert_int_equal(tcsetattr(desk->command, TCSANOW, &settings), 0);
	assert_int_equal(fcntl(desk->command, F_SETFL, O_NONBLOCK), 0);
	desk_attach(desk, 0);
}

static void desk_close(struct desk *desk)
{
	session_free(desk->session);
	close(desk->command);
	close(desk->client);
	buffer_free(&desk->shown);
}

/* Takes the next frame of the session. */
static bool desk_receive(struct desk *desk)
{
	static char data[FRAME_BYTES_MAX];
	ssize_t got = recv(desk->client, data, sizeof(data), MSG_DONTWAIT);

	if (got <= 0)
		return false;
	assert_true(frame_read((struct text){ data, (size_t)got }, &desk->last));
	memcpy(desk->last_data, desk->last.data.data, desk->last.data.size);
	desk->last.data.data = desk->last_data;
	if (desk->last.kind == FRAME_OUTPUT) {
		assert_int_equal(desk->last.offset, desk->output);
		desk->output += (int64_t)desk->last.data.size;
		buffer_bytes(&desk->shown, desk->last.data.data, desk->last.data.size);
	} else if (desk->last.kind == FRAME_BEGIN) {
		desk->output = desk->last.offset;
	}
	return true;
}

/* Moves until nothing moves. A terminal hands bytes over in the kernel's own time. */
static void desk_settle(struct desk *desk)
{
	int quiet = 0;

	while (quiet < 3) {
		session_move(desk->session, desk->now_ms);
		bool moved = false;
		while (desk_receive(desk))
			moved = true;
		quiet = moved ? 0 : quiet + 1;
		poll(NULL, 0, 1);
	}
}

static void desk_send(struct desk *desk, const struct frame *frame)
{
	struct buffer bytes = { 0 };

	frame_write(&bytes, frame);
	assert_int_equal(send(desk->client, bytes.data, bytes.size, 0), bytes.size);
	buffer_free(&bytes);
	session_move(desk->session, desk->now_ms);
}

/* Writes what the command prints, as far as it is taken. */
static size_t desk_print(struct desk *desk, size_t most)
{
	static char data[4096];
	size_t written = 0;
	int refused = 0;

	while (written < most && refused < 50) {
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (char)((written + i) % 251);
		size_t part = most - written < sizeof(data) ? most - written : sizeof(data);
		ssize_t put = write(desk->command, data, part);
		refused = put > 0 ? 0 : refused + 1;
		written += put > 0 ? (size_t)put : 0;
		session_move(desk->session, desk->now_ms);
		while (desk_receive(desk))
			;
		poll(NULL, 0, put > 0 ? 0 : 1);
	}
	return written;
}

static void assert_pattern(const struct desk *desk, size_t from)
{
	for (size_t i = 0; i < desk->shown.size; i++)
		assert_int_equal((unsigned char)desk->shown.data[i], (from + i) % 251);
}

/* What the command reads, all of it. */
static void assert_command_reads(struct desk *desk, const char *expected)
{
	char data[256];
	size_t size = 0;

	for (int i = 0; i < 6000 && size < strlen(expected); i++) {
		session_move(desk->session, desk->now_ms);
		ssize_t got = read(desk->command, data + size, sizeof(data) - size);
		size += got > 0 ? (size_t)got : 0;
		poll(NULL, 0, got > 0 ? 0 : 10);
	}
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(data, expected, size);
}

static void output_is_held_back_by_a_client_that_takes_none(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	size_t printed = desk_print(&desk, 4 << 20);
	assert_true(printed < 1 << 20);
	assert_int_equal(desk.output, FRAME_OUTPUT_WINDOW);
	while (desk.output < (int64_t)printed) {
		desk_send(&desk, &(struct frame){ .kind = FRAME_TAKEN, .offset = desk.output });
		desk_settle(&desk);
	}
	assert_int_equal(desk.shown.size, printed);
	assert_pattern(&desk, 0);
	desk_close(&desk);
}

static void a_client_that_comes_back_continues_where_it_was(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	assert_int_equal(desk_print(&desk, 1000), 1000);
	desk_settle(&desk);
	close(desk.client);
	session_move(desk.session, desk.now_ms);
	assert_int_equal(desk.session->link, -1);
	assert_int_equal(desk_print(&desk, 500), 500);
	buffer_clear(&desk.shown);
	desk_attach(&desk, 900);
	desk_settle(&desk);
	assert_int_equal(desk.output, 1500);
	assert_int_equal(desk.shown.size, 600);
	assert_int_equal((unsigned char)desk.shown.data[0], 900 % 251);
	desk_close(&desk);
}

static void what_nobody_waits_for_is_overwritten(void **state)
{
	struct desk desk;
	size_t most = 3 * SESSION_RING_BYTES;

	(void)state;
	desk_open(&desk);
	desk_settle(&desk);
	desk_send(&desk, &(struct frame){ .kind = FRAME_LEAVE });
	close(desk.client);
	assert_int_equal(desk_print(&desk, most), most);
	desk_attach(&desk, 0);
	desk_settle(&desk);
	assert_true(desk.output > (int64_t)most - SESSION_RING_BYTES);
	desk_close(&desk);
}

static void input_that_comes_again_is_dropped(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	desk_send(&desk, &(struct frame){ .kind = FRAME_INPUT, .offset = 0, .data = TEXT("abc") });
	desk_send(&desk, &(struct frame){ .kind = FRAME_INPUT, .offset = 1, .data = TEXT("bcde") });
	desk_send(&desk, &(struct frame){ .kind = FRAME_INPUT, .offset = 0, .data = TEXT("ab") });
	assert_command_reads(&desk, "abcde");
	assert_int_equal(desk.session->received, 5);
	desk_close(&desk);
}

static void a_client_that_breaks_the_rules_loses_its_link(void **state)
{
	const struct frame frames[] = {
		{ .kind = FRAME_INPUT, .offset = 7, .data = TEXT("behind a gap") },
		{ .kind = FRAME_INPUT_END, .offset = 7 },
		{ .kind = FRAME_SIGNAL, .code = 64 },
		{ .kind = FRAME_OUTPUT, .offset = 0, .data = TEXT("not a client's") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		struct desk desk;
		desk_open(&desk);
		desk_send(&desk, &frames[i]);
		assert_int_equal(desk.session->link, -1);
		desk_close(&desk);
	}
}

static void input_beyond_the_window_is_refused(void **state)
{
	struct desk desk;
	char data[FRAME_DATA_BYTES] = { 0 };
	int64_t offset = 0;

	(void)state;
	desk_open(&desk);
	desk_settle(&desk);
	while (desk.session->link >= 0) {
		desk_send(&desk, &(struct frame){ .kind = FRAME_INPUT,
		                                  .offset = offset,
		                                  .data = { data, sizeof(data) } });
		offset += (int64_t)sizeof(data);
		while (desk_receive(&desk))
			;
		assert_true(offset < 1 << 20);
	}
	desk_close(&desk);
}

static void the_window_has_the_clients_size(void **state)
{
	struct desk desk;
	struct winsize size = { 0 };

	(void)state;
	desk_open(&desk);
	desk_send(&desk, &(struct frame){ .kind = FRAME_WINDOW, .columns = 132, .rows = 50 });
	assert_int_equal(ioctl(desk.command, TIOCGWINSZ, &size), 0);
	assert_int_equal(size.ws_col, 132);
	assert_int_equal(size.ws_row, 50);
	desk_close(&desk);
}

static void the_exit_comes_behind_the_last_output(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	assert_int_equal(desk_print(&desk, 100), 100);
	session_exited(desk.session, 3);
	desk_settle(&desk);
	assert_int_equal(desk.output, 100);
	assert_int_equal(desk.last.kind, FRAME_EXIT);
	assert_int_equal(desk.last.code, 3);
	desk_send(&desk, &(struct frame){ .kind = FRAME_LEAVE });
	assert_true(desk.session->gone);
	desk_close(&desk);
}

static void an_idle_session_is_warned_and_ends(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	desk.session->idle_ms = 600000;
	desk_settle(&desk);
	desk.now_ms += 539999;
	desk_settle(&desk);
	assert_false(desk.session->warned);
	desk.now_ms += 2;
	desk_settle(&desk);
	assert_int_equal(desk.last.kind, FRAME_NOTICE);
	desk_send(&desk, &(struct frame){ .kind = FRAME_INPUT, .offset = 0, .data = TEXT("x") });
	desk.now_ms += 539000;
	desk_settle(&desk);
	assert_false(desk.session->exited);
	desk.now_ms += 600000;
	desk_settle(&desk);
	assert_true(desk.session->exited);
	assert_string_equal(desk.session->reason, "it was idle for too long");
	desk_close(&desk);
}

static void a_session_whose_client_is_lost_waits_a_minute(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	desk_settle(&desk);
	close(desk.client);
	session_move(desk.session, desk.now_ms);
	session_move(desk.session, desk.now_ms + 59999);
	assert_false(desk.session->free_runs);
	session_move(desk.session, desk.now_ms + 60000);
	assert_true(desk.session->free_runs);
	desk.client = -1;
	desk_close(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_is_held_back_by_a_client_that_takes_none),
		cmocka_unit_test(a_client_that_comes_back_continues_where_it_was),
		cmocka_unit_test(what_nobody_waits_for_is_overwritten),
		cmocka_unit_test(input_that_comes_again_is_dropped),
		cmocka_unit_test(a_client_that_breaks_the_rules_loses_its_link),
		cmocka_unit_test(input_beyond_the_window_is_refused),
		cmocka_unit_test(the_window_has_the_clients_size),
		cmocka_unit_test(the_exit_comes_behind_the_last_output),
		cmocka_unit_test(an_idle_session_is_warned_and_ends),
		cmocka_unit_test(a_session_whose_client_is_lost_waits_a_minute),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
