/* job_forward.c - connections to this machine, carried to a port of a task */
#include "cli/job/job_forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "channel/frame.h"
#include "cli/client/socket.h"

enum {
	BACKLOG = 64,
	CONNECTIONS_MAX = 64,
	LOOK_MS = 1000,
	ANSWER_MS = 30000,
	CODE_ERROR = 4000, /* of WebSocket: and an enum error_code */
};

/* One connection. `output` has what the task sent and the program here has not taken. */
struct carried {
	struct socket *socket;
	int file;
	bool begun, input_ended, output_ended;
	int64_t sent, taken; /* to the task */
	int64_t got;         /* from it */
	struct buffer output;
	struct error error;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

int job_forward_listen(int64_t *port, struct error *error)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons((uint16_t)*port),
		                       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	int one = 1, file = socket(AF_INET, SOCK_STREAM, 0);

	if (file >= 0) {
		setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		fcntl(file, F_SETFL, O_NONBLOCK);
	}
	if (file < 0 || bind(file, (struct sockaddr *)&address, size) != 0 ||
	    listen(file, BACKLOG) != 0 ||
	    getsockname(file, (struct sockaddr *)&address, &size) != 0) {
		error_set(error, ERROR_CONFLICT, "cannot listen on 127.0.0.1:%lld: %s",
		          (long long)*port, strerror(errno));
		if (file >= 0)
			close(file);
		return -1;
	}
	*port = ntohs(address.sin_port);
	return file;
}

static bool carried_send(struct carried *carried, const struct frame *frame)
{
	struct buffer bytes = { 0 };

	frame_write(&bytes, frame);
	bool sent = socket_send(carried->socket, (struct text){ bytes.data, bytes.size });
	buffer_free(&bytes);
	return sent;
}

static void take_frame(void *context, struct text message, bool is_text)
{
	struct carried *carried = context;
	struct frame frame;

	if (is_text || !frame_read(message, &frame))
		return;
	switch (frame.kind) {
	case FRAME_BEGIN:
		carried->begun = true;
		break;
	case FRAME_OUTPUT:
		buffer_bytes(&carried->output, frame.data.data, frame.data.size);
		carried->got = frame.offset + (int64_t)frame.data.size;
		break;
	case FRAME_TAKEN:
		carried->taken = max64(carried->taken, frame.offset);
		break;
	case FRAME_EXIT:
		carried->output_ended = true;
		break;
	case FRAME_REFUSED:
		error_set(&carried->error, (enum error_code)frame.code, "%.*s",
		          (int)frame.data.size, frame.data.data);
		break;
	default:
		break;
	}
}

static bool carried_open(struct carried *carried, struct session *session,
                         const struct job_forward *forward)
{
	struct buffer path = { 0 };

	buffer_text(&path, session_path(session, "/api/v1/jobs/%s/forward", forward->job));
	buffer_print(&path, "?task=%lld&port=%lld", (long long)forward->task,
	             (long long)forward->port);
	carried->socket =
	    socket_open(&session->client, path.data, take_frame, carried, &carried->error);
	buffer_free(&path);
	return carried->socket != NULL;
}

/* Takes what has come. False: the connection has ended, with the reason where there is one. */
static bool carried_advance(struct carried *carried)
{
	const char *reason;

	if (socket_advance(carried->socket) && carried->error.code == ERROR_NONE)
		return true;
	int code = socket_code(carried->socket, &reason);
	if (carried->error.code == ERROR_NONE && *reason)
		error_set(&carried->error,
		          code > CODE_ERROR ? (enum error_code)(code - CODE_ERROR)
		                            : ERROR_UNAVAILABLE,
		          "%s", reason);
	return false;
}

bool job_forward_probe(struct session *session, const struct job_forward *forward,
                       struct error *error)
{
	struct carried carried = { .file = -1 };
	int64_t end_ms = clock_steady_ms() + ANSWER_MS;
	bool open = carried_open(&carried, session, forward);

