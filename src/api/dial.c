/* dial.c - a blocking connection to a server somewhere, in the clear or by TLS */
#include "api/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/clock.h"
#include "base/memory.h"
#include "base/number.h"

enum { LOOK_MS = 50 };

/* The socket does not block; waiting is done by poll, up to `deadline_ms`. */
struct dial {
	int socket;
	char *host, *ca_path;
	int64_t deadline_ms;
	const dial_end_ms *end_ms;
	SSL_CTX *context;
	SSL *tls;
	char received[4096];
	size_t at, size;
};

static bool is_private_ipv4(uint32_t address)
{
	static const struct {
		uint32_t network;
		int bits;
	} of[] = {
		{ 0x00000000, 8 },  { 0x0a000000, 8 },  { 0x64400000, 10 }, { 0x7f000000, 8 },
		{ 0xa9fe0000, 16 }, { 0xac100000, 12 }, { 0xc0000000, 24 }, { 0xc0a80000, 16 },
		{ 0xc6120000, 15 }, { 0xe0000000, 3 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if ((address ^ of[i].network) >> (32 - of[i].bits) == 0)
			return true;
	return false;
}

static bool is_private_ipv6(const struct in6_addr *address)
{
	const uint8_t *at = address->s6_addr;
	uint32_t tail;

	if (IN6_IS_ADDR_V4MAPPED(address)) {
		memcpy(&tail, at + 12, 4);
		return is_private_ipv4(ntohl(tail));
	}
	/* Only 2000::/3 is routed, and of that not what carries IPv4 addresses. */
	return (at[0] & 0xe0) != 0x20 || (at[0] == 0x20 && at[1] == 0x02) ||
	       (at[0] == 0x20 && at[1] == 0x01 && at[2] == 0 && at[3] == 0);
}

bool dial_is_private_host(const char *host)
{
	struct in_addr four;
	struct in6_addr six;
	size_t size = strlen(host);

	/* inet_aton knows the short and the octal forms that getaddrinfo knows, too. */
	if (inet_aton(host, &four))
		return is_private_ipv4(ntohl(four.s_addr));
	if (inet_pton(AF_INET6, host, &six) == 1)
		return is_private_ipv6(&six);
	if (size > 0 && host[size - 1] == '.')
		size--;
	return (size == 9 && strncasecmp(host, "localhost", 9) == 0) ||
	       (size > 10 && strncasecmp(host + size - 10, ".localhost", 10) == 0);
}

static bool is_private(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return is_private_ipv4(
		    ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr));
	if (address->sa_family == AF_INET6)
		return is_private_ipv6(
		    &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
	return true;
}

/* How long there is left to wait; looked at every LOOK_MS, as the end may be set meanwhile. */
static int64_t left_ms(const struct dial *dial)
{
	int64_t end_ms = dial->end_ms ? atomic_load(dial->end_ms) : 0;
	int64_t until_ms = end_ms > 0 ? min64(end_ms, dial->deadline_ms) : dial->deadline_ms;

	return until_ms - clock_steady_ms();
}

static bool wait_for(struct dial *dial, short what)
{
	struct pollfd poll_fd = { .fd = dial->socket, .events = what };

	for (;;) {
		int64_t wait_ms = min64(left_ms(dial), LOOK_MS);
		if (wait_ms <= 0)
			return false;
		int ready = poll(&poll_fd, 1, (int)wait_ms);
		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR)
			return false;
	}
}

static bool try_address(struct dial *dial, const struct addrinfo *to)
{
	int failed = 0;
	socklen_t size = sizeof(failed);

	dial->socket = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (dial->socket < 0)
		return false;
	if (connect(dial->socket, to->ai_addr, to->ai_addrlen) == 0)
		return true;
	if (errno == EINPROGRESS && wait_for(dial, POLLOUT) &&
	    getsockopt(dial->socket, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed == 0)
		return true;
	close(dial->socket);
	dial->socket = -1;
	return false;
}

static bool connect_to(struct dial *dial, const struct dial_options *options, struct error *error)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	char port[16];
	bool refused = false;

	snprintf(port, sizeof(port), "%lld", (long long)options->port);
	if (getaddrinfo(options->host, port, &hints, &list) != 0)
		return error_set(error, ERROR_UNAVAILABLE, "the name %.100s is not known",
		                 options->host);
	for (const struct addrinfo *at = list; at && dial->socket < 0; at = at->ai_next) {
		if (options->only_public && is_private(at->ai_addr))
			refused = true;
		else
			try_address(dial, at);
	}
	freeaddrinfo(list);
	if (dial->socket >= 0)
		return true;
	if (refused)
		return error_set(error, ERROR_FORBIDDEN,
		                 "%.100s is a private address, and notifications of tenants do "
		                 "not go there",
		                 options->host);
	return error_set(error, ERROR_UNAVAILABLE, "%.100s port %s does not answer", options->host,
	                 port);
}

struct dial *dial_open(const struct dial_options *options, struct error *error)
{
	struct dial *dial = NEW(struct dial);

	dial->socket = -1;
	dial->host = memory_text(options->host);
	dial->ca_path = options->ca_path ? memory_text(options->ca_path) : NULL;
	dial->deadline_ms = clock_steady_ms() + options->timeout_ms;
	dial->end_ms = options->end_ms;
	if (connect_to(dial, options, error) && (!options->tls || dial_secure(dial, error)))
		return dial;
	dial_close(dial);
	return NULL;
}

static bool fail_tls(const struct dial *dial, struct error *error)
{
	long verified = dial->tls ? SSL_get_verify_result(dial->tls) : X509_V_OK;
	const char *reason = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
	                                           : "no agreement was reached";

	ERR_clear_error();
	return error_set(error, ERROR_UNAVAILABLE, "TLS with %.100s failed: %s", dial->host,
	                 reason);
}

/* Waits for what the last call of TLS wants; false: it failed. */
static bool wait_tls(struct dial *dial, int result)
{
	switch (SSL_get_error(dial->tls, result)) {
	case SSL_ERROR_WANT_READ:
		return wait_for(dial, POLLIN);
	case SSL_ERROR_WANT_WRITE:
		return wait_for(dial, POLLOUT);
	default:
		return false;
	}
}

bool dial_secure(struct dial *dial, struct error *error)
{
	unsigned char address[16];
	int result;

	dial->context = SSL_CTX_new(TLS_client_method());
	if (!dial->context || SSL_CTX_set_min_proto_version(dial->context, TLS1_2_VERSION) != 1 ||
	    (dial->ca_path ? SSL_CTX_load_verify_file(dial->context, dial->ca_path)
	                   : SSL_CTX_set_default_verify_paths(dial->context)) != 1)
		return fail_tls(dial, error);
	SSL_CTX_set_verify(dial->context, SSL_VERIFY_PEER, NULL);
	dial->tls = SSL_new(dial->context);
	if (!dial->tls || SSL_set_fd(dial->tls, dial->socket) != 1)
		return fail_tls(dial, error);
	bool is_address = inet_pton(AF_INET, dial->host, address) == 1 ||
	                  inet_pton(AF_INET6, dial->host, address) == 1;
	bool named = is_address
	                 ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(dial->tls), dial->host) == 1
	                 : SSL_set_tlsext_host_name(dial->tls, dial->host) == 1 &&
	                       SSL_set1_host(dial->tls, dial->host) == 1;
	if (!named)
		return fail_tls(dial, error);
	/* What came in the clear does not count as said under TLS. */
	dial->at = dial->size = 0;
	while ((result = SSL_connect(dial->tls)) != 1)
		if (!wait_tls(dial, result))
			return fail_tls(dial, error);
	return true;
}

