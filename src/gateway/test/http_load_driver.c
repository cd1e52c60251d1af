/* http_load_driver.c - a server of chats that costs next to nothing, and clients that measure what
 * comes back, for benchmarks of what stands between them
 *
 * http_load_driver serve
 *   prints its port. A body with "stream":true gets events, as many and as far apart as its
 *   members mock_events and mock_gap_us say; each has the time when it was sent. Any other POST
 * gets an answer of 1 KB, any GET {"status":"ok"}. http_load_driver ask PORT PATH CONNECTIONS
 * SECONDS RATE MODEL [HEADER] asks on that many connections, RATE times a second in all (0: again
 * after each answer). http_load_driver stream PORT PATH STREAMS SECONDS EVENTS_PER_SECOND MODEL
 * [HEADER] opens that many streams and measures how late their events are. Both print one JSON
 * object. PORT may be several, separated by commas, which get the connections in turn. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/memory.h"
#include "base/number.h"

enum { INPUT_MAX = 8192, EPOLL_MAX = 512, SAMPLES_MAX = 20000000, RAMP_PER_S = 2500 };
#define S_NS INT64_C(1000000000)
/* The server does not spin between two events, and the processor is for what is measured. */
#define SERVER_REST_NS 250000

struct conn {
	int fd;
	size_t used;
	char input[INPUT_MAX];
	/* Server: a stream. */
	int64_t due_ns, gap_ns, left;
	int32_t place;
	/* Client: an answer. */
	bool is_busy, is_chunked, has_head;
	int64_t asked_ns, rest;
};

static int poller;

static int64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * S_NS + time.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "http_load_driver: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct conn *conn_new(int fd)
{
	struct conn *conn = NEW(struct conn);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

	conn->fd = fd;
	conn->place = -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0)
		fail("epoll_ctl");
	return conn;
}

