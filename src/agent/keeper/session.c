/* session.c - an interactive session of a task */
#include "agent/keeper/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "channel/frame.h"

enum {
	INPUT_BYTES = 2 * FRAME_INPUT_WINDOW,
	REPLAY_BYTES = 16 << 10, /* to a client that has seen nothing */
	HOLD_MS = 60000,
	KILL_MS = 5000,
	WARN_MS = 60000,
	PART_BYTES = 8 << 10, /* of a pipe, read at once */
};

struct session *session_open(const char *id, bool terminal, int64_t now_ms)
{
	struct session *session = NEW(struct session);

	*session = (struct session){ .terminal = terminal,
		                     .in = -1,
		                     .out = -1,
		                     .errors = -1,
		                     .link = -1,
		                     .told_written = -1,
		                     .lost_ms = now_ms,
		                     .active_ms = now_ms };
	snprintf(session->id, sizeof(session->id), "%s", id);
	session->ring = memory_alloc(SESSION_RING_BYTES);
	session->input = memory_alloc(INPUT_BYTES);
	return session;
}

static void close_file(int *file)
{
	if (*file >= 0)
		close(*file);
	*file = -1;
}

void session_free(struct session *session)
{
	close_file(&session->in);
	close_file(&session->out);
	close_file(&session->errors);
	close_file(&session->link);
	/* Passwords are typed, and shown. */
	if (session->received > 0)
		explicit_bzero(session->input, INPUT_BYTES);
	explicit_bzero(session->ring, (size_t)min64(session->end, SESSION_RING_BYTES));
	free(session->ring);
	free(session->input);
	free(session);
}

static bool is_nonblocking(int file)
{
	return file >= 0 && fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK) == 0;
}

static void set_size(const struct session *session, int columns, int rows)
{
	struct winsize size = { .ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows };

	if (session->terminal && session->out >= 0 && columns > 0 && rows > 0)
		ioctl(session->out, TIOCSWINSZ, &size);
}

int session_open_terminal(struct session *session, int64_t uid, int columns, int rows)
{
	char name[64];
	int slave = -1;

	session->out = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (session->out >= 0 && grantpt(session->out) == 0 && unlockpt(session->out) == 0 &&
	    ptsname_r(session->out, name, sizeof(name)) == 0)
		slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave >= 0 && uid >= 0 && fchown(slave, (uid_t)uid, (gid_t)-1) != 0)
		close_file(&slave);
	if (slave >= 0)
		session->in = fcntl(session->out, F_DUPFD_CLOEXEC, 0);
	if (slave >= 0 && (session->in < 0 || !is_nonblocking(session->out)))
		close_file(&slave);
	set_size(session, columns, rows);
	return slave;
}

bool session_open_pipes(struct session *session, int ends[3])
{
	int *ours[] = { &session->in, &session->out, &session->errors };
	bool made = true;

	for (int i = 0; i < 3; i++) {
		int ends_of_pipe[2] = { -1, -1 };
		made = made && pipe2(ends_of_pipe, O_CLOEXEC) == 0;
		ends[i] = ends_of_pipe[i == 0 ? 0 : 1];
		*ours[i] = ends_of_pipe[i == 0 ? 1 : 0];
		made = made && is_nonblocking(*ours[i]);
	}
	for (int i = 0; i < 3 && !made; i++)
		close_file(&ends[i]);
	return made;
}

