/* streams.c - what stays open, and ends when its sign-in no longer holds */
#include "api/auth/streams.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

/* Expiry is by the clock of the day, which may be set: so it is looked at rather than
 * counted down. */
enum { CHECK_MS = 500 };

struct streams {
	struct loop *loop;
	struct gate *gate;
	struct timer timer;
	struct stream *first;
	struct stream *next; /* the one that a check looks at next: ending one may end others */
};

static void streams_on_timer(struct timer *timer)
{
	struct streams *streams =
	    (struct streams *)(void *)((char *)timer - offsetof(struct streams, timer));

	streams_check(streams);
	if (streams->first)
		loop_timer_set(streams->loop, timer, CHECK_MS);
}

struct streams *streams_new(struct loop *loop, struct gate *gate)
{
	struct streams *streams = NEW(struct streams);

	streams->loop = loop;
	streams->gate = gate;
	streams->timer = TIMER(streams_on_timer);
	return streams;
}

void streams_free(struct streams *streams)
{
	if (!streams)
		return;
	while (streams->first)
		streams_remove(streams->first);
	loop_timer_clear(streams->loop, &streams->timer);
	free(streams);
}

void streams_add(struct streams *streams, struct stream *stream, const struct identity *identity,
                 void (*end)(struct stream *stream, const char *reason))
{
	INVARIANT(!stream->streams);
	if (!streams)
		return;
	if (!streams->first)
		loop_timer_set(streams->loop, &streams->timer, CHECK_MS);
	stream->streams = streams;
	stream->identity = *identity;
	stream->end = end;
	stream->next = streams->first;
	stream->link = &streams->first;
	if (stream->next)
		stream->next->link = &stream->next;
	streams->first = stream;
}

void streams_remove(struct stream *stream)
{
	struct streams *streams = stream->streams;

	if (!streams)
		return;
	if (streams->next == stream)
		streams->next = stream->next;
	*stream->link = stream->next;
	if (stream->next)
		stream->next->link = stream->link;
	stream->streams = NULL;
	if (!streams->first)
		loop_timer_clear(streams->loop, &streams->timer);
}

void streams_check(struct streams *streams)
{
	int64_t unix_ms = clock_unix_ms();
	struct stream *stream;
	const char *reason;

	for (streams->next = streams->first; (stream = streams->next) != NULL;) {
		streams->next = stream->next;
		if (gate_admits(streams->gate, &stream->identity, unix_ms, &reason))
			continue;
		log_at(LOG_INFO, "a stream was ended", LOG_TEXT("who", stream->identity.name),
		       LOG_TEXT("reason", reason));
		stream->end(stream, reason);
	}
}
