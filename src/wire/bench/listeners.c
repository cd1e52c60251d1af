/* listeners.c - many WebSocket clients in one process, for benchmarks */
#include "wire/bench/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/bench/measure.h"

enum { READ_BYTES = 64 << 10, EVENTS_AT_ONCE = 256 };

static int epoll = -1;

static bool connect_one(uint16_t port, const char *request, size_t size)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client < 0 || connect(client, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    write(client, request, size) != (ssize_t)size)
		return false;
	/* The answer to the handshake, byte by byte so that no event is taken with it. */
	char end[4] = { 0 };
	while (memcmp(end, "\r\n\r\n", 4) != 0) {
		memmove(end, end + 1, 3);
		if (read(client, end + 3, 1) != 1)
			return false;
	}
	struct epoll_event event = { .events = EPOLLIN, .data.fd = client };
	return epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event) == 0;
}

bool listeners_connect(uint16_t port, const char *target, int count)
{
	char request[512];
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	int size = snprintf(request, sizeof(request),
	                    "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
	                    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
	                    "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n\r\n",
	                    target);
	for (int i = 0; i < count; i++)
		if (!connect_one(port, request, (size_t)size))
			return false;
	return true;
}

void listeners_receive(double seconds, listeners_take take, struct listeners_result *result)
{
	static char data[READ_BYTES];
	struct epoll_event events[EVENTS_AT_ONCE];
	double until_s = clock_s(CLOCK_MONOTONIC) + seconds;
	*result = (struct listeners_result){ 0 };
	while (clock_s(CLOCK_MONOTONIC) < until_s) {
		int count = epoll_wait(epoll, events, EVENTS_AT_ONCE, 10);
		for (int i = 0; i < count; i++) {
			ssize_t size = read(events[i].data.fd, data, sizeof(data));
			if (size > 0)
				take(data, (size_t)size, result);
		}
	}
}

void listeners_count(struct listeners_result *result, double late_ms)
{
	result->events++;
	if (late_ms > result->latest_ms)
		result->latest_ms = late_ms;
}