static bool fail_slow(const struct dial *dial, struct error *error)
{
	return error_set(error, ERROR_UNAVAILABLE, "%.100s ended the connection, or is too slow",
	                 dial->host);
}

bool dial_write(struct dial *dial, struct text bytes, struct error *error)
{
	while (bytes.size > 0) {
		size_t done = 0;
		if (dial->tls) {
			int result = SSL_write_ex(dial->tls, bytes.data, bytes.size, &done);
			if (result != 1 && !wait_tls(dial, result))
				return fail_slow(dial, error);
		} else {
			ssize_t sent = send(dial->socket, bytes.data, bytes.size, MSG_NOSIGNAL);
			if (sent >= 0)
				done = (size_t)sent;
			else if ((errno != EAGAIN && errno != EINTR) || !wait_for(dial, POLLOUT))
				return fail_slow(dial, error);
		}
		bytes = text_from(bytes, done);
	}
	return true;
}

static bool receive(struct dial *dial)
{
	dial->at = dial->size = 0;
	while (dial->size == 0) {
		if (dial->tls) {
			int result = SSL_read_ex(dial->tls, dial->received, sizeof(dial->received),
			                         &dial->size);
			if (result != 1 && !wait_tls(dial, result))
				return false;
		} else {
			ssize_t got = recv(dial->socket, dial->received, sizeof(dial->received), 0);
			if (got > 0)
				dial->size = (size_t)got;
			else if (got == 0 || (errno != EAGAIN && errno != EINTR) ||
			         !wait_for(dial, POLLIN))
				return false;
		}
	}
	return true;
}

bool dial_line(struct dial *dial, char *line, size_t most, struct error *error)
{
	size_t size = 0;

	for (;;) {
		if (dial->at == dial->size && !receive(dial))
			return fail_slow(dial, error);
		char c = dial->received[dial->at++];
		if (c == '\n')
			break;
		if (size + 1 < most)
			line[size++] = c;
	}
	if (size > 0 && line[size - 1] == '\r')
		size--;
	line[size] = '\0';
	return true;
}

void dial_close(struct dial *dial)
{
	if (!dial)
		return;
	if (dial->tls)
		SSL_shutdown(dial->tls);
	SSL_free(dial->tls);
	SSL_CTX_free(dial->context);
	ERR_clear_error();
	if (dial->socket >= 0)
		close(dial->socket);
	free(dial->host);
	free(dial->ca_path);
	free(dial);
}
