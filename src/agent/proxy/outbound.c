/* outbound.c - the way out for a model's server in a network namespace of its own */
#include "agent/proxy/outbound.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"

enum {
	CONNECTIONS_MAX = 64,
	STACK_BYTES = 512 << 10,
	PIECE_BYTES = 64 << 10,
	HEAD_SECONDS = 30,
	IDLE_MS = 15 * 60 * 1000,
};

struct outbound {
	int listener;
	sem_t places;
};

static bool is_host(struct text host)
{
	for (size_t i = 0; i < host.size; i++)
		if (host.data[i] <= ' ' || host.data[i] > '~' ||
		    strchr("/@\\?#[]\"<>", host.data[i]))
			return false;
	return host.size > 0 && host.size <= OUTBOUND_HOST_MAX;
}

/* HOST:PORT, [HOST]:PORT, or either without a port. */
static bool take_authority(struct text text, const char *port, struct outbound_target *target)
{
	struct text host = text, number = text_of(port);
	const char *end = NULL;

	if (text.size > 0 && *text.data == '[') {
		const char *bracket = memchr(text.data, ']', text.size);
		if (!bracket)
			return false;
		host = (struct text){ text.data + 1, (size_t)(bracket - text.data) - 1 };
		end = bracket + 1 < text.data + text.size ? bracket + 1 : NULL;
		if (end && *end != ':')
			return false;
	} else {
		end = text.size > 0 ? memchr(text.data, ':', text.size) : NULL;
		if (end)
			host.size = (size_t)(end - text.data);
	}
	if (end)
		number = (struct text){ end + 1, (size_t)(text.data + text.size - end) - 1 };
	if (!is_host(host) || number.size == 0 || number.size >= sizeof(target->port))
		return false;
	for (size_t i = 0; i < number.size; i++)
		if (number.data[i] < '0' || number.data[i] > '9')
			return false;
	memcpy(target->host, host.data, host.size);
	target->host[host.size] = '\0';
	memcpy(target->port, number.data, number.size);
	target->port[number.size] = '\0';
	return atoi(target->port) > 0 && atoi(target->port) <= UINT16_MAX;
}

static bool is_for_proxy(struct text line)
{
	static const char *const names[] = { "proxy-connection:", "proxy-authorization:",
		                             "connection:", "keep-alive:", NULL };

	for (int i = 0; names[i]; i++)
		if (line.size >= strlen(names[i]) &&
		    strncasecmp(line.data, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* The head that an origin server reads: one request, then the connection ends. */
static void write_origin(struct buffer *request, struct text method, struct text path,
                         struct text lines)
{
	buffer_bytes(request, method.data, method.size);
	buffer_bytes(request, " ", 1);
	if (path.size == 0)
		path = TEXT("/");
	buffer_bytes(request, path.data, path.size);
	buffer_text(request, " HTTP/1.1\r\nConnection: close\r\n");
	while (lines.size > 0) {
		const char *end = memmem(lines.data, lines.size, "\r\n", 2);
		size_t size = end ? (size_t)(end - lines.data) : lines.size;
		if (size == 0)
			break;
		if (!is_for_proxy((struct text){ lines.data, size })) {
			buffer_bytes(request, lines.data, size);
			buffer_bytes(request, "\r\n", 2);
		}
		lines = text_from(lines, end ? size + 2 : size);
	}
	buffer_bytes(request, "\r\n", 2);
}

static struct text word(struct text *text)
{
	const char *end = text->size > 0 ? memchr(text->data, ' ', text->size) : NULL;
	struct text before = { text->data, end ? (size_t)(end - text->data) : text->size };

	*text = text_from(*text, end ? before.size + 1 : before.size);
	return before;
}

bool outbound_read(struct text head, struct outbound_target *target, struct error *error)
{
	static const char scheme[] = "http://";
	const char *end = head.size > 0 ? memmem(head.data, head.size, "\r\n", 2) : NULL;

	*target = (struct outbound_target){ 0 };
	if (!end)
		return error_set(error, ERROR_INVALID, "this is no request");
	struct text line = { head.data, (size_t)(end - head.data) };
	struct text method = word(&line), where = word(&line);
	if (method.size == 0 || !text_starts(line, "HTTP/1."))
		return error_set(error, ERROR_INVALID, "this is no request");
	target->is_tunnel = text_is(method, "CONNECT");
	if (target->is_tunnel)
		return take_authority(where, "", target) ||
		       error_set(error, ERROR_INVALID, "CONNECT takes HOST:PORT");
	if (!text_starts(where, scheme))
		return error_set(error, ERROR_INVALID, "only http:// and CONNECT go through here");
	where = text_from(where, sizeof(scheme) - 1);
	const char *slash = memchr(where.data, '/', where.size);
	size_t size = slash ? (size_t)(slash - where.data) : where.size;
	if (!take_authority((struct text){ where.data, size }, "80", target))
		return error_set(error, ERROR_INVALID, "this is no URL of a server");
	write_origin(&target->request, method, text_from(where, size),
	             text_from(head, (size_t)(end - head.data) + 2));
	return true;
}

static bool outbound_send(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		data += sent;
		size -= (size_t)sent;
	}
	return true;
}

/* Reads up to the empty line; what came behind it stays in the buffer. 0: it did not come. */
static size_t read_head(int fd, struct buffer *bytes)
{
	char piece[2048];

	while (bytes->size < OUTBOUND_HEAD_MAX) {
		ssize_t got = recv(fd, piece, sizeof(piece), 0);
		if (got <= 0)
			return 0;
		buffer_bytes(bytes, piece, (size_t)got);
		const char *end = memmem(bytes->data, bytes->size, "\r\n\r\n", 4);
		if (end)
			return (size_t)(end - bytes->data) + 4;
	}
	return 0;
}

static bool is_outside(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		uint32_t number =
		    ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);
		return number >> 24 != IN_LOOPBACKNET && number >> 24 != 0;
	}
	const struct in6_addr *six =
	    &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
	return !IN6_IS_ADDR_LOOPBACK(six) && !IN6_IS_ADDR_UNSPECIFIED(six) &&
	       !IN6_IS_ADDR_V4MAPPED(six);
}

