/* stream.c - answers that come over time */
#include <stdlib.h>
#include <sys/select.h>

#include "base/memory.h"
#include "base/number.h"
#include "fetch/fetch_internal.h"

struct fetch_stream {
	struct transfer transfer;
	CURLM *multi;
	bool is_complete; /* libcurl says so only once */
};

enum fetch_state fetch_advance(struct fetch_stream *stream, struct error *error)
{
	if (stream->is_complete)
		return FETCH_COMPLETE;
	enum fetch_state state = transfer_advance(&stream->transfer, stream->multi, error);
	transfer_take_status(&stream->transfer);
	stream->is_complete = state == FETCH_COMPLETE;
	return state;
}

void fetch_wait(struct fetch_stream *stream, int64_t most_ms)
{
	curl_multi_poll(stream->multi, NULL, 0, (int)min64(most_ms, 3600000), NULL);
}

/* True if the request is on its way, with all of its body: what polls the descriptor for reading
 * would not see that more can be sent. */
static bool is_sent(const struct fetch_stream *stream, const struct fetch_request *request)
{
	curl_off_t sent = 0, uploaded = 0;

	curl_easy_getinfo(stream->transfer.handle, CURLINFO_PRETRANSFER_TIME_T, &sent);
	curl_easy_getinfo(stream->transfer.handle, CURLINFO_SIZE_UPLOAD_T, &uploaded);
	return sent > 0 && uploaded >= (curl_off_t)request->body_size;
}

struct fetch_stream *fetch_open(const struct fetch_request *request, struct fetch_answer *answer,
                                struct error *error)
{
	struct fetch_stream *stream = NEW(struct fetch_stream);
	CURL *handle = transfer_handle();
	enum fetch_state state = FETCH_FAILED;

	stream->multi = curl_multi_init();
	stream->transfer.handle = handle;
	if (!handle || !stream->multi) {
		error_set(error, ERROR_UNAVAILABLE, "out of memory");
	} else if (transfer_begin(&stream->transfer, handle, request, answer, error)) {
		curl_multi_add_handle(stream->multi, handle);
		while ((state = fetch_advance(stream, error)) == FETCH_RUNS &&
		       !is_sent(stream, request))
			fetch_wait(stream, 1000);
	}
	if (state == FETCH_FAILED) {
		fetch_close(stream);
		return NULL;
	}
	return stream;
}

int fetch_descriptor(const struct fetch_stream *stream)
{
	fd_set readable, writable, failed;
	int last = -1;

	/* CURLINFO_ACTIVESOCKET is unknown while a transfer of a multi handle runs. */
	FD_ZERO(&readable);
	FD_ZERO(&writable);
	FD_ZERO(&failed);
	if (curl_multi_fdset(stream->multi, &readable, &writable, &failed, &last) != CURLM_OK)
		return -1;
	while (last >= 0 && !FD_ISSET(last, &readable))
		last--;
	return last;
}

void fetch_close(struct fetch_stream *stream)
{
	if (!stream)
		return;
	CURL *handle = stream->transfer.handle;
	if (handle && stream->multi)
		curl_multi_remove_handle(stream->multi, handle);
	transfer_end(&stream->transfer);
	curl_easy_cleanup(handle);
	curl_multi_cleanup(stream->multi);
	free(stream);
}
