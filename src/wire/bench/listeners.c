/* listeners.c - many WebSocket clients in one process, for the benchmark */
#include "listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10, EVENTS_AT_ONCE = 256, STAMP_BYTES = 15 };

static int epoll = -1;

static int64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool connect_one(uint16_t port)
{
	static const char request[] =
	    "GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
	    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
	    "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n\r\n";
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client < 0 || connect(client, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    write(client, request, sizeof(request) - 1) != (ssize_t)sizeof(request) - 1)
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

bool listeners_connect(uint16_t port, int count)
{
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < count; i++)
		if (!connect_one(port))
			return false;
	return true;
}

/* Events are short enough for a length of one byte or of two after 126. An event that is
 * cut off at the end of what was read is counted by its first byte and not timed. */
static void count_events(const char *data, size_t size, struct listeners_result *result)
{
	static const char mark[] = "{\"at_us\":";
	int64_t now = now_us();
	const char *end = data + size;
	for (const char *at = data; (at = memchr(at, '{', (size_t)(end - at))); at++) {
		result->events++;
		if ((size_t)(end - at) < sizeof(mark) - 1 + STAMP_BYTES ||
		    memcmp(at, mark, sizeof(mark) - 1) != 0)
			continue;
		char stamp[STAMP_BYTES + 1] = { 0 };
		memcpy(stamp, at + sizeof(mark) - 1, STAMP_BYTES);
		double late_ms = (double)(now - strtoll(stamp, NULL, 10)) / 1000;
		if (late_ms > result->latest_ms)
			result->latest_ms = late_ms;
	}
}

void listeners_receive(int seconds, struct listeners_result *result)
{
	static char data[READ_BYTES];
	struct epoll_event events[EVENTS_AT_ONCE];
	/* What came while they were connecting is not counted. */
	int64_t until_us = now_us() + 1000000;
	*result = (struct listeners_result){ 0 };
	for (int phase = 0; phase < 2; phase++) {
		while (now_us() < until_us) {
			int count = epoll_wait(epoll, events, EVENTS_AT_ONCE, 10);
			for (int i = 0; i < count; i++) {
				ssize_t size = read(events[i].data.fd, data, sizeof(data));
				if (size > 0 && phase == 1)
					count_events(data, (size_t)size, result);
			}
		}
		until_us = now_us() + (int64_t)seconds * 1000000;
	}
}
