/* tunnel.c - a bare connection to a server, through proxy and TLS */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "fetch/fetch_internal.h"

struct fetch_tunnel {
	struct transfer transfer;
	int descriptor;
};

/* True if the socket became ready before the deadline; a signal ends the wait as well. */
static bool tunnel_wait_for(const struct fetch_tunnel *tunnel, short events, int64_t deadline_ms)
{
	struct pollfd poll_for = { .fd = tunnel->descriptor, .events = events };
	int64_t left_ms = max64(deadline_ms - clock_steady_ms(), 0);

	return poll(&poll_for, 1, (int)min64(left_ms, 3600000)) > 0;
}

struct fetch_tunnel *fetch_tunnel(const struct fetch_request *request, struct error *error)
{
	struct fetch_tunnel *tunnel = NEW(struct fetch_tunnel);
	CURL *handle = transfer_handle();
	CURLcode code = CURLE_FAILED_INIT;

	tunnel->transfer.handle = handle;
	if (!handle) {
		error_set(error, ERROR_UNAVAILABLE, "out of memory");
	} else if (transfer_begin(&tunnel->transfer, handle, request, NULL, error)) {
		curl_easy_setopt(handle, CURLOPT_CONNECT_ONLY, 1L);
		/* The caller speaks HTTP/1.1 itself. */
		curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
		curl_easy_setopt(handle, CURLOPT_HTTPPROXYTUNNEL, 1L);
		curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
		code = curl_easy_perform(handle);
		if (code != CURLE_OK)
			transfer_fail(&tunnel->transfer, code, error);
	}
	curl_socket_t descriptor = CURL_SOCKET_BAD;
	if (code == CURLE_OK)
		curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &descriptor);
	tunnel->descriptor = descriptor;
	if (descriptor != CURL_SOCKET_BAD)
		return tunnel;
	fetch_tunnel_close(tunnel);
	return NULL;
}

bool fetch_tunnel_send(struct fetch_tunnel *tunnel, const void *data, size_t size, int64_t most_ms)
{
	int64_t deadline_ms = clock_steady_ms() + most_ms;
	const char *at = data;

	while (size > 0) {
		size_t sent = 0;
		CURLcode code = curl_easy_send(tunnel->transfer.handle, at, size, &sent);
		if (code == CURLE_AGAIN) {
			if (!tunnel_wait_for(tunnel, POLLOUT, deadline_ms) &&
			    clock_steady_ms() >= deadline_ms)
				return false;
		} else if (code != CURLE_OK) {
			return false;
		}
		at += sent;
		size -= sent;
	}
	return true;
}

static long tunnel_receive(struct fetch_tunnel *tunnel, void *data, size_t size)
{
	size_t got = 0;
	CURLcode code = curl_easy_recv(tunnel->transfer.handle, data, size, &got);

	if (code == CURLE_AGAIN)
		return FETCH_TUNNEL_WAITS;
	return code == CURLE_OK ? (long)got : FETCH_TUNNEL_FAILED;
}

long fetch_tunnel_receive(struct fetch_tunnel *tunnel, void *data, size_t size, int64_t most_ms)
{
	int64_t deadline_ms = clock_steady_ms() + most_ms;
	long got = tunnel_receive(tunnel, data, size);

	if (got == FETCH_TUNNEL_WAITS && most_ms > 0 &&
	    tunnel_wait_for(tunnel, POLLIN, deadline_ms))
		got = tunnel_receive(tunnel, data, size);
	return got;
}

int fetch_tunnel_descriptor(const struct fetch_tunnel *tunnel)
{
	return tunnel->descriptor;
}

void fetch_tunnel_close(struct fetch_tunnel *tunnel)
{
	if (!tunnel)
		return;
	transfer_end(&tunnel->transfer);
	curl_easy_cleanup(tunnel->transfer.handle);
	free(tunnel);
}
