/* job_terminal.c - the client's side of an interactive session of a job */
#include "cli/job/job_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "channel/frame.h"
#include "cli/client/socket.h"
#include "cli/job/detach_keys.h"

enum {
	ACKNOWLEDGE_BYTES = FRAME_OUTPUT_WINDOW / 4,
	AGAIN_MS = 200, /* first pause before a connection is made again */
	AGAIN_MAX_MS = 2000,
	GIVE_UP_MS = 600000,
	WAIT_MS = 1000,
	KEY_MS = 300, /* Ctrl-P waits so long for Ctrl-Q */
	CODE_POLICY = 1008,
	CODE_ERROR = 4000, /* and an enum error_code */
};

/* `input` has the bytes from `input_base` on that the task has not taken. */
struct terminal_client {
	struct session *session;
	const struct job_terminal *wanted;
	struct socket *socket; /* NULL: not connected */
	bool begun;            /* on this connection */
	bool marked;           /* output is marked by streams */
	struct stream_parts parts;
	int64_t output, acknowledged; /* -1: none was seen */
	struct buffer input;
	int64_t input_base, sent, taken;
	bool input_ended, end_sent;
	struct detach_keys keys;
	int64_t lost_ms, again_ms, pause_ms;
	bool said_lost;
	bool ended;
	enum terminal_end end;
	int code;
	struct error *error;
};

static int signal_pipe[2] = { -1, -1 };

static void on_signal(int number)
{
	char byte = (char)number;
	int reason = errno;

	(void)!write(signal_pipe[1], &byte, 1);
	errno = reason;
}

static const int caught[] = { SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT };
enum { CAUGHT = sizeof(caught) / sizeof(*caught) };

static bool catch_signals(struct sigaction before[CAUGHT])
{
	struct sigaction action = { .sa_handler = on_signal };

	if (pipe(signal_pipe) != 0)
		return false;
	for (int i = 0; i < 2; i++) {
		fcntl(signal_pipe[i], F_SETFD, FD_CLOEXEC);
		fcntl(signal_pipe[i], F_SETFL, O_NONBLOCK);
	}
	for (int i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &action, &before[i]);
	return true;
}

static void release_signals(const struct sigaction before[CAUGHT])
{
	for (int i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &before[i], NULL);
	close(signal_pipe[0]);
	close(signal_pipe[1]);
	signal_pipe[0] = signal_pipe[1] = -1;
}

void job_terminal_size(int *columns, int *rows)
{
	struct winsize size = { 0 };
	bool known = ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 ||
	             ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;

	*columns = known && size.ws_col > 0 && size.ws_col <= FRAME_SIZE_MAX ? size.ws_col : 80;
	*rows = known && size.ws_row > 0 && size.ws_row <= FRAME_SIZE_MAX ? size.ws_row : 24;
}

static void finish(struct terminal_client *client, enum terminal_end end, int code)
{
	client->ended = true;
	client->end = end;
	client->code = code;
}

static void fail(struct terminal_client *client, enum error_code code, const char *reason)
{
	error_set(client->error, code, "%s", *reason ? reason : "the session was refused");
	finish(client, TERMINAL_LOST, 1);
}

static void say(const struct terminal_client *client, const char *sentence)
{
	/* The terminal may not turn a line feed into a new line now. */
	fprintf(stderr, client->wanted->terminal ? "\r\n[%s]\r\n" : "%s\n", sentence);
}

static bool send_frame(struct terminal_client *client, const struct frame *frame)
{
	struct buffer bytes = { 0 };

	frame_write(&bytes, frame);
	bool sent =
	    client->socket && socket_send(client->socket, (struct text){ bytes.data, bytes.size });
	explicit_bzero(bytes.data, bytes.size);
	buffer_free(&bytes);
	return sent;
}

static void send_size(struct terminal_client *client)
{
	struct frame frame = { .kind = FRAME_WINDOW };

	job_terminal_size(&frame.columns, &frame.rows);
	if (client->wanted->terminal && client->begun)
		send_frame(client, &frame);
}

/* Forgets input that nobody will ask for again. */
static void drop_input(struct terminal_client *client, int64_t before)
{
	int64_t size = min64(before - client->input_base, (int64_t)client->input.size);

	if (size <= 0)
		return;
	memmove(client->input.data, client->input.data + size, client->input.size - (size_t)size);
	client->input.size -= (size_t)size;
	client->input_base += size;
}

static void send_input(struct terminal_client *client)
{
	int64_t end = client->input_base + (int64_t)client->input.size;

	while (client->begun && client->sent < end) {
		int64_t most =
		    min64(client->taken + FRAME_INPUT_WINDOW - client->sent, end - client->sent);
		if (most <= 0)
			return;
		struct text part = { client->input.data + (client->sent - client->input_base),
			             (size_t)min64(most, FRAME_DATA_BYTES) };
		if (!send_frame(client, &(struct frame){ .kind = FRAME_INPUT,
		                                         .offset = client->sent,
		                                         .data = part }))
			return;
		client->sent += (int64_t)part.size;
	}
	if (client->begun && client->input_ended && !client->end_sent)
		client->end_sent = send_frame(
		    client, &(struct frame){ .kind = FRAME_INPUT_END, .offset = client->sent });
}

