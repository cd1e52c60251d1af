/* sessions.c - the interactive sessions of a work */
#include "agent/keeper/sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/host/listener.h"
#include "agent/keeper/keeper_child.h"
#include "base/clock.h"
#include "base/number.h"
#include "channel/frame.h"

enum { BACKLOG = 64, CALL_WAIT_MS = 2000, SPEC_BYTES_MAX = 64 << 20 };

char *session_path(const char *status_path)
{
	return file_path("%s.sessions", status_path);
}

/* A socket's address is short, and a path may be long: it is named by its directory's descriptor,
 * which is open as long as the result. */
static int address_of(const char *path, struct sockaddr_un *address)
{
	char *directory = strdup(path), *name = strdup(path);
	int fd =
	    directory && name ? open(dirname(directory), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (fd >= 0)
		snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%.64s", fd,
		         basename(name));
	free(directory);
	free(name);
	return fd;
}

int session_path_connect(const char *path)
{
	struct sockaddr_un address;
	int directory = address_of(path, &address);
	int link = directory < 0 ? -1 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (link >= 0 && connect(link, (struct sockaddr *)&address, sizeof(address)) != 0) {
		int reason = errno;
		close(link);
		link = -1;
		errno = reason;
	}
	if (directory >= 0)
		close(directory);
	return link;
}

int session_path_listen(const char *path)
{
	struct sockaddr_un address;
	int directory = address_of(path, &address);
	int link =
	    directory < 0 ? -1 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0177);

	unlink(path);
	if (link >= 0 && (bind(link, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	                  listen(link, BACKLOG) != 0)) {
		close(link);
		link = -1;
	}
	umask(mask);
	if (directory >= 0)
		close(directory);
	return link;
}

bool session_call_send(int link, const struct session_call *call, int file)
{
	struct session_call copy = *call;
	struct iovec bytes = { .iov_base = &copy, .iov_len = sizeof(copy) };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };

	if (file >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(part), &file, sizeof(file));
	}
	return sendmsg(link, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*call);
}