	while (open && !carried.begun && (open = carried_advance(&carried)) &&
	       clock_steady_ms() < end_ms) {
		struct pollfd wait = { .fd = socket_descriptor(carried.socket), .events = POLLIN };
		poll(&wait, 1, LOOK_MS);
	}
	if (carried.begun)
		carried_send(&carried, &(struct frame){ .kind = FRAME_LEAVE });
	else
		error_set(error,
		          carried.error.code != ERROR_NONE ? carried.error.code : ERROR_UNAVAILABLE,
		          "%s",
		          carried.error.code != ERROR_NONE ? carried.error.text
		                                           : "the task does not answer");
	socket_close(carried.socket);
	buffer_free(&carried.output);
	return carried.begun;
}

/* From the program here to the task. False: it has gone. */
static bool read_file(struct carried *carried)
{
	char data[FRAME_DATA_BYTES];
	ssize_t got = recv(carried->file, data, sizeof(data), MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0) {
		carried->input_ended = true;
		return carried_send(
		    carried, &(struct frame){ .kind = FRAME_INPUT_END, .offset = carried->sent });
	}
	bool sent = carried_send(carried, &(struct frame){ .kind = FRAME_INPUT,
	                                                   .offset = carried->sent,
	                                                   .data = { data, (size_t)got } });
	carried->sent += got;
	return sent;
}

/* From the task to the program here. False: it has gone. */
static bool write_file(struct carried *carried)
{
	struct buffer *output = &carried->output;

	if (output->size == 0)
		return true;
	ssize_t put = send(carried->file, output->data, output->size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (put < 0)
		return errno == EAGAIN || errno == EINTR;
	memmove(output->data, output->data + put, output->size - (size_t)put);
	output->size -= (size_t)put;
	return carried_send(
	    carried,
	    &(struct frame){ .kind = FRAME_TAKEN, .offset = carried->got - (int64_t)output->size });
}

static bool carried_move(struct carried *carried)
{
	bool reads = carried->begun && !carried->input_ended &&
	             carried->sent - carried->taken < FRAME_INPUT_WINDOW - FRAME_DATA_BYTES;
	struct pollfd polls[] = {
		{ .fd = socket_descriptor(carried->socket), .events = POLLIN },
		{ .fd = carried->file,
		  .events =
		      (short)((reads ? POLLIN : 0) | (carried->output.size > 0 ? POLLOUT : 0)) },
	};

	if (!reads && carried->output.size == 0)
		polls[1].fd = -1;
	poll(polls, 2, LOOK_MS);
	if (reads && polls[1].revents && !read_file(carried))
		return false;
	if (!carried_advance(carried)) {
		carried->output_ended = true;
		polls[0].revents = 0;
	}
	return write_file(carried) && !(carried->output_ended && carried->output.size == 0);
}

_Noreturn static void carry(struct session *session, const struct job_forward *forward, int file)
{
	struct carried carried = { .file = file };
	int one = 1;

	setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (carried_open(&carried, session, forward))
		while (carried_move(&carried))
			;
	if (carried.error.code != ERROR_NONE)
		fprintf(stderr, "port %lld of %s: %s\n", (long long)forward->port, forward->job,
		        carried.error.text);
	else
		carried_send(&carried, &(struct frame){ .kind = FRAME_LEAVE });
	socket_close(carried.socket);
	_exit(0);
}

static int count_children(int count)
{
	while (count > 0 && waitpid(-1, NULL, WNOHANG) > 0)
		count--;
	return count;
}

void job_forward_serve(struct session *session, const struct job_forward *forward, int listener,
                       bool (*over)(void *context), void *context)
{
	struct sigaction action = { .sa_handler = on_interrupt };
	int children = 0;
	int64_t look_ms = clock_steady_ms() + LOOK_MS;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	while (!interrupted) {
		struct pollfd wait = { .fd = children < CONNECTIONS_MAX ? listener : -1,
			               .events = POLLIN };
		poll(&wait, 1, LOOK_MS);
		children = count_children(children);
		int file = wait.revents ? accept(listener, NULL, NULL) : -1;
		pid_t pid = file >= 0 ? fork() : -1;
		if (pid == 0) {
			close(listener);
			carry(session, forward, file);
		}
		children += pid > 0;
		if (file >= 0)
			close(file);
		if (over && clock_steady_ms() >= look_ms) {
			if (over(context))
				break;
			look_ms = clock_steady_ms() + LOOK_MS;
		}
	}
	close(listener);
}
