/* listener.c - a port that clients connect to */
#include "wire/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/connection.h"
#include "wire/listener_state.h"

enum { BACKLOG = 4096 };

struct listener {
	uv_tcp_t tcp;
	struct listener *next;
	struct loop *loop;
	const struct handler *handler;
	struct tls *tls;
	uint16_t port;
};

static void arrived(uv_stream_t *server, int status)
{
	struct listener *listener = server->data;
	if (status == 0)
		connection_accept(listener->loop, server, listener->handler, listener->tls);
}

static void closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Reads an IPv4 or IPv6 address with its port. */
static bool read_address(const struct listener_options *options, struct sockaddr_storage *address)
{
	return uv_ip4_addr(options->address, options->port, (struct sockaddr_in *)address) == 0 ||
	       uv_ip6_addr(options->address, options->port, (struct sockaddr_in6 *)address) == 0;
}

/* A socket of our own, as libuv cannot be asked for SO_REUSEPORT in all versions. */
static int open_socket(struct listener *listener, const struct sockaddr_storage *address,
                       bool shared_port)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int yes = 1;
	if (shared_port)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
	int status = uv_tcp_open(&listener->tcp, fd);
	if (status != 0) {
		close(fd);
		return status;
	}
	unsigned flags = address->ss_family == AF_INET6 ? UV_TCP_IPV6ONLY : 0;
	status = uv_tcp_bind(&listener->tcp, (const struct sockaddr *)address, flags);
	return status != 0 ? status : uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, arrived);
}

/* The port that the system gave it. */
static uint16_t bound_port(const struct listener *listener)
{
	struct sockaddr_storage address;
	int size = sizeof(address);
	if (uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&address, &size) != 0)
		return 0;
	return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
	                                           : ((struct sockaddr_in *)&address)->sin_port);
}

struct listener *listener_open(struct loop *loop, const struct listener_options *options,
                               struct error *error)
{
	struct sockaddr_storage address = { 0 };
	if (!read_address(options, &address)) {
		error_set(error, ERROR_INVALID, "'%s' is not an IPv4 or IPv6 address to listen on",
		          options->address);
		return NULL;
	}
	struct listener *listener = NEW(struct listener);
	listener->loop = loop;
	listener->handler = options->handler;
	listener->tls = options->tls;
	listener->tcp.data = listener;
	uv_tcp_init(&loop->uv, &listener->tcp);
	int status = open_socket(listener, &address, options->shared_port);
	if (status != 0) {
		error_set(error, ERROR_CONFLICT, "cannot listen on %s port %u: %s",
		          options->address, options->port, uv_strerror(status));
		uv_close((uv_handle_t *)&listener->tcp, closed);
		return NULL;
	}
	listener->port = bound_port(listener);
	listener->next = loop->listeners;
	loop->listeners = listener;
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
		uv_close((uv_handle_t *)&listener->tcp, closed);
	}
}