bool session_connect(struct session *session, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons((uint16_t)port),
		                  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int one = 1;

	session->out = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	session->in = session->out < 0 ? -1 : fcntl(session->out, F_DUPFD_CLOEXEC, 0);
	if (session->in < 0)
		return false;
	setsockopt(session->out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	session->connected = true;
	session->connecting = true;
	return connect(session->out, (struct sockaddr *)&to, sizeof(to)) == 0 ||
	       errno == EINPROGRESS;
}

/* Sends one frame. False: not now, or never. */
static bool send_frame(struct session *session, const struct frame *frame)
{
	struct buffer bytes = { 0 };
	bool sent = false;

	if (session->link < 0)
		return false;
	frame_write(&bytes, frame);
	ssize_t put =
	    send(session->link, bytes.data, bytes.size, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR);
	sent = put == (ssize_t)bytes.size;
	session->link_blocked = put < 0 && (errno == EAGAIN || errno == ENOBUFS);
	buffer_free(&bytes);
	return sent;
}

void session_refuse(int link, int code, const char *reason)
{
	struct session nobody = { .link = link };

	send_frame(&nobody,
	           &(struct frame){ .kind = FRAME_REFUSED, .code = code, .data = text_of(reason) });
	close(link);
}

static void lose_link(struct session *session, int64_t now_ms)
{
	close_file(&session->link);
	session->link_blocked = false;
	session->lost_ms = now_ms;
	if (!session->id[0])
		session->gone = true;
}

static int64_t first_kept(const struct session *session)
{
	return max64(session->end - SESSION_RING_BYTES, 0);
}

bool session_can_continue(const struct session *session, int64_t offset)
{
	return session->terminal || (offset >= first_kept(session) && offset <= session->end);
}

void session_link(struct session *session, int link, int64_t offset, int64_t now_ms)
{
	int64_t from = offset >= 0 ? offset : max64(session->end - REPLAY_BYTES, 0);

	if (session->link >= 0) {
		send_frame(session, &(struct frame){ .kind = FRAME_NOTICE,
		                                     .data = TEXT("another client has attached "
		                                                  "to this session") });
		send_frame(session, &(struct frame){ .kind = FRAME_LEAVE });
		lose_link(session, now_ms);
	}
	session->link = link;
	session->sent = session->taken =
	    max64(first_kept(session), from < session->end ? from : session->end);
	session->free_runs = session->greeted = session->told_exit = session->link_blocked = false;
	session->told_written = -1;
	session->active_ms = now_ms;
	session->warned = false;
}

void session_exited(struct session *session, int code)
{
	session->pid = 0;
	session->exited = true;
	session->code = code;
}

static void signal_all(const struct session *session, int number)
{
	pid_t front = session->terminal && session->out >= 0 ? tcgetpgrp(session->out) : 0;

	if (session->pid > 0)
		kill(-session->pid, number);
	if (session->pid > 0 && front > 1 && front != session->pid)
		kill(-front, number);
}

void session_hang_up(struct session *session, const char *reason, int64_t now_ms)
{
	if (session->exited || session->kill_ms > 0)
		return;
	session->reason = reason;
	session->kill_ms = now_ms + KILL_MS;
	if (session->pid <= 0) {
		session_exited(session, 0);
		return;
	}
	signal_all(session, SIGHUP);
	signal_all(session, SIGCONT);
}

/* Bytes that may be read now. */
static size_t room(const struct session *session)
{
	int64_t held = session->end - session->taken;

	if (session->free_runs)
		return SESSION_RING_BYTES;
	return held < SESSION_RING_BYTES ? (size_t)(SESSION_RING_BYTES - held) : 0;
}

static void keep_output(struct session *session, const char *data, size_t size)
{
	while (size > 0) {
		size_t at = (size_t)(session->end % SESSION_RING_BYTES);
		size_t part = SESSION_RING_BYTES - at < size ? SESSION_RING_BYTES - at : size;
		memcpy(session->ring + at, data, part);
		session->end += (int64_t)part;
		data += part;
		size -= part;
	}
	/* Nobody waits for what was overwritten. */
	session->taken = max64(session->taken, first_kept(session));
	session->sent = max64(session->sent, session->taken);
}

/* Reads a part of one stream. False: there is none now; a stream that has ended is closed. */
static bool read_stream(struct session *session, int *file, int stream)
{
	char data[STREAM_HEAD_BYTES + PART_BYTES];
	size_t head = session->terminal || session->connected ? 0 : STREAM_HEAD_BYTES;
	size_t most = room(session);

	if (*file < 0 || session->connecting || most <= head)
		return false;
	most = most - head < PART_BYTES ? most - head : PART_BYTES;
	ssize_t got = read(*file, data + head, most);
	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		/* What is left behind in the background does not keep it. */
		if (session->exited && errno == EAGAIN)
			close_file(file);
		return false;
	}
	if (got <= 0) {
		/* A terminal without a process fails; its command may be about to end. */
		if (session->connected)
			session_exited(session, 0);
		close_file(file);
		return false;
	}
	if (head > 0)
		stream_head_write(data, stream, (size_t)got);
	keep_output(session, data, head + (size_t)got);
	if (session->log)
		output_append(session->log, data + head, (size_t)got);
	return true;
}

static bool read_output(struct session *session)
{
	bool moved = false;

	for (int i = 0; i < 64 && read_stream(session, &session->out, 1); i++)
		moved = true;
	for (int i = 0; i < 64 && read_stream(session, &session->errors, 2); i++)
		moved = true;
	return moved;
}

/* What a terminal's end of input is depends on its settings. */
static void end_input(struct session *session)
{
	struct termios settings;

	if (session->terminal && session->in >= 0) {
		char end = tcgetattr(session->in, &settings) == 0 ? (char)settings.c_cc[VEOF] : 4;
		if (write(session->in, &end, 1) < 0 && errno == EAGAIN)
			return;
	} else if (session->connected && session->in >= 0) {
		shutdown(session->in, SHUT_WR);
	}
	close_file(&session->in);
}

