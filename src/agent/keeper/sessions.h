/* sessions.h - the interactive sessions of a work, which its keeper holds: they outlive the agent,
 * and end with the work */
#ifndef AGENT_KEEPER_SESSIONS_H
#define AGENT_KEEPER_SESSIONS_H

#include "agent/keeper/session.h"
#include "agent/keeper/spec.h"

enum { SESSIONS_MAX = 256 };

/* The first message on a connection to the keeper's socket, from its agent. An agent and a keeper
 * of different versions meet. With CALL_OPEN comes a file with the spec of the command: arguments,
 * environment and directory are read, and the rest is as it is for the work. */
enum call_kind { CALL_OPEN = 1, CALL_ATTACH, CALL_FORWARD };
enum { CALL_VERSION = 1 };
struct session_call {
	int32_t version, kind;
	char id[SESSION_ID_SIZE];
	int64_t offset; /* of output that the client has; negative: none */
	int64_t idle_ms;
	int32_t columns, rows, terminal, port;
};

struct sessions {
	const struct spec *spec; /* of the work */
	int listener;            /* -1: there are none */
	struct session *first;
	int count;
	struct pollfd *polls;
};

/* Listens where spec->session_path says. Sessions are refused where that does not work. */
void sessions_open(struct sessions *sessions, const struct spec *spec);
void sessions_close(struct sessions *sessions);

/* The session of the work's own command: its slave terminal, or -1 with errno. The output goes to
 * `log` too. */
int sessions_open_main(struct sessions *sessions, struct output_writer *log);
void sessions_main_started(struct sessions *sessions, pid_t pid);

/* What to wait for. The array has room for `before` entries of the caller in front. */
struct pollfd *sessions_poll(struct sessions *sessions, nfds_t before, nfds_t *count);
/* Takes connections, moves bytes. When to call again at the latest, by clock_boot_ms(). */
int64_t sessions_move(struct sessions *sessions);
/* A child of the keeper has ended. True if it was a session's: sessions_move() has to tell. */
bool sessions_reaped(struct sessions *sessions, pid_t pid, int status);
/* The work has ended: so will all of them, and this is why. */
void sessions_foresee_end(struct sessions *sessions);
/* None of their processes is left. */
void sessions_end(struct sessions *sessions);
/* True while clients wait for the last output of sessions that have ended. */
bool sessions_are_busy(const struct sessions *sessions);

/* Beside the status of a work; to be freed. */
char *session_path(const char *status_path);
/* Connects to such a socket, or listens there, however long its path is. Negative, with errno. */
int session_path_connect(const char *path);
int session_path_listen(const char *path);
/* Sends the call, with the file where there is one. False, with errno. */
bool session_call_send(int link, const struct session_call *call, int file);

#endif
