/* fetch_internal.h - what whole answers, streams and tunnels share */
#ifndef FETCH_FETCH_INTERNAL_H
#define FETCH_FETCH_INTERNAL_H

#include <curl/curl.h>

#include "fetch/fetch.h"

/* One request on a handle of libcurl. Set up by transfer_begin, which leaves pointers to it in
 * the handle, so that it must not move. */
struct transfer {
	const struct fetch_request *request;
	struct fetch_answer *answer; /* NULL: a tunnel */
	CURL *handle;
	struct curl_slist *headers;
	char reason[CURL_ERROR_SIZE];
	bool is_too_large, is_refused;
};

/* Prepares the handle for the request. False: it is out of memory, or the URL is not one. */
bool transfer_begin(struct transfer *transfer, CURL *handle, const struct fetch_request *request,
                    struct fetch_answer *answer, struct error *error);
/* Takes what has come for the transfer that was added to `multi`, without waiting. */
enum fetch_state transfer_advance(struct transfer *transfer, CURLM *multi, struct error *error);
/* Waits for the end of the transfer, or for the moment that the request names. */
bool transfer_run(struct transfer *transfer, CURLM *multi, struct error *error);
/* Takes the status of the answer, if its headers have come. */
void transfer_take_status(struct transfer *transfer);
/* Explains why libcurl gave up. Always false. */
bool transfer_fail(const struct transfer *transfer, CURLcode code, struct error *error);
/* Frees what transfer_begin made; the handle stays. */
void transfer_end(struct transfer *transfer);

/* Milliseconds of the monotonic clock. */
int64_t transfer_now_ms(void);
/* A handle, after libcurl was initialized. NULL: out of memory. */
CURL *transfer_handle(void);

#endif
