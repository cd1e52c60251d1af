/* slot_listener.c - where others reach a slot */
#include "agent/workload/slot_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT_TRIES = 1000, BACKLOG = 1024 };

static int listen_at(int family, const struct sockaddr *address, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, zero = 0;

	if (fd < 0)
		return -1;
	/* Connections of an earlier slot may still linger. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, address, size) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	close(fd);
	return -1;
}

static int listen_on(int64_t port)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	int fd = listen_at(AF_INET6, (const struct sockaddr *)&six, sizeof(six));

	if (fd < 0 && errno != EADDRINUSE)
		fd = listen_at(AF_INET, (const struct sockaddr *)&four, sizeof(four));
	return fd;
}

int slot_listener_open(const struct run_settings *settings, int64_t server_port,
                       struct slot_door *door, struct error *error)
{
	int64_t count = settings->port_last - settings->port_first + 1;

	for (int i = 0; count > 0 && i < PORT_TRIES; i++) {
		uint32_t random;
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			break;
		door->port = settings->port_first + (int64_t)random % count;
		int fd = door->port == server_port ? -1 : listen_on(door->port);
		if (fd >= 0 && slot_keys_make(&door->keys, error))
			return fd;
		if (fd >= 0) {
			close(fd);
			return -1;
		}
	}
	error_set(error, ERROR_UNAVAILABLE, "no free port for the model from %lld to %lld",
	          (long long)settings->port_first, (long long)settings->port_last);
	return -1;
}
