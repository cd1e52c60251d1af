/* session_links.c - interactive sessions of tasks: from the scheduler's connection to the keepers
 */
#include "agent/workload/session_links.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/keeper/sessions.h"
#include "base/clock.h"
#include "base/memory.h"
#include "channel/frame.h"

enum {
	LINKS_MAX = 2048,
	WAITING_BYTES_MAX = 4 * FRAME_INPUT_WINDOW, /* frames for a keeper; more breaks the rules */
	AT_ONCE = 32,                               /* frames that are read before others' turn */
	AGAIN_MS = 5,
	TYPED_MS = 1000,
};

/* `waiting` has frames that the keeper has not taken: a size and the bytes of each. */
struct session_link {
	struct session_links *links;
	int64_t channel, reservation_id;
	int64_t typed_ms; /* when that was told last */
	int fd;
	uv_poll_t poll;
	int events; /* that are polled for; -1: closing */
	struct buffer waiting;
	size_t at;
};

struct session_links {
	struct session_links_settings settings;
	uv_timer_t *again; /* runs while a link was left alone for want of room */
	struct session_link **list;
	size_t count, capacity;
};

static void links_look_again(uv_timer_t *timer);

struct session_links *session_links_new(const struct session_links_settings *settings)
{
	struct session_links *links = NEW(struct session_links);

	links->settings = *settings;
	links->again = NEW(uv_timer_t);
	uv_timer_init(settings->loop, links->again);
	links->again->data = links;
	return links;
}

static void link_closed(uv_handle_t *handle)
{
	struct session_link *link = handle->data;

	close(link->fd);
	if (link->waiting.size > 0)
		explicit_bzero(link->waiting.data, link->waiting.size);
	buffer_free(&link->waiting);
	free(link);
}

static void remove_link(struct session_link *link)
{
	struct session_links *links = link->links;

	for (size_t i = 0; i < links->count; i++)
		if (links->list[i] == link)
			links->list[i] = links->list[--links->count];
	link->events = -1;
	uv_poll_stop(&link->poll);
	uv_close((uv_handle_t *)&link->poll, link_closed);
}

void session_links_clear(struct session_links *links)
{
	while (links->count > 0)
		remove_link(links->list[0]);
}

static void links_timer_closed(uv_handle_t *handle)
{
	free(handle);
}

void session_links_free(struct session_links *links)
{
	session_links_clear(links);
	uv_timer_stop(links->again);
	uv_close((uv_handle_t *)links->again, links_timer_closed);
	free(links->list);
	free(links);
}

static void tell_closed(const struct session_links *links, int64_t channel,
                        const struct error *error)
{
	struct envelope envelope = { .kind = ENVELOPE_SESSION_CLOSE, .request_id = channel };

	if (error) {
		envelope.code = error->code;
		envelope.error = text_of(error->text);
	}
	links->settings.send(links->settings.context, &envelope);
}

static void link_on_event(uv_poll_t *poll, int status, int events);

static void poll_for(struct session_link *link, int events)
{
	if (link->events == events)
		return;
	link->events = events;
	if (events == 0)
		uv_poll_stop(&link->poll);
	else
		uv_poll_start(&link->poll, events, link_on_event);
}

static void end_link(struct session_link *link)
{
	tell_closed(link->links, link->channel, NULL);
	remove_link(link);
}

