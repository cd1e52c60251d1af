/* listener.c - a port that clients connect to */
#define _GNU_SOURCE /* accept4 */
#include "wire/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "wire/connection.h"
#include "wire/listener_state.h"

enum {
	BACKLOG = 4096,
	ACCEPTS_MAX = 64,     /* in one round, so that those who are connected get theirs */
	RETRY_MS = 100,       /* after which it is tried again to accept */
	TELL_EVERY_MS = 10000 /* that there are no descriptors */
};

/* `spare` is a descriptor that is given up, where there is no other, to accept a connection
 * and close it: the client is then told at once instead of waiting. -1: it was lost. */
struct listener {
	uv_poll_t poll;
	struct listener *next;
	struct loop *loop;
	struct reception reception;
	int fd, spare;
	struct timer retry;
	int64_t told_ms; /* when it was last said that there are no descriptors */
	uint16_t port;
	char *path; /* of a UNIX socket; NULL: it is none */
};

static void watch(struct listener *listener);

static void retry(struct timer *timer)
{
	watch((struct listener *)(void *)((char *)timer - offsetof(struct listener, retry)));
}

static bool is_exhausted(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static void tell_exhausted(struct listener *listener)
{
	int64_t now_ms = loop_now_ms(listener->loop);
	if (listener->told_ms != 0 && now_ms - listener->told_ms < TELL_EVERY_MS)
		return;
	listener->told_ms = now_ms;
	log_at(
	    LOG_ERROR, "no file descriptors are left: new connections are closed",
	    LOG_NUMBER("connections", (int64_t)listener->loop->counters.connections),
	    LOG_NUMBER("closed_so_far", (int64_t)listener->loop->counters.descriptors_exhausted));
}

/* Accepts and closes those who wait, by the spare descriptor. */
static void turn_away(struct listener *listener)
{
	for (int i = 0; i < ACCEPTS_MAX && listener->spare >= 0; i++) {
		close(listener->spare);
		int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			listener->loop->counters.descriptors_exhausted++;
			close(fd);
		}
		listener->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			break;
	}
	tell_exhausted(listener);
	/* The poll would report the waiting connection again and again. */
	uv_poll_stop(&listener->poll);
	loop_timer_set(listener->loop, &listener->retry, RETRY_MS);
}

static void arrived(uv_poll_t *poll, int status, int events)
{
	struct listener *listener = poll->data;
	(void)status;
	(void)events;
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			connection_open(listener->loop, fd, &listener->reception);
		} else if (is_exhausted(errno)) {
			turn_away(listener);
			return;
		} else if (errno == EAGAIN) {
			return;
		}
		/* Otherwise the client has gone before it was accepted. */
	}
}

static void watch(struct listener *listener)
{
	if (listener->spare < 0)
		listener->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	uv_poll_start(&listener->poll, UV_READABLE, arrived);
}

static void closed(uv_handle_t *handle)
{
	struct listener *listener = handle->data;
	close(listener->fd);
	if (listener->spare >= 0)
		close(listener->spare);
	free(listener->path);
	free(listener);
}

/* Reads an IPv4 or IPv6 address with its port. */
static bool read_address(const struct listener_options *options, struct sockaddr_storage *address)
{
	return uv_ip4_addr(options->address, options->port, (struct sockaddr_in *)address) == 0 ||
	       uv_ip6_addr(options->address, options->port, (struct sockaddr_in6 *)address) == 0;
}

/* A socket that listens; -1 with errno. */
static int open_socket(const struct sockaddr_storage *address, bool shared_port)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int yes = 1;
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (shared_port)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
	if (address->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	socklen_t size = address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
	                                                : sizeof(struct sockaddr_in);
	if (bind(fd, (const struct sockaddr *)address, size) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int code = errno;
	close(fd);
	errno = code;
	return -1;
}

/* The port that the system gave it. */
static uint16_t bound_port(int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address);
	struct ip ip;
	uint16_t port = 0;
	if (getsockname(fd, (struct sockaddr *)&address, &size) == 0)
		ip_of_socket((const struct sockaddr *)&address, &ip, &port);
	return port;
}

/* A UNIX socket that listens; -1 with errno. Nobody else can open it from the moment on at which it
 * is there. */
static int open_path(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	unlink(path);
	if (fchmod(fd, 0600) == 0 &&
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    chmod(path, 0600) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int code = errno;
	close(fd);
	errno = code;
	return -1;
}

static int open_address(const struct listener_options *options, struct error *error)
{
	struct sockaddr_storage address = { 0 };
	if (!read_address(options, &address)) {
		error_set(error, ERROR_INVALID, "'%s' is not an IPv4 or IPv6 address to listen on",
		          options->address);
		return -1;
	}
	int fd = open_socket(&address, options->shared_port);
	if (fd < 0)
		error_set(error, ERROR_CONFLICT, "cannot listen on %s port %u: %s",
		          options->address, options->port,
		          uv_strerror(uv_translate_sys_error(errno)));
	return fd;
}

static int open_listener(const struct listener_options *options, struct error *error)
{
	if (!options->path)
		return open_address(options, error);
	int fd = open_path(options->path);
	if (fd < 0)
		error_set(error, ERROR_CONFLICT, "cannot listen on %s: %s", options->path,
		          uv_strerror(uv_translate_sys_error(errno)));
	return fd;
}

struct listener *listener_open(struct loop *loop, const struct listener_options *options,
                               struct error *error)
{
	int fd = open_listener(options, error);
	if (fd < 0)
		return NULL;
	struct listener *listener = NEW(struct listener);
	listener->loop = loop;
	listener->reception = (struct reception){ .handler = options->handler,
		                                  .tls = options->tls,
		                                  .proxies = options->proxies,
		                                  .for_agents = options->for_agents };
	listener->fd = fd;
	listener->spare = -1;
	listener->path = options->path ? memory_text(options->path) : NULL;
	listener->retry = TIMER(retry);
	listener->poll.data = listener;
	int status = uv_poll_init(&loop->uv, &listener->poll, fd);
	INVARIANT(status == 0);
	listener->port = options->path ? 0 : bound_port(fd);
	listener->next = loop->listeners;
	loop->listeners = listener;
	watch(listener);
	return listener;
}

uint16_t listener_port(const struct listener *listener)
{
	return listener->port;
}

void listeners_close(struct loop *loop)
{
	while (loop->listeners) {
		struct listener *listener = loop->listeners;
		loop->listeners = listener->next;
		if (listener->path)
			unlink(listener->path);
		loop_timer_clear(loop, &listener->retry);
		uv_close((uv_handle_t *)&listener->poll, closed);
	}
}