/* The call and its file, -1 where there is none. */
static bool receive_call(int link, struct session_call *call, int *file)
{
	struct iovec bytes = { .iov_base = call, .iov_len = sizeof(*call) };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = &bytes,
		                  .msg_iovlen = 1,
		                  .msg_control = control.bytes,
		                  .msg_controllen = sizeof(control.bytes) };
	struct timeval most = { .tv_sec = CALL_WAIT_MS / 1000 };

	*file = -1;
	setsockopt(link, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	ssize_t got = recvmsg(link, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *part = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (part && part->cmsg_type == SCM_RIGHTS && part->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(file, CMSG_DATA(part), sizeof(*file));
	return got == (ssize_t)sizeof(*call) && call->version == CALL_VERSION &&
	       memchr(call->id, '\0', sizeof(call->id));
}

void sessions_open(struct sessions *sessions, const struct spec *spec)
{
	*sessions = (struct sessions){ .spec = spec, .listener = -1 };
	if (spec->session_path)
		sessions->listener = session_path_listen(spec->session_path);
}

void sessions_close(struct sessions *sessions)
{
	while (sessions->first) {
		struct session *session = sessions->first;
		sessions->first = session->next;
		session_free(session);
	}
	if (sessions->listener >= 0)
		close(sessions->listener);
	if (sessions->listener >= 0)
		unlink(sessions->spec->session_path);
	sessions->listener = -1;
	sessions->count = 0;
	free(sessions->polls);
	sessions->polls = NULL;
}

static void sessions_add(struct sessions *sessions, struct session *session)
{
	session->next = sessions->first;
	sessions->first = session;
	sessions->count++;
}

static struct session *sessions_find(const struct sessions *sessions, const char *id)
{
	struct session *session = sessions->first;

	while (session && strcmp(session->id, id) != 0)
		session = session->next;
	return session;
}

int sessions_open_main(struct sessions *sessions, struct output_writer *log)
{
	struct session *session = session_open(SESSION_MAIN, true, clock_boot_ms());
	int slave = session_open_terminal(session, sessions->spec->uid, 80, 24);

	if (slave < 0) {
		int reason = errno;
		session_free(session);
		errno = reason;
		return -1;
	}
	session->log = log;
	sessions_add(sessions, session);
	return slave;
}

void sessions_main_started(struct sessions *sessions, pid_t pid)
{
	struct session *session = sessions_find(sessions, SESSION_MAIN);

	if (session)
		session->pid = pid;
}

static bool read_command(int file, struct arena *arena, struct spec *spec)
{
	struct stat status = { 0 };
	void *data = MAP_FAILED;

	if (fstat(file, &status) == 0 && status.st_size > 0 && status.st_size < SPEC_BYTES_MAX)
		data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (data == MAP_FAILED)
		return false;
	bool good = spec_decode(arena, data, (size_t)status.st_size, spec);
	munmap(data, (size_t)status.st_size);
	return good && spec->arguments[0];
}

/* As the work runs, whatever the call says. */
static struct spec spec_of_session(const struct spec *work, const struct spec *command)
{
	struct spec spec = *work;

	spec.arguments = command->arguments;
	spec.environment = command->environment;
	spec.directory = command->directory;
	spec.submit_directory = command->submit_directory;
	spec.home = command->home;
	spec.script = NULL;
	return spec;
}

/* The command's ends: input, output, errors. A terminal is all of them. */
static bool open_ends(struct session *session, const struct session_call *call, int64_t uid,
                      int ends[3])
{
	if (!session->terminal)
		return session_open_pipes(session, ends);
	ends[0] = ends[1] = ends[2] =
	    session_open_terminal(session, uid, call->columns, call->rows);
	return ends[0] >= 0;
}

static void close_ends(const struct session *session, const int ends[3])
{
	for (int i = 0; i < (session->terminal ? 1 : 3); i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

static bool start_command(struct sessions *sessions, struct session *session,
                          const struct session_call *call, int file, struct error *error)
{
	struct arena arena = { 0 };
	struct spec command = { 0 };
	enum child_fault fault = CHILD_SYSTEM_FAULT;
	int ends[3] = { -1, -1, -1 };
	bool good = read_command(file, &arena, &command);

	if (!good)
		error_set(error, ERROR_INVALID, "the command cannot be read");
	else if (!(good = open_ends(session, call, sessions->spec->uid, ends)))
		error_set(error, ERROR_UNAVAILABLE, "cannot open a terminal: %s", strerror(errno));
	if (good) {
		struct spec spec = spec_of_session(sessions->spec, &command);
		session->pid =
		    keeper_child_start(&spec, ends[0], ends[1], ends[2], -1, &fault, error);
		good = fault == CHILD_NO_FAULT;
	}
	close_ends(session, ends);
	spec_wipe(&command);
	arena_free(&arena);
	return good;
}

static void open_session(struct sessions *sessions, const struct session_call *call, int link,
                         int file)
{
	struct error error = { 0 };
	int64_t now_ms = clock_boot_ms();

	if (sessions->count >= SESSIONS_MAX) {
		session_refuse(link, ERROR_FULL, "the task has too many sessions: end one of them");
		return;
	}
	if (!call->id[0] || sessions_find(sessions, call->id)) {
		session_refuse(link, ERROR_CONFLICT, "there is a session with this id");
		return;
	}
	struct session *session = session_open(call->id, call->terminal != 0, now_ms);
	session->idle_ms = call->idle_ms;
	if (!start_command(sessions, session, call, file, &error)) {
		session_refuse(link, (int)error.code, error.text);
		session_free(session);
		return;
	}
	sessions_add(sessions, session);
	session_link(session, link, 0, now_ms);
}

static void attach(struct sessions *sessions, const struct session_call *call, int link)
{
	struct session *session = call->id[0] ? sessions_find(sessions, call->id) : NULL;

	if (!session) {
		session_refuse(link, ERROR_NOT_FOUND,
		               strcmp(call->id, SESSION_MAIN) == 0
		                   ? "the task has no terminal of its own: it was not started with "
		                     "'run --pty'"
		                   : "there is no such session: it has ended");
		return;
	}
	if (!session_can_continue(session, call->offset)) {
		session_refuse(
		    link, ERROR_CONFLICT,
		    "the session has no terminal: only the client that opened it returns "
		    "to it");
		return;
	}
	session->idle_ms = call->idle_ms;
	session_link(session, link, call->offset, clock_boot_ms());
}

/* Another task's port is not this one's to offer. */
static const char *refusal_of_port(const struct sessions *sessions, int port)
{
	int64_t uid;

	switch (listener_look(&sessions->spec->group, port, &uid)) {
	case LISTENER_NONE:
		return "nothing listens on this port";
	case LISTENER_OWN:
		return NULL;
	case LISTENER_FOREIGN:
		return "what listens on this port does not belong to the task";
	default:
		return "the node does not say whose port that is";
	}
}

static void forward(struct sessions *sessions, const struct session_call *call, int link)
{
	const char *refusal = call->port > 0 && call->port < 65536
	                          ? refusal_of_port(sessions, call->port)
	                          : "this is no port";

	if (sessions->count >= SESSIONS_MAX)
		refusal = "the task has too many sessions: end one of them";
	if (refusal) {
		session_refuse(link, ERROR_CONFLICT, refusal);
		return;
	}
	struct session *session = session_open("", false, clock_boot_ms());
	session_link(session, link, 0, clock_boot_ms());
	if (session_connect(session, call->port)) {
		sessions_add(sessions, session);
		return;
	}
	session->link = -1;
	session_refuse(link, ERROR_CONFLICT, strerror(errno));
	session_free(session);
}

static void take_call(struct sessions *sessions, int link)
{
	struct session_call call = { 0 };
	int file = -1;

	if (!receive_call(link, &call, &file))
		close(link);
	else if (call.kind == CALL_OPEN && file >= 0)
		open_session(sessions, &call, link, file);
	else if (call.kind == CALL_ATTACH)
		attach(sessions, &call, link);
	else if (call.kind == CALL_FORWARD)
		forward(sessions, &call, link);
	else
		session_refuse(link, ERROR_INVALID, "the task's keeper does not know this call");
	if (file >= 0)
		close(file);
}

struct pollfd *sessions_poll(struct sessions *sessions, nfds_t before, nfds_t *count)
{
	nfds_t most = before + 1 + (nfds_t)sessions->count * SESSION_POLLS;

	free(sessions->polls);
	sessions->polls = memory_zero(most, sizeof(*sessions->polls));
	*count = before;
	sessions->polls[(*count)++] = (struct pollfd){ .fd = sessions->listener, .events = POLLIN };
	for (const struct session *session = sessions->first; session; session = session->next)
		*count += session_poll(session, sessions->polls + *count);
	return sessions->polls;
}

int64_t sessions_move(struct sessions *sessions)
{
	int64_t now_ms = clock_boot_ms(), until_ms = INT64_MAX;
	struct session **place = &sessions->first;
	int link;

	while (sessions->listener >= 0 &&
	       (link = accept4(sessions->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		take_call(sessions, link);
	for (struct session *session = *place; session; session = *place) {
		until_ms = min64(until_ms, session_move(session, now_ms));
		if (!session->gone) {
			place = &session->next;
			continue;
		}
		*place = session->next;
		sessions->count--;
		session_free(session);
	}
	return until_ms;
}

bool sessions_reaped(struct sessions *sessions, pid_t pid, int status)
{
	bool found = false;

	for (struct session *session = sessions->first; session; session = session->next)
		if (session->pid == pid && pid > 0) {
			found = true;
			session_exited(session, WIFEXITED(status) ? WEXITSTATUS(status)
			                                          : 128 + WTERMSIG(status));
		}
	return found;
}

void sessions_foresee_end(struct sessions *sessions)
{
	for (struct session *session = sessions->first; session; session = session->next)
		if (!session->exited && !session->reason)
			session->reason = "its job has ended";
}

void sessions_end(struct sessions *sessions)
{
	for (struct session *session = sessions->first; session; session = session->next)
		if (!session->exited)
			session_exited(session, session->connected ? 0 : 128 + SIGKILL);
}

bool sessions_are_busy(const struct sessions *sessions)
{
	for (const struct session *session = sessions->first; session; session = session->next)
		if (session_is_busy(session))
			return true;
	return false;
}
