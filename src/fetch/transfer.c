/* transfer.c - one request on a handle of libcurl: its options, and why it failed */
#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "fetch/fetch_internal.h"

enum { KEEPALIVE_S = 30, LOOK_MS = 50 };

void fetch_outlive_exit(void)
{
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

static void initialize(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

CURL *transfer_handle(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, initialize);
	return curl_easy_init();
}

/* Called for each address before the connection is made, so that a name which resolves to a
 * forbidden address is refused as well. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct transfer *transfer = context;
	const struct fetch_request *request = transfer->request;

	(void)purpose;
	if (request->allows && !request->allows(request->context, &address->addr)) {
		transfer->is_refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
	struct transfer *transfer = context;
	const struct fetch_request *request = transfer->request;
	struct fetch_answer *answer = transfer->answer;

	(void)one;
	transfer_take_status(transfer);
	if (request->part) {
		request->part(request->context, data, size);
		return size;
	}
	if (request->answer_bytes > 0 && answer->body.size + size > request->answer_bytes) {
		transfer->is_too_large = true;
		return 0;
	}
	buffer_bytes(&answer->body, data, size);
	return size;
}

void transfer_take_status(struct transfer *transfer)
{
	long status = 0;

	curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &status);
	transfer->answer->status = (int)status;
}

/* Servers on this machine are never asked through a proxy, whatever the environment says. */
static bool set_proxy(CURL *handle, const struct fetch_request *request)
{
	const char *without = getenv("no_proxy");
	struct buffer list = { 0 };

	if (request->is_direct)
		return curl_easy_setopt(handle, CURLOPT_PROXY, "") == CURLE_OK;
	if (!without)
		without = getenv("NO_PROXY");
	buffer_print(&list, "localhost,127.0.0.1,::1%s%s", without && *without ? "," : "",
	             without ? without : "");
	if (without && strcmp(without, "*") == 0) {
		buffer_clear(&list);
		buffer_text(&list, "*");
	}
	bool set = curl_easy_setopt(handle, CURLOPT_NOPROXY, list.data) == CURLE_OK;
	buffer_free(&list);
	return set;
}

static bool set_headers(struct transfer *transfer, const struct fetch_request *request)
{
	for (const char *const *at = request->headers; at && *at; at++) {
		struct curl_slist *longer = curl_slist_append(transfer->headers, *at);
		if (!longer)
			return false;
		transfer->headers = longer;
	}
	/* A server that does not know 'Expect' would cost a second. */
	struct curl_slist *longer = curl_slist_append(transfer->headers, "Expect:");
	if (!longer)
		return false;
	transfer->headers = longer;
	return curl_easy_setopt(transfer->handle, CURLOPT_HTTPHEADER, longer) == CURLE_OK;
}

static void set_body(CURL *handle, const struct fetch_request *request)
{
	const char *method = request->method ? request->method : "GET";

	if (request->body || strcmp(method, "POST") == 0) {
		curl_easy_setopt(handle, CURLOPT_POST, 1L);
		curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
		                 (curl_off_t)request->body_size);
		curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request->body ? request->body : "");
	} else {
		curl_easy_setopt(handle, CURLOPT_HTTPGET, 1L);
	}
	curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, method);
}

static void set_limits(CURL *handle, const struct fetch_request *request)
{
	curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_ms);
	curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)request->total_ms);
	curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(handle, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(handle, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
	curl_easy_setopt(handle, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
}

bool transfer_begin(struct transfer *transfer, CURL *handle, const struct fetch_request *request,
                    struct fetch_answer *answer, struct error *error)
{
	*transfer = (struct transfer){ .request = request, .answer = answer, .handle = handle };
	curl_easy_reset(handle);
	curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, transfer->reason);
	curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, transfer);
	set_limits(handle, request);
	if (answer) {
		curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
		curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer);
		set_body(handle, request);
	}
	if (request->user_agent)
		curl_easy_setopt(handle, CURLOPT_USERAGENT, request->user_agent);
	if (request->ca_file) {
		if (access(request->ca_file, R_OK) != 0)
			return error_set(error, ERROR_INVALID,
			                 "cannot read certificates from %.160s: %s",
			                 request->ca_file, strerror(errno));
		curl_easy_setopt(handle, CURLOPT_CAINFO, request->ca_file);
		curl_easy_setopt(handle, CURLOPT_CAPATH, NULL);
	}
	if (curl_easy_setopt(handle, CURLOPT_URL, request->url) != CURLE_OK ||
	    !set_proxy(handle, request) || !set_headers(transfer, request))
		return error_set(error, ERROR_UNAVAILABLE, "out of memory");
	return true;
}

static bool is_given_up(const struct fetch_request *request)
{
	int64_t end_ms = request->end_ms ? atomic_load(request->end_ms) : 0;

	return end_ms > 0 && clock_steady_ms() >= end_ms;
}