static void write_input(struct session *session)
{
	while (session->in >= 0 && !session->connecting &&
	       session->input_at < session->input_size) {
		ssize_t put = write(session->in, session->input + session->input_at,
		                    session->input_size - session->input_at);
		if (put < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (put <= 0)
			close_file(&session->in);
		else
			session->input_at += (size_t)put;
	}
	/* Nobody reads the rest. */
	if (session->in < 0)
		session->input_at = session->input_size;
	if (session->input_at < session->input_size || session->connecting)
		return;
	explicit_bzero(session->input, session->input_size);
	session->input_at = session->input_size = 0;
	if (session->input_ended && session->in >= 0)
		end_input(session);
}

static int64_t session_written(const struct session *session)
{
	return session->received - (int64_t)(session->input_size - session->input_at);
}

/* False: it is not what follows, or more than the window allows. */
static bool take_input(struct session *session, const struct frame *frame)
{
	int64_t before = session->received - frame->offset;
	struct text data = frame->data;

	if (before < 0)
		return false;
	if (before >= (int64_t)data.size)
		return true;
	data.data += before;
	data.size -= (size_t)before;
	if (session->input_at > 0) {
		memmove(session->input, session->input + session->input_at,
		        session->input_size - session->input_at);
		session->input_size -= session->input_at;
		session->input_at = 0;
	}
	if (session->input_size + data.size > INPUT_BYTES || session->input_ended)
		return false;
	memcpy(session->input + session->input_size, data.data, data.size);
	session->input_size += data.size;
	session->received += (int64_t)data.size;
	return true;
}

static bool may_be_sent(int number)
{
	static const int numbers[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGKILL, SIGTERM,
		                       SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGALRM };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

static void take_leave(struct session *session, int64_t now_ms)
{
	lose_link(session, now_ms);
	if (session->exited)
		session->gone = true;
	else if (session->terminal)
		session->free_runs = true;
	else
		session_hang_up(session, "its client has left", now_ms);
}

/* False: the client breaks the rules. */
static bool take_frame(struct session *session, const struct frame *frame, int64_t now_ms)
{
	switch (frame->kind) {
	case FRAME_INPUT:
		session->active_ms = now_ms;
		return take_input(session, frame);
	case FRAME_INPUT_END:
		if (frame->offset == session->received)
			session->input_ended = true;
		return frame->offset <= session->received;
	case FRAME_WINDOW:
		set_size(session, frame->columns, frame->rows);
		return true;
	case FRAME_SIGNAL:
		if (may_be_sent(frame->code))
			signal_all(session, frame->code);
		return may_be_sent(frame->code);
	case FRAME_TAKEN:
		session->taken = max64(session->taken, min64(frame->offset, session->sent));
		return true;
	case FRAME_LEAVE:
		take_leave(session, now_ms);
		return true;
	default:
		return false;
	}
}

static void read_link(struct session *session, int64_t now_ms)
{
	static char data[FRAME_BYTES_MAX + 1];
	struct frame frame;

	while (session->link >= 0) {
		ssize_t got = recv(session->link, data, sizeof(data), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (got <= 0 || !frame_read((struct text){ data, (size_t)got }, &frame) ||
		    !take_frame(session, &frame, now_ms)) {
			if (session->link >= 0)
				lose_link(session, now_ms);
			break;
		}
		write_input(session);
	}
	explicit_bzero(data, sizeof(data));
}

static bool greet(struct session *session)
{
	if (!session->greeted && !session->connecting)
		session->greeted =
		    send_frame(session, &(struct frame){ .kind = FRAME_BEGIN,
		                                         .offset = session->sent,
		                                         .input_offset = session->received,
		                                         .terminal = session->terminal ||
		                                                     session->connected });
	if (session->greeted && session->told_written < 0)
		session->told_written = session->received;
	return session->greeted;
}

static bool send_output(struct session *session)
{
	int64_t most = min64(session->end, session->taken + FRAME_OUTPUT_WINDOW);

	while (session->sent < most) {
		size_t at = (size_t)(session->sent % SESSION_RING_BYTES);
		size_t size = (size_t)min64(most - session->sent, FRAME_DATA_BYTES);
		if (size > SESSION_RING_BYTES - at)
			size = SESSION_RING_BYTES - at;
		if (!send_frame(session, &(struct frame){ .kind = FRAME_OUTPUT,
		                                          .offset = session->sent,
		                                          .data = { session->ring + at, size } }))
			return false;
		session->sent += (int64_t)size;
	}
	return session->sent == session->end;
}

static void write_link(struct session *session)
{
	if (session->link < 0 || !greet(session))
		return;
	int64_t now_written = session_written(session);
	/* A frame for every key would be as many again as those that echo them. */
	if (now_written - session->told_written >= FRAME_INPUT_WINDOW / 4 &&
	    send_frame(session, &(struct frame){ .kind = FRAME_TAKEN, .offset = now_written }))
		session->told_written = now_written;
	if (!send_output(session) || !session->exited || session->told_exit ||
	    (session->out >= 0 && !session->connected) || session->errors >= 0)
		return;
	session->told_exit = send_frame(
	    session, &(struct frame){ .kind = FRAME_EXIT,
	                              .code = session->code,
	                              .data = text_of(session->reason ? session->reason : "") });
}

/* A connection that is under way has been made, or not. */
static void look_at_connection(struct session *session, int64_t now_ms)
{
	struct pollfd file = { .fd = session->out, .events = POLLOUT };
	int failed = 0;
	socklen_t size = sizeof(failed);

	if (!session->connecting || poll(&file, 1, 0) <= 0)
		return;
	session->connecting = false;
	getsockopt(session->out, SOL_SOCKET, SO_ERROR, &failed, &size);
	if (failed == 0)
		return;
	session_refuse(session->link, ERROR_CONFLICT, strerror(failed));
	session->link = -1;
	lose_link(session, now_ms);
}

/* Warns of the end of an idle session, and ends it. When to look again. */
static int64_t watch_idleness(struct session *session, int64_t now_ms)
{
	int64_t end_ms = session->active_ms + session->idle_ms;
	int64_t warn_ms = end_ms - min64(WARN_MS, session->idle_ms / 2);

	if (session->idle_ms <= 0 || session->exited || session->kill_ms > 0)
		return INT64_MAX;
	if (now_ms >= end_ms) {
		session_hang_up(session, "it was idle for too long", now_ms);
		return now_ms;
	}
	if (now_ms >= warn_ms && !session->warned) {
		char text[80];
		snprintf(text, sizeof(text), "this session is idle, and ends in %lld s",
		         (long long)(end_ms - now_ms + 999) / 1000);
		session->warned = send_frame(session, &(struct frame){ .kind = FRAME_NOTICE,
		                                                       .data = text_of(text) }) ||
		                  session->link < 0;
	}
	return now_ms < warn_ms ? warn_ms : end_ms;
}

/* What becomes of a session without a client. When to look again. */
static int64_t watch_link(struct session *session, int64_t now_ms)
{
	int64_t end_ms = session->lost_ms + HOLD_MS;

	if (session->link >= 0 || session->free_runs)
		return INT64_MAX;
	if (now_ms < end_ms)
		return end_ms;
	if (session->terminal && !session->exited)
		session->free_runs = true;
	else if (session->exited)
		session->gone = true;
	else
		session_hang_up(session, "its client did not come back", now_ms);
	return now_ms + HOLD_MS;
}

static int64_t watch_end(struct session *session, int64_t now_ms)
{
	if (session->kill_ms == 0 || session->exited)
		return INT64_MAX;
	if (now_ms < session->kill_ms)
		return session->kill_ms;
	signal_all(session, SIGKILL);
	session->kill_ms = now_ms + KILL_MS;
	return session->kill_ms;
}

int64_t session_move(struct session *session, int64_t now_ms)
{
	look_at_connection(session, now_ms);
	read_link(session, now_ms);
	write_input(session);
	if (read_output(session)) {
		session->active_ms = now_ms;
		session->warned = false;
	}
	write_link(session);
	if (session->exited && session->free_runs && session->link < 0) {
		session->free_runs = false;
		session->lost_ms = now_ms;
	}
	return min64(watch_end(session, now_ms),
	             min64(watch_idleness(session, now_ms), watch_link(session, now_ms)));
}

nfds_t session_poll(const struct session *session, struct pollfd *polls)
{
	nfds_t count = 0;
	bool writes =
	    session->in >= 0 && (session->input_at < session->input_size || session->connecting);
	bool reads = room(session) > STREAM_HEAD_BYTES && !session->connecting;

	if (session->link >= 0)
		polls[count++] = (struct pollfd){
			.fd = session->link,
			.events = (short)(POLLIN | (session->link_blocked ? POLLOUT : 0)),
		};
	if (writes)
		polls[count++] = (struct pollfd){ .fd = session->in, .events = POLLOUT };
	if (reads && session->out >= 0)
		polls[count++] = (struct pollfd){ .fd = session->out, .events = POLLIN };
	if (reads && session->errors >= 0)
		polls[count++] = (struct pollfd){ .fd = session->errors, .events = POLLIN };
	return count;
}

bool session_is_busy(const struct session *session)
{
	return session->link >= 0 && !session->told_exit;
}