/* What is written is small, so it goes at once or its reader is gone. */
static bool conn_put(struct conn *conn, const char *data, size_t size)
{
	return send(conn->fd, data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* The value of a header, from behind its colon; NULL: it is not there. */
static const char *header_of(const char *head, const char *name)
{
	size_t size = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
		if (strncasecmp(line + 2, name, size) == 0 && line[2 + size] == ':')
			return line + 3 + size;
	return NULL;
}

/* The server. */

static struct heap streams;
static char whole_answer[2048];
static size_t whole_size;

static bool conn_before(const void *a, const void *b)
{
	return ((const struct conn *)a)->due_ns < ((const struct conn *)b)->due_ns;
}

static void make_answer(void)
{
	char content[701], body[1400];

	memset(content, 'w', 700);
	content[700] = '\0';
	int size = snprintf(body, sizeof(body),
	                    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,"
	                    "\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
	                    "\"assistant\",\"content\":\"%s\"},\"finish_reason\":\"stop\"}],"
	                    "\"usage\":{\"prompt_tokens\":200,\"completion_tokens\":150,"
	                    "\"total_tokens\":350}}",
	                    content);
	whole_size = (size_t)snprintf(whole_answer, sizeof(whole_answer),
	                              "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
	                              "content-length: %d\r\n\r\n%s",
	                              size, body);
}

static void conn_close(struct conn *conn)
{
	if (heap_has(&streams, conn))
		heap_remove(&streams, conn);
	close(conn->fd);
	free(conn);
}

static int64_t member(const char *body, const char *name, int64_t otherwise)
{
	const char *at = strstr(body, name);

	return at ? atoll(at + strlen(name)) : otherwise;
}

static bool begin_stream(struct conn *conn, const char *body)
{
	static const char head[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
				   "transfer-encoding: chunked\r\n\r\n";

	conn->gap_ns = member(body, "\"mock_gap_us\":", 100000) * 1000;
	conn->left = member(body, "\"mock_events\":", 10);
	conn->due_ns = now_ns() + conn->gap_ns;
	heap_push(&streams, conn);
	return conn_put(conn, head, sizeof(head) - 1);
}

/* False: the connection is to be closed. */
static bool serve_request(struct conn *conn, const char *head, const char *body)
{
	static const char well[] = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
				   "content-length: 15\r\n\r\n{\"status\":\"ok\"}";

	if (strncmp(head, "POST", 4) != 0)
		return conn_put(conn, well, sizeof(well) - 1);
	if (strstr(body, "\"stream\":true") || strstr(body, "\"stream\": true"))
		return begin_stream(conn, body);
	return conn_put(conn, whole_answer, whole_size);
}

/* The bytes of a request that is complete; 0: it is not yet. */
static size_t request_size(struct conn *conn, const char **body)
{
	conn->input[conn->used] = '\0';
	const char *end = strstr(conn->input, "\r\n\r\n");
	const char *length = end ? header_of(conn->input, "content-length") : NULL;

	if (!end)
		return 0;
	*body = end + 4;
	size_t size = (size_t)(*body - conn->input) + (length ? (size_t)atoll(length) : 0);
	return size <= conn->used ? size : 0;
}

static bool server_read(struct conn *conn)
{
	ssize_t got = recv(conn->fd, conn->input + conn->used, INPUT_MAX - 1 - conn->used, 0);
	const char *body;
	size_t size;

	if (got <= 0)
		return false;
	conn->used += (size_t)got;
	while ((size = request_size(conn, &body)) > 0) {
		char next = conn->input[size];
		conn->input[size] = '\0';
		if (!serve_request(conn, conn->input, body))
			return false;
		conn->input[size] = next;
		memmove(conn->input, conn->input + size, conn->used - size);
		conn->used -= size;
	}
	return conn->used < INPUT_MAX - 1;
}

static bool send_event(struct conn *conn)
{
	char event[512], chunk[640];

	if (conn->left-- <= 0) {
		static const char end[] = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
		heap_remove(&streams, conn);
		return conn_put(conn, end, sizeof(end) - 1);
	}
	int size = snprintf(event, sizeof(event),
	                    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\","
	                    "\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":"
	                    "{\"content\":\"t=%020" PRId64 "\"},\"finish_reason\":null}]}\n\n",
	                    now_ns());
	int all = snprintf(chunk, sizeof(chunk), "%x\r\n%s\r\n", (unsigned)size, event);
	conn->due_ns += conn->gap_ns;
	heap_update(&streams, conn);
	return conn_put(conn, chunk, (size_t)all);
}

static int listen_on_any(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 4096) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		fail("listen");
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		conn_new(fd);
}

static void serve(void)
{
	struct epoll_event events[EPOLL_MAX], event = { .events = EPOLLIN };
	int listener = listen_on_any();

	streams = HEAP(struct conn, place, conn_before);
	make_answer();
	epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		struct conn *first = heap_first(&streams);
		int64_t wait_ns =
		    first ? max64(first->due_ns - now_ns(), SERVER_REST_NS) : 10 * S_NS;
		struct timespec wait = { wait_ns / S_NS, wait_ns % S_NS };
		int count = epoll_pwait2(poller, events, EPOLL_MAX, &wait, NULL);
		for (int i = 0; i < count; i++) {
			struct conn *conn = events[i].data.ptr;
			if (!conn)
				accept_all(listener);
			else if (!server_read(conn))
				conn_close(conn);
		}
		int64_t time_ns = now_ns();
		while ((first = heap_first(&streams)) && first->due_ns <= time_ns)
			if (!send_event(first))
				conn_close(first);
	}
}

/* The clients. */

struct load {
	const char *ports, *next_port;
	char request[4096];
	size_t request_size;
	struct conn **conns;
	int64_t count, answers, errors, sent;
	uint32_t *late_us;
	int64_t samples;
	int64_t begin_ns, end_ns; /* what happens between them is measured */
	bool is_stream, is_again;
};

static void note(struct load *load, int64_t since_ns, int64_t time_ns)
{
	if (time_ns < load->begin_ns || time_ns > load->end_ns || load->samples >= SAMPLES_MAX)
		return;
	load->late_us[load->samples++] = (uint32_t)max64((time_ns - since_ns) / 1000, 0);
}

static struct sockaddr_in next_address(struct load *load)
{
	char *end;
	int port = (int)strtol(load->next_port, &end, 10);

	load->next_port = *end == ',' ? end + 1 : load->ports;
	return (struct sockaddr_in){ .sin_family = AF_INET,
		                     .sin_port = htons((uint16_t)port),
		                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static struct conn *client_connect(struct load *load)
{
	struct sockaddr_in address = next_address(load);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		fail("connect");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return conn_new(fd);
}

static void ask(struct load *load, struct conn *conn, int64_t asked_ns)
{
	conn->is_busy = true;
	conn->has_head = false;
	conn->used = 0;
	conn->asked_ns = asked_ns;
	load->sent++;
	if (!conn_put(conn, load->request, load->request_size))
		load->errors++;
}

/* True when the answer is complete. */
static bool take_answer(struct conn *conn)
{
	conn->input[conn->used] = '\0';
	if (!conn->has_head) {
		const char *end = strstr(conn->input, "\r\n\r\n");
		const char *length = end ? header_of(conn->input, "content-length") : NULL;
		if (!end)
			return false;
		conn->has_head = true;
		conn->is_chunked = !length;
		conn->rest = length ? (end + 4 - conn->input) + atoll(length) : 0;
	}
	if (!conn->is_chunked)
		return (int64_t)conn->used >= conn->rest;
	return conn->used >= 5 && memcmp(conn->input + conn->used - 5, "0\r\n\r\n", 5) == 0;
}

static void take_events(struct load *load, struct conn *conn, int64_t time_ns)
{
	char *at = conn->input, *end = conn->input + conn->used;

	*end = '\0';
	while ((at = memmem(at, (size_t)(end - at), "\"t=", 3)) && end - at >= 24) {
		note(load, strtoll(at + 3, NULL, 10), time_ns);
		load->answers += time_ns >= load->begin_ns && time_ns <= load->end_ns;
		at += 24;
	}
	/* What may be the beginning of a time stays. */
	size_t keep = (size_t)min64(at ? end - at : 2, (int64_t)conn->used);
	memmove(conn->input, end - keep, keep);
	conn->used = keep;
}

static void client_read(struct load *load, struct conn *conn)
{
	ssize_t got = recv(conn->fd, conn->input + conn->used, INPUT_MAX - 1 - conn->used, 0);
	int64_t time_ns = now_ns();

	if (got <= 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		load->errors++;
		epoll_ctl(poller, EPOLL_CTL_DEL, conn->fd, NULL);
		return;
	}
	conn->used += (size_t)got;
	if (load->is_stream) {
		take_events(load, conn, time_ns);
		return;
	}
	if (!take_answer(conn))
		return;
	conn->is_busy = false;
	load->errors += strncmp(conn->input + 8, " 200", 4) != 0;
	load->answers += time_ns >= load->begin_ns && time_ns <= load->end_ns;
	note(load, conn->asked_ns, time_ns);
	if (load->is_again)
		ask(load, conn, time_ns);
}

static void drain(struct load *load, int64_t wait_ns)
{
	struct epoll_event events[EPOLL_MAX];
	int count =
	    epoll_wait(poller, events, EPOLL_MAX, (int)max64((wait_ns + 999999) / 1000000, 0));

	for (int i = 0; i < count; i++)
		client_read(load, events[i].data.ptr);
}

/* Asks at the times that the rate sets, on whatever connection is free; a time when none is free
 * counts from when it was due. */
static void ask_at_rate(struct load *load, int64_t rate)
{
	int64_t start_ns = now_ns(), next = 0, at = 0;

	while (now_ns() < load->end_ns) {
		int64_t due_ns = start_ns + next * S_NS / rate;
		for (int64_t tries = 0; due_ns <= now_ns() && tries < load->count; tries++) {
			struct conn *conn = load->conns[at++ % load->count];
			if (conn->is_busy)
				continue;
			ask(load, conn, due_ns);
			tries = -1;
			due_ns = start_ns + ++next * S_NS / rate;
		}
		drain(load, 0);
	}
}

static int compare_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static void print_load(struct load *load)
{
	int64_t n = load->samples;

	qsort(load->late_us, (size_t)n, sizeof(*load->late_us), compare_numbers);
	printf("{\"answers\":%" PRId64 ",\"errors\":%" PRId64 ",\"seconds\":%.3f,\"p50_us\":%u,"
	       "\"p99_us\":%u,\"max_us\":%u}\n",
	       load->answers, load->errors, (double)(load->end_ns - load->begin_ns) / 1e9,
	       n > 0 ? load->late_us[n / 2] : 0, n > 0 ? load->late_us[n * 99 / 100] : 0,
	       n > 0 ? load->late_us[n - 1] : 0);
}

/* One after the other, so that streams do not all have their events at once. */
static void open_all(struct load *load)
{
	int64_t start_ns = now_ns();

	for (int64_t i = 0; i < load->count; i++) {
		load->conns[i] = client_connect(load);
		if (!load->is_stream)
			continue;
		ask(load, load->conns[i], now_ns());
		while (now_ns() < start_ns + (i + 1) * S_NS / RAMP_PER_S)
			drain(load, 0);
	}
}

static void write_request(struct load *load, char **words, int count)
{
	char body[2048], text[801];
	int64_t gap_us = load->is_stream ? 1000000 / max64(atoll(words[5]), 1) : 0;
	int64_t events = load->is_stream ? 60 * atoll(words[5]) : 0;

	memset(text, 'a', 800);
	text[800] = '\0';
	int size = snprintf(body, sizeof(body),
	                    "{\"model\":\"%s\",\"stream\":%s,\"mock_gap_us\":%" PRId64
	                    ",\"mock_events\":%" PRId64
	                    ",\"max_tokens\":150,\"messages\":[{\"role\":\"user\",\"content\":"
	                    "\"%s\"}]}",
	                    words[6], load->is_stream ? "true" : "false", gap_us, events, text);
	load->request_size = (size_t)snprintf(
	    load->request, sizeof(load->request),
	    "POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: "
	    "application/json\r\n%s%scontent-length: %d\r\n\r\n%s",
	    words[2], count > 7 ? words[7] : "", count > 7 ? "\r\n" : "", size, body);
}

static void run_load(char **words, int count)
{
	struct load load = { .is_stream = strcmp(words[0], "stream") == 0 };
	int64_t rate = atoll(words[5]), seconds = atoll(words[4]);

	load.ports = load.next_port = words[1];
	load.count = atoll(words[3]);
	load.conns = memory_zero((size_t)load.count, sizeof(*load.conns));
	load.late_us = memory_zero(SAMPLES_MAX, sizeof(*load.late_us));
	load.begin_ns = load.end_ns = INT64_MAX;
	write_request(&load, words, count);
	open_all(&load);
	load.begin_ns = now_ns() + S_NS; /* a second to warm up */
	load.end_ns = load.begin_ns + seconds * S_NS;
	/* Whoever reads this measures from here on. */
	printf("ready\n");
	fflush(stdout);
	load.is_again = !load.is_stream && rate == 0;
	for (int64_t i = 0; load.is_again && i < load.count; i++)
		ask(&load, load.conns[i], now_ns());
	if (!load.is_stream && rate > 0)
		ask_at_rate(&load, rate);
	while (now_ns() < load.end_ns)
		drain(&load, load.end_ns - now_ns());
	print_load(&load);
}

int main(int argc, char **argv)
{
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (argc == 2 && strcmp(argv[1], "serve") == 0)
		serve();
	if (argc < 8 || (strcmp(argv[1], "ask") != 0 && strcmp(argv[1], "stream") != 0)) {
		fputs("http_load_driver serve | ask|stream PORT PATH CONNECTIONS SECONDS RATE "
		      "MODEL [HEADER]\n",
		      stderr);
		return 2;
	}
	run_load(argv + 1, argc - 1);
	return 0;
}
