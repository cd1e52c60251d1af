/* connection.c - bytes to a service and back, over TCP or TLS */
#include "cli/client/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/memory.h"
#include "base/number.h"

struct connection {
	int socket;
	SSL_CTX *context;
	SSL *tls; /* NULL: plain TCP */
	char where[ADDRESS_HOST_MAX + 32];
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether the socket became ready before the deadline; a signal ends the wait as well. */
static bool wait_for(const struct connection *connection, short events, int64_t deadline_ms)
{
	struct pollfd poll_for = { .fd = connection->socket, .events = events };
	int64_t left = max64(deadline_ms - now_ms(), 0);
	return poll(&poll_for, 1, (int)min64(left, 3600000)) > 0;
}

static bool fail(const struct connection *connection, struct error *error, const char *reason)
{
	return error_set(error, ERROR_UNAVAILABLE, "cannot reach the service at %s: %s",
	                 connection->where, reason);
}

static bool connect_one(struct connection *connection, const struct addrinfo *info,
                        int64_t deadline_ms)
{
	int reason = 0;
	socklen_t size = sizeof(reason);
	connection->socket = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connection->socket < 0)
		return false;
	if (connect(connection->socket, info->ai_addr, info->ai_addrlen) == 0)
		return true;
	if (errno == EINPROGRESS) {
		while (!wait_for(connection, POLLOUT, deadline_ms)) {
			if (now_ms() >= deadline_ms) {
				reason = ETIMEDOUT;
				break;
			}
		}
		if (reason == 0 &&
		    getsockopt(connection->socket, SOL_SOCKET, SO_ERROR, &reason, &size) == 0 &&
		    reason == 0)
			return true;
		errno = reason;
	}
	int kept = errno;
	close(connection->socket);
	connection->socket = -1;
	errno = kept;
	return false;
}

static bool connect_to(struct connection *connection, const struct address *address,
                       int64_t deadline_ms, struct error *error)
{
	struct addrinfo *list = NULL;
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	int status = getaddrinfo(address->host, address->port, &hints, &list);
	if (status != 0)
		return fail(connection, error,
		            status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
	errno = 0;
	for (const struct addrinfo *info = list; info && connection->socket < 0;
	     info = info->ai_next)
		if (connect_one(connection, info, deadline_ms))
			break;
	int reason = errno;
	freeaddrinfo(list);
	if (connection->socket < 0)
		return fail(connection, error, strerror(reason));
	int on = 1;
	setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return true;
}

/* What OpenSSL said last, or the reason that a certificate was not believed. */
static const char *tls_reason(const struct connection *connection)
{
	long verdict = connection->tls ? SSL_get_verify_result(connection->tls) : X509_V_OK;
	unsigned long code = ERR_peek_last_error();
	if (verdict != X509_V_OK)
		return X509_verify_cert_error_string(verdict);
	if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
		return "what answers there does not speak TLS; did you mean http://?";
	return code ? ERR_reason_error_string(code) : "the connection was closed";
}

/* Waits until TLS can go on; false: it cannot, or not in time. */
static bool tls_wait(const struct connection *connection, int result, int64_t deadline_ms)
{
	int wants = SSL_get_error(connection->tls, result);
	if (wants != SSL_ERROR_WANT_READ && wants != SSL_ERROR_WANT_WRITE)
		return false;
	short events = wants == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
	return wait_for(connection, events, deadline_ms) || now_ms() < deadline_ms;
}

static bool trust(struct connection *connection, const char *ca_file, struct error *error)
{
	connection->context = SSL_CTX_new(TLS_client_method());
	if (!connection->context)
		return fail(connection, error, "there is no TLS here");
	SSL_CTX_set_verify(connection->context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_min_proto_version(connection->context, TLS1_2_VERSION);
	if (ca_file && SSL_CTX_load_verify_locations(connection->context, ca_file, NULL) != 1)
		return error_set(error, ERROR_INVALID, "cannot read certificates from %.160s",
		                 ca_file);
	if (!ca_file && SSL_CTX_set_default_verify_paths(connection->context) != 1)
		return fail(connection, error, "the system's certificates cannot be read");
	return true;
}

static bool begin_tls(struct connection *connection, const struct address *address,
                      const char *ca_file, int64_t deadline_ms, struct error *error)
{
	ERR_clear_error();
	/* OpenSSL writes to sockets in a way that raises it. */
	signal(SIGPIPE, SIG_IGN);
	if (!trust(connection, ca_file, error))
		return false;
	connection->tls = SSL_new(connection->context);
	SSL_set_fd(connection->tls, connection->socket);
	if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection->tls), address->host) != 1) {
		SSL_set1_host(connection->tls, address->host);
		SSL_set_tlsext_host_name(connection->tls, address->host);
	}
	int result;
	while ((result = SSL_connect(connection->tls)) != 1) {
		if (!tls_wait(connection, result, deadline_ms)) {
			fail(connection, error,
			     now_ms() >= deadline_ms ? "no answer in time"
			                             : tls_reason(connection));
			return false;
		}
	}
	return true;
}