/* The result of the transfer, if it has ended. */
static bool has_ended(CURLM *multi, CURLcode *code)
{
	int left;
	const CURLMsg *message = curl_multi_info_read(multi, &left);

	if (!message || message->msg != CURLMSG_DONE)
		return false;
	*code = message->data.result;
	return true;
}

enum fetch_state transfer_advance(struct transfer *transfer, CURLM *multi, struct error *error)
{
	CURLcode code;
	int running;
	CURLMcode result = curl_multi_perform(multi, &running);

	if (result != CURLM_OK) {
		error_set(error, ERROR_UNAVAILABLE, "%s", curl_multi_strerror(result));
		return FETCH_FAILED;
	}
	if (!has_ended(multi, &code))
		return FETCH_RUNS;
	if (code == CURLE_OK)
		return FETCH_COMPLETE;
	transfer_fail(transfer, code, error);
	return FETCH_FAILED;
}

bool transfer_run(struct transfer *transfer, CURLM *multi, struct error *error)
{
	int wait_ms = transfer->request->end_ms ? LOOK_MS : 1000;
	enum fetch_state state;

	curl_multi_add_handle(multi, transfer->handle);
	while ((state = transfer_advance(transfer, multi, error)) == FETCH_RUNS) {
		if (is_given_up(transfer->request)) {
			error_set(error, ERROR_UNAVAILABLE, "the program is stopping");
			state = FETCH_FAILED;
			break;
		}
		curl_multi_poll(multi, NULL, 0, wait_ms, NULL);
	}
	curl_multi_remove_handle(multi, transfer->handle);
	return state == FETCH_COMPLETE;
}

void transfer_end(struct transfer *transfer)
{
	curl_slist_free_all(transfer->headers);
	transfer->headers = NULL;
	if (!transfer->handle)
		return;
	/* Nothing in the handle may point to the caller's memory between requests. */
	curl_easy_setopt(transfer->handle, CURLOPT_ERRORBUFFER, NULL);
	curl_easy_setopt(transfer->handle, CURLOPT_HTTPHEADER, NULL);
}

void fetch_answer_free(struct fetch_answer *answer)
{
	buffer_free(&answer->body);
	*answer = (struct fetch_answer){ 0 };
}

static bool cannot_reach(const struct transfer *transfer, const char *reason, struct error *error)
{
	return error_set(error, ERROR_UNAVAILABLE, "cannot reach %s: %s", transfer->request->server,
	                 reason);
}

/* The error of the system where there was one, and libcurl's own sentence otherwise. */
static const char *reason_of(const struct transfer *transfer, CURLcode code)
{
	long number = 0;

	curl_easy_getinfo(transfer->handle, CURLINFO_OS_ERRNO, &number);
	if (code == CURLE_COULDNT_CONNECT && number != 0)
		return strerror((int)number);
	return transfer->reason[0] ? transfer->reason : curl_easy_strerror(code);
}

static bool fail_late(const struct transfer *transfer, struct error *error)
{
	curl_off_t connected = 0;

	curl_easy_getinfo(transfer->handle, CURLINFO_PRETRANSFER_TIME_T, &connected);
	if (connected == 0)
		return cannot_reach(transfer, "no answer in time", error);
	return error_set(error, ERROR_UNAVAILABLE, "%s did not answer within %lld s",
	                 transfer->request->server,
	                 (long long)(transfer->request->total_ms / 1000));
}

bool transfer_fail(const struct transfer *transfer, CURLcode code, struct error *error)
{
	const struct fetch_request *request = transfer->request;

	if (transfer->is_too_large)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "the answer is larger than %zu MiB: request less at a time",
		                 request->answer_bytes >> 20);
	if (transfer->is_refused)
		return error_set(error, ERROR_FORBIDDEN,
		                 "%.100s has a private address, where this request may not go",
		                 request->server);
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return fail_late(transfer, error);
	case CURLE_SSL_CACERT_BADFILE:
		return error_set(error, ERROR_INVALID, "cannot read certificates from %.160s",
		                 request->ca_file);
	case CURLE_SSL_CONNECT_ERROR:
		if (strstr(transfer->reason, "wrong version number"))
			return cannot_reach(transfer,
			                    "it does not speak TLS; did you mean http://?", error);
		return cannot_reach(transfer, reason_of(transfer, code), error);
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		return error_set(
		    error, ERROR_UNAVAILABLE,
		    "%s does not speak HTTP/1.1: is it the port of its REST interface?",
		    request->server);
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		return error_set(error, ERROR_UNAVAILABLE,
		                 "%s closed the connection before its answer was complete",
		                 request->server);
	default:
		return cannot_reach(transfer, reason_of(transfer, code), error);
	}
}
