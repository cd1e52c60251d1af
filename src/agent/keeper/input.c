/* input.c - the standard input of a work: from the agent's FIFO through the keeper to a pipe */
#include "agent/keeper/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "base/error.h"

_Static_assert(sizeof(struct input_frame) <= PIPE_BUF, "a frame is written whole");

size_t input_frame_bytes(const struct input_frame *frame)
{
	INVARIANT(frame->size >= 0 && frame->size <= INPUT_DATA_BYTES);
	return offsetof(struct input_frame, data) + (size_t)frame->size;
}

char *input_path(const char *status_path)
{
	return file_path("%s.input", status_path);
}

char *input_offset_path(const char *status_path)
{
	return file_path("%s.input-offset", status_path);
}

int input_relay_open(struct input_relay *relay, const char *path, int64_t uid, int64_t gid)
{
	int ends[2];

	/* For writing too: it is never without a writer, so an agent that leaves is no end. */
	relay->from = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	relay->to = -1;
	if (relay->from < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) != 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0 ||
	    (uid >= 0 && fchown(ends[0], (uid_t)uid, (gid_t)gid) != 0)) {
		input_relay_close(relay);
		return -1;
	}
	relay->to = ends[1];
	return ends[0];
}

void input_relay_close(struct input_relay *relay)
{
	if (relay->from >= 0)
		close(relay->from);
	if (relay->to >= 0)
		close(relay->to);
	relay->from = relay->to = -1;
}

struct pollfd input_relay_poll(const struct input_relay *relay)
{
	/* An error of the pipe is told without being asked for: the work reads no more. */
	if (relay->at < relay->end)
		return (struct pollfd){ .fd = relay->to, .events = POLLOUT };
	return (struct pollfd){ .fd = relay->from, .events = POLLIN };
}

/* The next bytes that are due; false: there are none now, or the input has ended. */
static bool read_frame(struct input_relay *relay)
{
	const struct input_frame *frame = &relay->frame;
	size_t head = offsetof(struct input_frame, data);
	ssize_t got;

	do
		got = read(relay->from, &relay->frame, head);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return false;
	bool whole = got == (ssize_t)head && frame->size >= 0 && frame->size <= INPUT_DATA_BYTES &&
	             frame->offset >= 0 && frame->offset <= relay->taken;
	if (whole && frame->size > 0)
		whole = read(relay->from, relay->frame.data, (size_t)frame->size) == frame->size;
	if (!whole || frame->size == 0) {
		input_relay_close(relay);
		return false;
	}
	int64_t end = frame->offset + frame->size;
	int64_t begin = relay->taken < end ? relay->taken : end;
	relay->at = (size_t)(begin - frame->offset);
	relay->end = (size_t)frame->size;
	relay->taken = end > relay->taken ? end : relay->taken;
	return true;
}

void input_relay_move(struct input_relay *relay)
{
	struct pollfd pipe = { .fd = relay->to };

	if (relay->from >= 0 && poll(&pipe, 1, 0) > 0 && (pipe.revents & POLLERR))
		input_relay_close(relay);
	while (relay->from >= 0) {
		if (relay->at >= relay->end && !read_frame(relay))
			return;
		ssize_t put =
		    write(relay->to, relay->frame.data + relay->at, relay->end - relay->at);
		if (put < 0 && errno == EAGAIN)
			return;
		if (put < 0 && errno != EINTR)
			input_relay_close(relay);
		else if (put > 0)
			relay->at += (size_t)put;
	}
}
