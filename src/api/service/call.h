/* call.h - one request on its way through the service, and how it is answered */
#ifndef API_SERVICE_CALL_H
#define API_SERVICE_CALL_H

#include "api/engine/desk.h"
#include "api/read/identity.h"
#include "wire/wire.h"

struct service;
struct route;

enum { REQUEST_ID_MAX = 64, CALL_HEADERS_MAX = 16, CALL_TAG_MAX = 24 };

/* Taken from a pool when the head of a request is there, given back with the answer, and
 * used again with its memory. Everything that lives as long as the request is in the ask's
 * arena. */
struct call {
	struct ask ask; /* first: one pointer is the other */
	struct service *service;
	struct exchange *exchange;
	struct identity identity;
	const struct route *route;
	struct buffer body;      /* of the answer */
	struct json_writer json; /* to `body`, for who wants it */
	struct header headers[CALL_HEADERS_MAX];
	size_t header_count;
	char request_id[REQUEST_ID_MAX];
	int64_t began_us;
	bool in_request; /* it is ours to answer; before that the client may just go */
	int status;      /* that was answered */
	void *state;     /* the handler's */
	void (*done)(struct ask *ask); /* of a command that is noted */
	struct call *next;
};

struct call *call_take(struct service *service, struct exchange *exchange);
/* Without an answer: for those whose exchange is gone. */
void call_drop(struct call *call);
/* Like call_drop(), if somebody else answers: leaves the exchange untouched. */
void call_release(struct call *call);

/* The place of a path's {name}: segments from 0 on, with a NUL behind each. */
struct text call_segment(const struct call *call, size_t place);
int64_t call_viewer(const struct call *call);

/* Hands in the call's ask; `done` gets it back and finds the call by call_of. The call may
 * ask again and again, one after the other. */
void call_ask(struct call *call, void (*done)(struct ask *ask));
/* A command, a look at the core, a read of the store. A command other than a submission is
 * noted in the audit log, with what it is done to. */
void call_command(struct call *call, void (*done)(struct ask *ask));
void call_look(struct call *call, bool (*look)(struct ask *, struct sched *, struct error *),
               void (*done)(struct ask *ask));
void call_read(struct call *call, bool (*read)(struct ask *, struct store *, struct error *),
               void (*done)(struct ask *ask));
static inline struct call *call_of(struct ask *ask) { return (struct call *)ask; }

/* One more header for the answer. The value must last until then. */
void call_header(struct call *call, const char *name, struct text value);

/* Each of these answers and gives the call back. */

/* What was written to `body`; a read may have it not modified. */
void call_answer(struct call *call, int status, const char *content_type);
void call_answer_json(struct call *call, int status);
/* 200 with bytes that many share, or 304. */
struct call_page {
	const char *content_type;
	struct shared *body; /* the caller's */
	const char *tag;     /* by call_make_tag, of what it is when unpacked */
	bool is_lasting;     /* it never changes under this path */
};
void call_answer_shared(struct call *call, const struct call_page *page);
/* A weak tag of a body. */
void call_make_tag(struct text body, char tag[CALL_TAG_MAX]);
/* {"message":text} */
void call_answer_message(struct call *call, int status, const char *text);
/* {"error":...,"code":...} with the status that belongs to the code. */
void call_fail(struct call *call, const struct error *error);
void call_refuse(struct call *call, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* 404, in the words that are also used for what the caller may not see. */
void call_unknown(struct call *call, const char *what, struct text name);

/* An answer whose body follows in parts, by exchange_write; call_end ends it. */
void call_begin(struct call *call, int status, const char *content_type);
void call_end(struct call *call);
/* Ends such an answer so that the client can tell that it is not complete. */
void call_abort(struct call *call);

/* The HTTP status of an error. */
int status_of(enum error_code code);

/* Begins the answer's body as a JSON object; json_close and call_answer_json end it. */
struct json_writer *call_object(struct call *call);

#endif