static int connect_out(const struct outbound_target *target)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *addresses = NULL;
	struct timeval most = { .tv_sec = HEAD_SECONDS };
	int fd = -1;

	if (getaddrinfo(target->host, target->port, &hints, &addresses) != 0)
		return -1;
	for (const struct addrinfo *at = addresses; at && fd < 0; at = at->ai_next) {
		if (!is_outside(at->ai_addr))
			continue;
		fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0)
			setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
		if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(addresses);
	return fd;
}

/* Both ways, until both have ended. */
static void relay_both(int one, int other)
{
	struct pollfd files[2] = { { .fd = one, .events = POLLIN },
		                   { .fd = other, .events = POLLIN } };
	char *piece = memory_alloc(PIECE_BYTES);

	while ((files[0].fd >= 0 || files[1].fd >= 0) && poll(files, 2, IDLE_MS) > 0) {
		for (int i = 0; i < 2; i++) {
			if (files[i].fd < 0 || files[i].revents == 0)
				continue;
			int to = i == 0 ? other : one;
			ssize_t got = recv(files[i].fd, piece, PIECE_BYTES, 0);
			if (got > 0 && outbound_send(to, piece, (size_t)got))
				continue;
			shutdown(to, SHUT_WR);
			files[i].fd = -1;
		}
	}
	free(piece);
}

static void answer_plainly(int fd, const char *status, const char *text)
{
	char bytes[512];
	int size = snprintf(bytes, sizeof(bytes),
	                    "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
	                    "Connection: close\r\n\r\n%s",
	                    status, strlen(text), text);

	outbound_send(fd, bytes, (size_t)size);
}

static void carry(int fd)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	struct timeval most = { .tv_sec = HEAD_SECONDS }, none = { 0 };
	struct outbound_target target;
	struct buffer bytes = { 0 };
	struct error error = { 0 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	size_t size = read_head(fd, &bytes);
	if (size == 0 || !outbound_read((struct text){ bytes.data, size }, &target, &error)) {
		answer_plainly(fd, "400 Bad Request", size > 0 ? error.text : "this is no request");
		buffer_free(&bytes);
		return;
	}
	int out = connect_out(&target);
	bool sent =
	    out >= 0 &&
	    (target.is_tunnel ? outbound_send(fd, established, sizeof(established) - 1)
	                      : outbound_send(out, target.request.data, target.request.size));
	if (out < 0)
		answer_plainly(fd, "502 Bad Gateway", "no connection could be made to that host");
	else if (sent && outbound_send(out, bytes.data + size, bytes.size - size)) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
		relay_both(fd, out);
	}
	if (out >= 0)
		close(out);
	buffer_free(&target.request);
	buffer_free(&bytes);
}

struct carried {
	struct outbound *outbound;
	int fd;
};

static void *carry_one(void *context)
{
	struct carried *carried = context;

	carry(carried->fd);
	close(carried->fd);
	sem_post(&carried->outbound->places);
	free(carried);
	return NULL;
}

static bool start_thread(void *(*run)(void *), void *context)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int failed = pthread_create(&thread, &attributes, run, context);
	pthread_attr_destroy(&attributes);
	return failed == 0;
}

static void *accept_all(void *context)
{
	struct outbound *outbound = context;

	for (;;) {
		sem_wait(&outbound->places);
		int fd = accept4(outbound->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0) {
			sem_post(&outbound->places);
			poll(NULL, 0, 10);
			continue;
		}
		struct carried *carried = NEW(struct carried);
		*carried = (struct carried){ outbound, fd };
		if (!start_thread(carry_one, carried)) {
			close(fd);
			free(carried);
			sem_post(&outbound->places);
		}
	}
	return NULL;
}

bool outbound_start(int listener, struct error *error)
{
	struct outbound *outbound = NEW(struct outbound);

	outbound->listener = listener;
	sem_init(&outbound->places, 0, CONNECTIONS_MAX);
	if (start_thread(accept_all, outbound))
		return true;
	sem_destroy(&outbound->places);
	free(outbound);
	return error_set(error, ERROR_UNAVAILABLE, "cannot start a thread: %s", strerror(errno));
}