static void take_begin(struct terminal_client *client, const struct frame *frame)
{
	bool first = client->output < 0;

	client->begun = true;
	client->lost_ms = client->pause_ms = 0;
	client->marked = !frame->terminal;
	if (first)
		client->output = client->acknowledged = frame->offset;
	else if (frame->offset > client->output)
		say(client, "some output was lost: it came while nobody was connected");
	if (first)
		client->input_base = client->taken = frame->input_offset;
	drop_input(client, frame->input_offset);
	client->sent = client->input_base;
	client->end_sent = false;
	send_size(client);
	send_input(client);
}

static bool write_all(int file, struct text bytes)
{
	while (bytes.size > 0) {
		ssize_t put = write(file, bytes.data, bytes.size);
		if (put < 0 && errno == EAGAIN)
			poll(&(struct pollfd){ .fd = file, .events = POLLOUT }, 1, WAIT_MS);
		else if (put < 0 && errno != EINTR)
			return false;
		if (put > 0)
			bytes = (struct text){ bytes.data + put, bytes.size - (size_t)put };
	}
	return true;
}

/* Output to where it belongs. False: it cannot be written, or makes no sense. */
static bool show(struct terminal_client *client, struct text bytes)
{
	struct text part;
	int stream;

	if (!client->marked)
		return write_all(STDOUT_FILENO, bytes);
	while ((stream = stream_parts_next(&client->parts, &bytes, &part)) > 0)
		if (!write_all(stream == 1 ? STDOUT_FILENO : STDERR_FILENO, part))
			return false;
	return stream == 0;
}

static void take_output(struct terminal_client *client, const struct frame *frame)
{
	int64_t before = client->output - frame->offset;
	struct text data = frame->data;

	if (before > 0 && before >= (int64_t)data.size)
		return;
	if (before > 0)
		data = (struct text){ data.data + before, data.size - (size_t)before };
	client->output = frame->offset + (int64_t)frame->data.size;
	if (!show(client, data)) {
		error_set(client->error, ERROR_UNAVAILABLE, "the output cannot be written");
		finish(client, TERMINAL_LOST, 1);
	}
	if (client->output - client->acknowledged >= ACKNOWLEDGE_BYTES &&
	    send_frame(client, &(struct frame){ .kind = FRAME_TAKEN, .offset = client->output }))
		client->acknowledged = client->output;
}

static void take_exit(struct terminal_client *client, const struct frame *frame)
{
	char sentence[FRAME_DATA_BYTES + 32];

	if (frame->data.size > 0) {
		snprintf(sentence, sizeof(sentence), "the session has ended: %.*s",
		         (int)frame->data.size, frame->data.data);
		say(client, sentence);
	}
	send_frame(client, &(struct frame){ .kind = FRAME_LEAVE });
	finish(client, TERMINAL_EXITED, frame->code);
}

static void take_frame(void *context, struct text message, bool is_text)
{
	struct terminal_client *client = context;
	char sentence[FRAME_DATA_BYTES + 1];
	struct frame frame;

	if (client->ended || is_text || !frame_read(message, &frame))
		return;
	snprintf(sentence, sizeof(sentence), "%.*s", (int)frame.data.size, frame.data.data);
	switch (frame.kind) {
	case FRAME_BEGIN:
		take_begin(client, &frame);
		break;
	case FRAME_OUTPUT:
		take_output(client, &frame);
		break;
	case FRAME_TAKEN:
		client->taken = max64(client->taken, frame.offset);
		drop_input(client, min64(frame.offset, client->sent));
		send_input(client);
		break;
	case FRAME_NOTICE:
		say(client, sentence);
		break;
	case FRAME_EXIT:
		take_exit(client, &frame);
		break;
	case FRAME_REFUSED:
		fail(client, (enum error_code)frame.code, sentence);
		break;
	case FRAME_LEAVE:
		finish(client, TERMINAL_DETACHED, 0);
		break;
	default:
		break;
	}
}

/* The connection is gone: the end, where it was closed for a reason, or for another try. */
static void lose_socket(struct terminal_client *client)
{
	const char *reason;
	int code = socket_code(client->socket, &reason);
	int64_t now_ms = clock_steady_ms();

	bool later = code == CODE_ERROR + ERROR_UNAVAILABLE || code == CODE_ERROR + ERROR_FULL;

	if (code > CODE_ERROR && !later)
		fail(client, (enum error_code)(code - CODE_ERROR), reason);
	else if (code == CODE_POLICY)
		fail(client, ERROR_FORBIDDEN, reason);
	socket_close(client->socket);
	client->socket = NULL;
	client->begun = false;
	if (client->lost_ms == 0)
		client->lost_ms = now_ms;
	client->pause_ms =
	    client->pause_ms == 0 ? AGAIN_MS : min64(client->pause_ms * 2, AGAIN_MAX_MS);
	client->again_ms = now_ms + client->pause_ms;
}

