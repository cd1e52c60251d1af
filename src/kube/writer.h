/* writer.h - what is to be written to the API server, in order and with patience */
#ifndef KUBE_WRITER_H
#define KUBE_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "kube/outcome.h"

/* A request about one object. */
struct write {
	enum write_kind kind;
	char *object;                      /* whose order counts: a uid */
	const char *method, *content_type; /* live for ever */
	char *path, *body;                 /* body NULL: none */
	char *look_path;                   /* where the object is read when nobody knows; NULL */
	void *cookie;
	/* The writer's. */
	struct write *next, *previous;
	int tries;
	int64_t not_before_ms;
	bool looks; /* it is a GET of look_path now */
	bool flying;
};

/* What became of one. WRITTEN comes with the object of the answer, LOOK with the object as it
 * was read (or NULL); LATER does not come: it is tried again. The write is freed after the call,
 * unless the answer is true: then it goes again, after a pause. */
typedef bool writer_sink(void *context, const struct write *write, enum outcome outcome,
                         const json_t *object, const char *reason);

/* Writes to one object stay in their order, one at a time. One that must wait lets others pass.
 * A status or an event replaces one of its kind that did not leave yet. Zero-initialised, but for
 * the first three. */
struct writer {
	writer_sink *sink;
	void *context;
	size_t flying_max;
	struct write *first, *last;
	size_t count, flying;
	uint64_t seed;
};

/* Takes it over: made by write_new(). */
void writer_put(struct writer *writer, struct write *write);
struct write *write_new(enum write_kind kind, const char *object, const char *method, char *path,
                        char *body);
/* The next that may leave now, which flies then; NULL: none. */
struct write *writer_next(struct writer *writer, int64_t now_ms);
/* Its answer; status 0: none came. */
void writer_answer(struct writer *writer, struct write *write, int status, int64_t retry_after_s,
                   const char *body, int64_t now_ms);
/* Forgets what is about the object and did not leave, or surely did not happen. */
void writer_drop(struct writer *writer, const char *object, enum write_kind kind);
/* True if one of that kind about the object waits or flies. */
bool writer_has(const struct writer *writer, const char *object, enum write_kind kind);
void writer_free(struct writer *writer);

#endif