static void send_waiting(struct session_link *link)
{
	struct buffer *waiting = &link->waiting;
	uint32_t size;

	while (link->at < waiting->size) {
		memcpy(&size, waiting->data + link->at, sizeof(size));
		ssize_t put = send(link->fd, waiting->data + link->at + sizeof(size), size,
		                   MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR);
		if (put < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
			return;
		if (put < 0) {
			end_link(link);
			return;
		}
		link->at += sizeof(size) + size;
	}
	if (waiting->size > 0)
		explicit_bzero(waiting->data, waiting->size);
	buffer_clear(waiting);
	link->at = 0;
}

/* Passes on what the keeper says. */
static void receive(struct session_link *link)
{
	static char data[FRAME_BYTES_MAX + 1];
	struct session_links *links = link->links;

	for (int i = 0; i < AT_ONCE; i++) {
		if (!links->settings.has_room(links->settings.context)) {
			poll_for(link, link->events & ~UV_READABLE);
			uv_timer_start(links->again, links_look_again, AGAIN_MS, 0);
			return;
		}
		ssize_t got = recv(link->fd, data, sizeof(data), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0 || got > FRAME_BYTES_MAX) {
			end_link(link);
			return;
		}
		links->settings.send(links->settings.context,
		                     &(struct envelope){ .kind = ENVELOPE_SESSION_DATA,
		                                         .request_id = link->channel,
		                                         .session_frame = { data, (size_t)got } });
	}
}

static int events_of(const struct session_link *link)
{
	return link->waiting.size > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE;
}

static void link_on_event(uv_poll_t *poll, int status, int events)
{
	struct session_link *link = poll->data;

	poll_for(link, events_of(link));
	if (events & UV_WRITABLE)
		send_waiting(link);
	if (link->events >= 0 && ((events & UV_READABLE) || status < 0))
		receive(link);
	if (link->events > 0 && !(link->events & UV_READABLE))
		return;
	if (link->events >= 0 && link->waiting.size == 0 && (link->events & UV_WRITABLE))
		poll_for(link, UV_READABLE);
}

static void links_look_again(uv_timer_t *timer)
{
	struct session_links *links = timer->data;

	if (!links->settings.has_room(links->settings.context)) {
		uv_timer_start(timer, links_look_again, AGAIN_MS, 0);
		return;
	}
	for (size_t i = 0; i < links->count; i++)
		poll_for(links->list[i], events_of(links->list[i]));
}

static struct session_link *find_link(const struct session_links *links, int64_t channel)
{
	for (size_t i = 0; i < links->count; i++)
		if (links->list[i]->channel == channel)
			return links->list[i];
	return NULL;
}

/* A file in memory with the command. */
static int command_file(const struct spec *spec)
{
	struct buffer bytes = { 0 };
	int fd = memfd_create("command", MFD_CLOEXEC);

	spec_encode(&bytes, spec);
	bool good = fd >= 0 && write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size;
	explicit_bzero(bytes.data, bytes.size);
	buffer_free(&bytes);
	if (!good && fd >= 0)
		close(fd);
	return good ? fd : -1;
}

/* The link, once its call was sent. Negative, with a reason. */
static int call_keeper(const struct session_links *links, const struct session_open *open, int file,
                       struct error *error)
{
	struct session_call call = { .version = CALL_VERSION,
		                     .kind = (int32_t)open->kind,
		                     .offset = open->offset,
		                     .idle_ms = open->idle_ms,
		                     .columns = (int32_t)open->columns,
		                     .rows = (int32_t)open->rows,
		                     .terminal = open->terminal,
		                     .port = (int32_t)open->port };
	char *path = works_session_path(links->settings.works, open->reservation_id);
	int fd = session_path_connect(path);
	int reason = errno;

	free(path);
	if (open->session_id.size >= sizeof(call.id)) {
		error_set(error, ERROR_INVALID, "this is no id of a session");
	} else if (fd < 0 && (reason == ENOENT || reason == ECONNREFUSED)) {
		error_set(error, ERROR_CONFLICT,
		          "the task takes no sessions now: it is starting or has ended, or it was "
		          "started by an older agent");
	} else if (fd < 0) {
		error_set(error, ERROR_UNAVAILABLE, "the task's keeper cannot be reached: %s",
		          strerror(reason));
	} else {
		memcpy(call.id, open->session_id.data, open->session_id.size);
		if (session_call_send(fd, &call, file))
			return fd;
		error_set(error, ERROR_UNAVAILABLE, "the task's keeper does not answer: %s",
		          strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static int open_link(const struct session_links *links, const struct session_open *open,
                     struct error *error)
{
	struct arena arena = { 0 };
	struct spec command = { 0 };
	int file = -1, fd = -1;
	bool good = links->count < LINKS_MAX ||
	            error_set(error, ERROR_FULL, "the node has too many sessions");

	if (good && open->kind == SESSION_OPEN_COMMAND) {
		good = works_session_command(links->settings.works, open, &arena, &command, error);
		file = good ? command_file(&command) : -1;
		if (good && file < 0)
			good = error_set(error, ERROR_UNAVAILABLE,
			                 "cannot make a file in memory: %s", strerror(errno));
	}
	if (good)
		fd = call_keeper(links, open, file, error);
	if (file >= 0)
		close(file);
	spec_wipe(&command);
	arena_free(&arena);
	return fd;
}

void session_links_open(struct session_links *links, const struct session_open *open)
{
	struct error error = { 0 };
	int fd = find_link(links, open->channel) ? -1 : open_link(links, open, &error);

	if (fd < 0) {
		tell_closed(links, open->channel, &error);
		return;
	}
	struct session_link *link = NEW(struct session_link);
	*link = (struct session_link){ .links = links,
		                       .channel = open->channel,
		                       .reservation_id = open->reservation_id,
		                       .fd = fd };
	uv_poll_init(links->settings.loop, &link->poll, fd);
	link->poll.data = link;
	array_reserve(links->list, links->capacity, links->count + 1);
	links->list[links->count++] = link;
	poll_for(link, UV_READABLE);
}

void session_links_data(struct session_links *links, int64_t channel, struct text frame)
{
	struct session_link *link = find_link(links, channel);
	uint32_t size = (uint32_t)frame.size;

	if (!link)
		return;
	if (frame.size == 0 || frame.size > FRAME_BYTES_MAX ||
	    link->waiting.size > WAITING_BYTES_MAX) {
		end_link(link);
		return;
	}
	if (frame.data[0] == FRAME_INPUT && clock_boot_ms() >= link->typed_ms + TYPED_MS) {
		link->typed_ms = clock_boot_ms();
		links->settings.typed(links->settings.context, link->reservation_id);
	}
	buffer_bytes(&link->waiting, &size, sizeof(size));
	buffer_bytes(&link->waiting, frame.data, frame.size);
	send_waiting(link);
	if (link->events >= 0 && link->waiting.size > 0)
		poll_for(link, link->events | UV_WRITABLE);
}

void session_links_close(struct session_links *links, int64_t channel)
{
	struct session_link *link = find_link(links, channel);

	if (link)
		remove_link(link);
}
