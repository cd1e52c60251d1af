/* stream_listeners.c - many listeners to live events in one process */
#define _GNU_SOURCE /* memmem */
#include "stream_listeners.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10, AT_ONCE = 256 };

static int epoll = -1;

static double clock_s(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool connect_one(uint16_t port)
{
	static const char request[] =
	    "GET /api/v1/stream?topics=jobs HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
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

bool stream_listeners_connect(uint16_t port, int count)
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

/* 2026-01-31T12:00:00.25Z in seconds since 1970; 0 if it is cut off. */
static double event_time_s(const char *text, size_t size)
{
	struct tm day = { 0 };
	char copy[40] = { 0 };
	double seconds = 0;
	memcpy(copy, text, size < sizeof(copy) - 1 ? size : sizeof(copy) - 1);
	if (!strchr(copy, 'Z') || sscanf(copy, "%d-%d-%dT%d:%d:%lf", &day.tm_year, &day.tm_mon,
	                                 &day.tm_mday, &day.tm_hour, &day.tm_min, &seconds) != 6)
		return 0;
	day.tm_year -= 1900;
	day.tm_mon -= 1;
	return (double)timegm(&day) + seconds;
}

/* An event that is cut off at the end of what was read is counted where its mark is whole. */
static void count_events(const char *data, size_t size, struct stream_result *result)
{
	static const char mark[] = "\"topic\":\"jobs\",\"time\":\"";
	double now_s = clock_s(CLOCK_REALTIME);
	const char *end = data + size, *at = data;
	while ((at = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1))) {
		at += sizeof(mark) - 1;
		result->received++;
		double happened_s = event_time_s(at, (size_t)(end - at));
		double late_ms = happened_s > 0 ? (now_s - happened_s) * 1000 : 0;
		if (late_ms > result->latest_ms)
			result->latest_ms = late_ms;
	}
}

void stream_listeners_receive(double seconds, struct stream_result *result)
{
	static char data[READ_BYTES];
	struct epoll_event events[AT_ONCE];
	double until_s = clock_s(CLOCK_MONOTONIC) + seconds;
	*result = (struct stream_result){ 0 };
	while (clock_s(CLOCK_MONOTONIC) < until_s) {
		int count = epoll_wait(epoll, events, AT_ONCE, 10);
		for (int i = 0; i < count; i++) {
			ssize_t size = read(events[i].data.fd, data, sizeof(data));
			if (size > 0)
				count_events(data, (size_t)size, result);
		}
	}
}
