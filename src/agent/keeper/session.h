/* session.h - an interactive session of a task: a command with a terminal or pipes, or a connection
 * to one of its ports, and the client that it is linked to through the agent */
#ifndef AGENT_KEEPER_SESSION_H
#define AGENT_KEEPER_SESSION_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/host/output.h"
#include "base/text.h"

enum {
	SESSION_ID_SIZE = 40,
	SESSION_RING_BYTES = 512 << 10, /* of output that is kept: a window, and what came since */
	SESSION_POLLS = 4,
};
#define SESSION_MAIN "main" /* the id of the session of the task's own command */

/* The link is a socket of frames (see channel/frame.h); it is lost when the agent or the
 * scheduler restarts, and the session waits for another one with the output that was not
 * taken. After HOLD_MS without a link, or when the client has left, a terminal runs on and
 * overwrites old output; a session without a terminal is hung up. */
struct session {
	struct session *next;
	char id[SESSION_ID_SIZE]; /* "": a forwarded connection, which ends with its link */
	pid_t pid;                /* its first process; 0: none, or it has ended */
	bool terminal;
	int in, out, errors; /* our ends; -1: closed. A terminal or a connection is `out`, and
	                        `in` is a duplicate */
	bool connecting, connected;
	char *ring; /* the last bytes before `end` */
	int64_t end, sent, taken;
	bool free_runs; /* what was not taken is overwritten */
	char *input;    /* received and not written: from `input_at` to `input_size` */
	size_t input_at, input_size;
	int64_t received, told_written;
	bool input_ended; /* nothing follows what was received */
	int link;         /* -1: none */
	bool link_blocked, greeted, told_exit;
	bool exited, gone; /* gone: to be removed */
	int code;
	const char *reason;         /* why it ended, where that was not its own doing */
	int64_t lost_ms, active_ms; /* when the link was lost; when something moved last */
	int64_t idle_ms;            /* it ends after so long without input and output; 0: never */
	int64_t kill_ms;            /* when it is killed, having been hung up; 0: it was not */
	bool warned;
	struct output_writer *log; /* gets the output as well; NULL: nothing does */
};

/* Fields that are not files, a process or a link are set. */
struct session *session_open(const char *id, bool terminal, int64_t now_ms);
void session_free(struct session *session);

/* Opens a pseudo-terminal of this size that `uid` (-1: nobody else) may open again: its slave, or
 * -1 with errno. */
int session_open_terminal(struct session *session, int64_t uid, int columns, int rows);
/* Makes the pipes of a session without a terminal; the ends of the command are in `ends`: input,
 * output, errors. False with errno. */
bool session_open_pipes(struct session *session, int ends[3]);
/* Begins to connect to a port of this machine. False with errno. */
bool session_connect(struct session *session, int port);

/* The link becomes the session's; one that it had is told so and closed. Output follows from
 * `offset`, or from the first byte that is kept; negative: from a little before the end. */
void session_link(struct session *session, int link, int64_t offset, int64_t now_ms);
/* True if output can follow from there: without a terminal it is marked by streams, and none of it
 * may be left out. */
bool session_can_continue(const struct session *session, int64_t offset);
/* Its first process has ended, with a code as a shell shows it. */
void session_exited(struct session *session, int code);
/* Ends it; `reason` is for people, and constant. */
void session_hang_up(struct session *session, const char *reason, int64_t now_ms);

/* What to wait for: how many of SESSION_POLLS. */
nfds_t session_poll(const struct session *session, struct pollfd *polls);
/* Moves what can be moved without waiting. Returns when to call again at the latest. */
int64_t session_move(struct session *session, int64_t now_ms);
/* True while output or the exit code is on its way to a client that reads. */
bool session_is_busy(const struct session *session);

/* Refuses a link, and closes it. `code` is an enum error_code. */
void session_refuse(int link, int code, const char *reason);

#endif