static void connect_again(struct terminal_client *client)
{
	const struct job_terminal *wanted = client->wanted;
	struct error error = { 0 };
	struct buffer path = { 0 };

	if (client->lost_ms > 0 && !client->said_lost) {
		say(client, "the connection was lost: connecting again");
		client->said_lost = true;
	}
	buffer_text(&path, session_path(client->session, "/api/v1/jobs/%s/sessions/%s", wanted->job,
	                                wanted->id));
	buffer_print(&path, "?task=%lld", (long long)wanted->task);
	if (client->output >= 0)
		buffer_print(&path, "&offset=%lld", (long long)client->output);
	client->socket =
	    socket_open(&client->session->client, path.data, take_frame, client, &error);
	buffer_free(&path);
	int64_t now_ms = clock_steady_ms();
	bool later = error.code == ERROR_UNAVAILABLE || error.code == ERROR_FULL;
	if (client->socket)
		return;
	if (!later || (client->lost_ms == 0 && !client->said_lost) ||
	    now_ms - client->lost_ms > GIVE_UP_MS) {
		fail(client, error.code, error.text);
		return;
	}
	client->pause_ms = min64(max64(client->pause_ms * 2, AGAIN_MS), AGAIN_MAX_MS);
	client->again_ms = now_ms + client->pause_ms;
}

static void detach(struct terminal_client *client)
{
	send_frame(client, &(struct frame){ .kind = FRAME_LEAVE });
	finish(client, TERMINAL_DETACHED, 0);
}

static bool has_input_room(const struct terminal_client *client)
{
	return client->wanted->input && !client->input_ended &&
	       client->input.size < FRAME_INPUT_WINDOW;
}

static void read_input(struct terminal_client *client)
{
	char data[FRAME_DATA_BYTES];
	ssize_t got = read(STDIN_FILENO, data, sizeof(data));

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (got <= 0) {
		client->input_ended = true;
	} else if (!client->wanted->terminal) {
		buffer_bytes(&client->input, data, (size_t)got);
	} else if (detach_keys_filter(&client->keys, data, (size_t)got, &client->input)) {
		send_input(client);
		detach(client);
	}
	explicit_bzero(data, sizeof(data));
	if (!client->ended)
		send_input(client);
}

static void take_signals(struct terminal_client *client)
{
	char number;

	while (read(signal_pipe[0], &number, 1) == 1) {
		if (number == SIGWINCH)
			send_size(client);
		else if (number == SIGHUP || (client->wanted->terminal && number == SIGTERM))
			/* Nobody is there any more; the session waits for its client. */
			fail(client, ERROR_UNAVAILABLE, "the terminal was closed");
		else if (!client->begun)
			finish(client, TERMINAL_DETACHED, CLI_INTERRUPTED);
		else
			send_frame(client, &(struct frame){ .kind = FRAME_SIGNAL, .code = number });
	}
}

static void wait_for_something(struct terminal_client *client)
{
	struct pollfd polls[] = {
		{ .fd = signal_pipe[0], .events = POLLIN },
		{ .fd = client->socket ? socket_descriptor(client->socket) : -1, .events = POLLIN },
		{ .fd = has_input_room(client) ? STDIN_FILENO : -1, .events = POLLIN },
	};
	int64_t wait_ms = client->socket ? WAIT_MS : max64(client->again_ms - clock_steady_ms(), 0);

	bool waits = detach_keys_are_waiting(&client->keys);
	int ready = poll(polls, 3, (int)min64(wait_ms, waits ? KEY_MS : WAIT_MS));
	if (ready == 0 && waits) {
		detach_keys_flush(&client->keys, &client->input);
		send_input(client);
	}
	take_signals(client);
	if (!client->ended && polls[2].revents)
		read_input(client);
	if (!client->ended && client->socket && !socket_advance(client->socket) && !client->ended)
		lose_socket(client);
}

static bool make_raw(struct termios *before)
{
	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, before) != 0)
		return false;
	struct termios raw = *before;
	cfmakeraw(&raw);
	return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

enum terminal_end job_terminal_run(struct session *session, const struct job_terminal *wanted,
                                   int *code, struct error *error)
{
	struct terminal_client client = { .session = session,
		                          .wanted = wanted,
		                          .output = wanted->opened ? 0 : -1,
		                          .error = error };
	struct sigaction before[CAUGHT];
	struct termios settings;

	client.input_ended = !wanted->input && !wanted->terminal;
	*code = 1;
	if (!catch_signals(before)) {
		error_set(error, ERROR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
		return TERMINAL_LOST;
	}
	bool raw = wanted->terminal && make_raw(&settings);
	while (!client.ended) {
		if (!client.socket && clock_steady_ms() >= client.again_ms)
			connect_again(&client);
		if (!client.ended)
			wait_for_something(&client);
	}
	if (raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &settings);
	release_signals(before);
	socket_close(client.socket);
	if (client.input.size > 0)
		explicit_bzero(client.input.data, client.input.size);
	buffer_free(&client.input);
	*code = client.code;
	return client.end;
}
