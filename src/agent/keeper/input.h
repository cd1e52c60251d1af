/* input.h - the standard input of a work: from the agent's FIFO through the keeper to a pipe */
#ifndef AGENT_KEEPER_INPUT_H
#define AGENT_KEEPER_INPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The agent writes frames to the FIFO, each in one write of at most PIPE_BUF bytes, so a frame is
 * in it whole or not at all, also if the agent is killed. A frame has the offset of its bytes; one
 * without bytes is the end of the input. The keeper passes on what is at the offset that is due and
 * drops what it has passed on before: an agent that does not know whether its last frame was
 * written sends it again. */
enum { INPUT_FRAME_BYTES = 4096, INPUT_DATA_BYTES = INPUT_FRAME_BYTES - 16 };
struct input_frame {
	int64_t offset;
	int64_t size; /* 0: the end */
	char data[INPUT_DATA_BYTES];
};

/* The bytes of a frame that are written. */
size_t input_frame_bytes(const struct input_frame *frame);

/* The keeper's side. At most a frame is in memory; while the work does not read, the FIFO fills. */
struct input_relay {
	int from;      /* the FIFO; -1: there is no input, or no more */
	int to;        /* the pipe */
	int64_t taken; /* bytes that were read from the FIFO */
	struct input_frame frame;
	size_t at, end; /* what is left of the frame's data */
};

/* Opens the FIFO, and makes a pipe that `uid` and `gid` may open again (-1: nobody else). The
 * read end, or -1 with errno. */
int input_relay_open(struct input_relay *relay, const char *path, int64_t uid, int64_t gid);
/* What to wait for: one entry. */
struct pollfd input_relay_poll(const struct input_relay *relay);
/* Moves what can be moved without waiting. When the work reads no more, or the end has come, both
 * files are closed: the agent finds the FIFO without a reader. */
void input_relay_move(struct input_relay *relay);
void input_relay_close(struct input_relay *relay);

/* Beside the status of a work; to be freed. */
char *input_path(const char *status_path);
char *input_offset_path(const char *status_path);

#endif
