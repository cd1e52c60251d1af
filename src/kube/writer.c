/* writer.c - what is to be written to the API server, in order and with patience */
#include "kube/writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/member.h"

/* A status or an event that cannot be written is given up; a decision never is. */
enum { TRIES_OF_WORDS = 6 };

struct write *write_new(enum write_kind kind, const char *object, const char *method, char *path,
                        char *body)
{
	struct write *write = NEW(struct write);

	write->kind = kind;
	write->object = memory_text(object);
	write->method = method;
	write->path = path;
	write->body = body;
	return write;
}

static void write_free(struct write *write)
{
	free(write->object);
	free(write->path);
	free(write->body);
	free(write->look_path);
	free(write);
}

static void writer_unlink(struct writer *writer, struct write *write)
{
	if (write->previous)
		write->previous->next = write->next;
	else
		writer->first = write->next;
	if (write->next)
		write->next->previous = write->previous;
	else
		writer->last = write->previous;
	writer->count--;
}

static bool is_words(enum write_kind kind)
{
	return kind == WRITE_STATUS || kind == WRITE_EVENT;
}

void writer_drop(struct writer *writer, const char *object, enum write_kind kind)
{
	for (struct write *at = writer->first, *next; at; at = next) {
		next = at->next;
		/* One that had no answer may have happened: it is read first. */
		if (at->kind == kind && !at->flying && !at->looks &&
		    strcmp(at->object, object) == 0) {
			writer_unlink(writer, at);
			write_free(at);
		}
	}
}

void writer_put(struct writer *writer, struct write *write)
{
	if (is_words(write->kind))
		writer_drop(writer, write->object, write->kind);
	write->previous = writer->last;
	if (writer->last)
		writer->last->next = write;
	else
		writer->first = write;
	writer->last = write;
	writer->count++;
}

/* Whether an earlier one is about the same object. */
static bool is_behind(const struct write *write)
{
	for (const struct write *at = write->previous; at; at = at->previous)
		if (strcmp(at->object, write->object) == 0)
			return true;
	return false;
}

struct write *writer_next(struct writer *writer, int64_t now_ms)
{
	if (writer->flying >= writer->flying_max)
		return NULL;
	for (struct write *at = writer->first; at; at = at->next) {
		if (at->flying || at->not_before_ms > now_ms || is_behind(at))
			continue;
		at->flying = true;
		writer->flying++;
		return at;
	}
	return NULL;
}

static void try_later(struct writer *writer, struct write *write, int64_t retry_after_s,
                      int64_t now_ms)
{
	int64_t pause_ms = outcome_pause_ms(write->tries, retry_after_s);

	write->tries++;
	/* Not all at the same moment. */
	pause_ms += (int64_t)random_below(&writer->seed, (uint64_t)pause_ms / 4 + 1);
	write->not_before_ms = now_ms + pause_ms;
}

static const char *message_of(const json_t *object, const char *body)
{
	const char *message = member_text(object, "message");

	return *message ? message : body ? body : "";
}

void writer_answer(struct writer *writer, struct write *write, int status, int64_t retry_after_s,
                   const char *body, int64_t now_ms)
{
	json_error_t ignored;
	json_t *object = body && *body == '{' ? json_loads(body, 0, &ignored) : NULL;
	enum outcome outcome = outcome_of(write->kind, status);
	bool again = false;

	INVARIANT(write->flying && writer->flying > 0);
	write->flying = false;
	writer->flying--;
	if (write->looks) {
		/* What was read says what the write came to. */
		bool read = status == 200 && object;
		again = !read && status != 404;
		if (!again) {
			write->looks = false;
			again =
			    writer->sink(writer->context, write, read ? OUTCOME_LOOK : OUTCOME_GONE,
			                 read ? object : NULL, message_of(object, body));
		}
	} else if (outcome == OUTCOME_LOOK && write->look_path) {
		again = write->looks = true;
	} else if (outcome == OUTCOME_LATER || outcome == OUTCOME_LOOK) {
		again = !is_words(write->kind) || write->tries < TRIES_OF_WORDS;
		if (!again)
			writer->sink(writer->context, write, OUTCOME_REFUSED, NULL,
			             message_of(object, body));
	} else {
		again = writer->sink(writer->context, write, outcome,
		                     outcome == OUTCOME_WRITTEN ? object : NULL,
		                     message_of(object, body));
	}
	json_decref(object);
	if (again) {
		try_later(writer, write, retry_after_s, now_ms);
		return;
	}
	writer_unlink(writer, write);
	write_free(write);
}

bool writer_has(const struct writer *writer, const char *object, enum write_kind kind)
{
	for (const struct write *at = writer->first; at; at = at->next)
		if (at->kind == kind && strcmp(at->object, object) == 0)
			return true;
	return false;
}

void writer_free(struct writer *writer)
{
	while (writer->first) {
		struct write *write = writer->first;
		writer_unlink(writer, write); /* NOLINT(*Malloc) */
		write_free(write);
	}
}
