/* follow.c - those who read the output of tasks, through the scheduler */
#include "agent/workload/follow.h"

#include <stdlib.h>

#include "agent/host/output.h"
#include "base/memory.h"
#include "base/number.h"

#define LOOK_MS 100
#define PIECE_BYTES 65536
#define READERS_MAX 1024

struct follow {
	struct output_request request;
	char *directory;
	int64_t offset; /* of the next piece */
	int64_t taken;
};

struct follows {
	struct follows_settings settings;
	uv_timer_t *timer; /* runs while somebody reads */
	bool running;
	struct follow *at;
	size_t count, capacity;
};

static void follow_look(uv_timer_t *timer);

struct follows *follows_new(const struct follows_settings *settings)
{
	struct follows *follows = NEW(struct follows);

	follows->settings = *settings;
	follows->timer = NEW(uv_timer_t);
	uv_timer_init(settings->loop, follows->timer);
	follows->timer->data = follows;
	return follows;
}

static void timer_closed(uv_handle_t *handle)
{
	free(handle);
}

void follows_free(struct follows *follows)
{
	follows_clear(follows);
	uv_close((uv_handle_t *)follows->timer, timer_closed);
	free(follows->at);
	free(follows);
}

static void send_end(struct follows *follows, const struct output_request *request, int64_t offset,
                     const char *error)
{
	struct envelope envelope = { .kind = ENVELOPE_OUTPUT_CHUNK,
		                     .chunk = { .request_id = request->request_id,
		                                .offset = offset,
		                                .end = true,
		                                .error = text_of(error) } };

	follows->settings.send(follows->settings.context, &envelope);
}

static void remove_at(struct follows *follows, size_t at)
{
	struct follow *last = &follows->at[--follows->count];

	free(follows->at[at].directory);
	follows->at[at] = *last;
	last->directory = NULL;
}

static enum output_stream stream_of(const struct output_request *request)
{
	return request->errors ? STREAM_ERRORS : STREAM_OUTPUT;
}

static bool is_writing(const struct follows *follows, const struct output_request *request)
{
	return works_is_writing(follows->settings.works, request->reservation_id, request->job_id,
	                        request->task);
}

/* Sends the next piece. False: there is none now, or no room for it. */
static bool send_piece(struct follows *follows, struct follow *follow)
{
	static char data[PIECE_BYTES];
	const struct output_request *request = &follow->request;
	size_t most = PIECE_BYTES;

	if (!follows->settings.has_room(follows->settings.context))
		return false;
	if (request->window > 0)
		most = (size_t)max64(
		    min64(request->window - (follow->offset - follow->taken), PIECE_BYTES), 0);
	if (most == 0)
		return false;
	ssize_t got =
	    output_read(follow->directory, stream_of(request), &follow->offset, data, most);
	if (got <= 0)
		return false;
	struct envelope envelope = { .kind = ENVELOPE_OUTPUT_CHUNK,
		                     .chunk = { .request_id = request->request_id,
		                                .offset = follow->offset,
		                                .data = { data, (size_t)got } } };
	follow->offset += got;
	follows->settings.send(follows->settings.context, &envelope);
	return true;
}

/* False: it has all that there will be. */
static bool follow_go_on(struct follows *follows, struct follow *follow)
{
	/* What is written until here is read after that, so nothing is missed. */
	bool more = follow->request.follow && is_writing(follows, &follow->request);
	int64_t first, end = 0;

	while (send_piece(follows, follow))
		;
	if (more || (output_bounds(follow->directory, stream_of(&follow->request), &first, &end) &&
	             follow->offset < end))
		return true;
	send_end(follows, &follow->request, follow->offset, "");
	return false;
}

static void follow_look(uv_timer_t *timer)
{
	struct follows *follows = timer->data;

	for (size_t i = follows->count; i-- > 0;)
		if (!follow_go_on(follows, &follows->at[i]))
			remove_at(follows, i);
	if (follows->count == 0) {
		uv_timer_stop(timer);
		follows->running = false;
	}
}

static void look_soon(struct follows *follows)
{
	uv_timer_start(follows->timer, follow_look, 0, LOOK_MS);
	follows->running = true;
}

static int64_t begin_at(const struct follow *follow)
{
	int64_t first = 0, end = 0;

	if (follow->request.offset >= 0)
		return follow->request.offset;
	output_bounds(follow->directory, stream_of(&follow->request), &first, &end);
	return max64(end + follow->request.offset, first);
}

void follows_request(struct follows *follows, const struct output_request *request)
{
	char *directory =
	    works_output_directory(follows->settings.state_directory, request->reservation_id,
	                           request->job_id, request->task);
	int64_t first, end;

	if (!directory || follows->count >= READERS_MAX ||
	    (request->errors && !output_bounds(directory, STREAM_ERRORS, &first, &end))) {
		send_end(follows, request, 0,
		         !directory        ? "its output is not on this node, or not any more"
		         : request->errors ? "standard error is not kept apart from the output"
		                           : "too many read output of this node");
		free(directory);
		return;
	}
	array_reserve(follows->at, follows->capacity, follows->count + 1);
	struct follow *follow = &follows->at[follows->count++];
	*follow = (struct follow){ .request = *request, .directory = directory };
	follow->offset = follow->taken = begin_at(follow);
	look_soon(follows);
}

void follows_taken(struct follows *follows, int64_t request_id, int64_t offset)
{
	for (size_t i = 0; i < follows->count; i++) {
		struct follow *follow = &follows->at[i];
		if (follow->request.request_id != request_id)
			continue;
		follow->taken = max64(follow->taken, min64(offset, follow->offset));
		look_soon(follows);
	}
}

void follows_stop(struct follows *follows, int64_t request_id)
{
	for (size_t i = follows->count; i-- > 0;)
		if (follows->at[i].request.request_id == request_id)
			remove_at(follows, i);
}

void follows_clear(struct follows *follows)
{
	while (follows->count > 0)
		remove_at(follows, 0);
}