struct connection *connection_open(const struct address *address, const char *ca_file,
                                   int64_t most_ms, struct error *error)
{
	struct connection *connection = NEW(struct connection);
	int64_t deadline_ms = now_ms() + most_ms;
	connection->socket = -1;
	snprintf(connection->where, sizeof(connection->where), "%s://%s",
	         address->secure ? "https" : "http", address->authority);
	if (connect_to(connection, address, deadline_ms, error) &&
	    (!address->secure || begin_tls(connection, address, ca_file, deadline_ms, error)))
		return connection;
	connection_close(connection);
	return NULL;
}

void connection_close(struct connection *connection)
{
	if (!connection)
		return;
	if (connection->tls) {
		SSL_shutdown(connection->tls);
		SSL_free(connection->tls);
	}
	SSL_CTX_free(connection->context);
	if (connection->socket >= 0)
		close(connection->socket);
	free(connection);
}

/* One try: how much went, 0 to try again, -1 where it will not go. */
static long write_some(struct connection *connection, const char *data, size_t size,
                       int64_t deadline_ms)
{
	if (connection->tls) {
		ERR_clear_error();
		int result = SSL_write(connection->tls, data, (int)min64((int64_t)size, 1 << 20));
		if (result > 0)
			return result;
		return tls_wait(connection, result, deadline_ms) ? 0 : -1;
	}
	ssize_t sent = send(connection->socket, data, size, MSG_NOSIGNAL);
	if (sent > 0)
		return sent;
	if (errno != EAGAIN && errno != EINTR)
		return -1;
	return wait_for(connection, POLLOUT, deadline_ms) || now_ms() < deadline_ms ? 0 : -1;
}

bool connection_write(struct connection *connection, const void *data, size_t size, int64_t most_ms,
                      struct error *error)
{
	int64_t deadline_ms = now_ms() + most_ms;
	const char *at = data;
	while (size > 0) {
		long sent = write_some(connection, at, size, deadline_ms);
		if (sent < 0)
			return fail(connection, error,
			            now_ms() >= deadline_ms ? "it takes no more bytes"
			                                    : "the connection was closed");
		at += sent;
		size -= (size_t)sent;
	}
	return true;
}

/* One try; `*events` is what to wait for where nothing is there yet. */
static long read_some(struct connection *connection, void *data, size_t size, short *events)
{
	*events = POLLIN;
	if (connection->tls) {
		ERR_clear_error();
		int result = SSL_read(connection->tls, data, (int)min64((int64_t)size, 1 << 20));
		if (result > 0)
			return result;
		int wants = SSL_get_error(connection->tls, result);
		if (wants == SSL_ERROR_WANT_WRITE)
			*events = POLLOUT;
		if (wants == SSL_ERROR_WANT_READ || wants == SSL_ERROR_WANT_WRITE)
			return CONNECTION_WAITS;
		return wants == SSL_ERROR_ZERO_RETURN ? CONNECTION_ENDED : CONNECTION_FAILED;
	}
	ssize_t got = recv(connection->socket, data, size, 0);
	if (got >= 0)
		return got;
	return errno == EAGAIN || errno == EINTR ? CONNECTION_WAITS : CONNECTION_FAILED;
}

long connection_read(struct connection *connection, void *data, size_t size, int64_t most_ms,
                     struct error *error)
{
	int64_t deadline_ms = now_ms() + most_ms;
	short events;
	long got = read_some(connection, data, size, &events);
	if (got == CONNECTION_WAITS && most_ms > 0 && wait_for(connection, events, deadline_ms))
		got = read_some(connection, data, size, &events);
	if (got == CONNECTION_FAILED)
		fail(connection, error, "the connection was closed");
	return got;
}

int connection_descriptor(const struct connection *connection)
{
	return connection->socket;
}
