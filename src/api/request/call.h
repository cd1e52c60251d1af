/* call.h - one request, whoever asks by whatever interface, and how it is answered */
#ifndef API_REQUEST_CALL_H
#define API_REQUEST_CALL_H

#include "api/engine/desk.h"
#include "api/read/identity.h"
#include "wire/wire.h"

struct audit;
struct gate;
struct route;
struct service;
struct traffic;

enum { REQUEST_ID_MAX = 64, CALL_HEADERS_MAX = 16, CALL_TAG_MAX = 24 };

/* What all requests share. The pool keeps the memory of those that ended. */
struct calls {
	struct desk *desk;
	struct gate *gate;
	struct audit *audit;
	struct traffic *traffic; /* counts them, for metrics */
	struct service *service; /* for handlers */
	struct call *spare, *all;
	int64_t count; /* of clients: taken, and neither ended nor a stream */
	uint64_t id_seed, id_count;
};

/* A REST request, a gRPC call or something that the service wants itself. It is taken from the
 * pool when the head of a request is there, and ends once: with its answer, or without one
 * because nobody waits for it any more. Everything that lives as long as it is in the ask's
 * arena.
 * - CALL_ARRIVING: the client may just go.
 * - CALL_OPEN: it is ours to end.
 * - CALL_OVER: it has ended, and its exchange is somebody else's. If the desk still has the
 *   ask, the reply is dropped when it comes. */
enum call_phase { CALL_ARRIVING, CALL_OPEN, CALL_OVER };

struct call {
	struct ask ask; /* first: one pointer is the other */
	struct calls *calls;
	struct service *service;
	struct exchange *exchange; /* NULL: the service itself asks, or it has ended */
	struct identity identity;
	const struct route *route; /* NULL: there is none for it */
	enum call_phase phase;
	bool is_asked;           /* the desk has the ask */
	bool is_noted;           /* it is in the audit log, unless it is refused */
	bool is_stream;          /* stays open: not among those in flight */
	struct buffer body;      /* of the answer */
	struct json_writer json; /* to `body`, for who wants it */
	/* Of the answer. The first `common_count` are those of every answer. */
	struct header headers[CALL_HEADERS_MAX];
	size_t common_count, header_count;
	char request_id[REQUEST_ID_MAX];
	int64_t began_us;
	int status;                    /* that was answered */
	void *message, *state;         /* the handler's; message: of gRPC, as it was read */
	void (*done)(struct ask *ask); /* the handler's */
	struct call *next, *next_of_all;
};

/* `calls` is filled by the caller but for the pool. */
void calls_free(struct calls *calls);

/* The exchange's context is the call from now on. */
struct call *call_take(struct calls *calls, struct exchange *exchange);
/* For something that the service wants itself: `done` gets the ask, and call_drop ends it. */
struct call *call_take_own(struct calls *calls);
/* Ends it without an answer: nobody waits for one, or somebody else has given it. */
void call_drop(struct call *call);
/* It stays open, and is ended by call_finish or call_drop. */
void call_stream(struct call *call);

/* The place of a path's {name}: segments from 0 on, with a NUL behind each. */
struct text call_segment(const struct call *call, size_t place);
int64_t call_viewer(const struct call *call);

/* Hands in the call's ask; `done` gets it back and finds the call by call_of, unless the call
 * has ended meanwhile. The call may ask again and again, one after the other. */
void call_ask(struct call *call, void (*done)(struct ask *ask));
/* A command, a look at the core, a read of the store. A command other than a submission is
 * noted in the audit log, by its name and with what it is done to: the path of the resource.
 * call_command takes that of the request. */
void call_command(struct call *call, void (*done)(struct ask *ask));
void call_command_on(struct call *call, const char *object, void (*done)(struct ask *ask));
void call_look(struct call *call, bool (*look)(struct ask *, struct sched *, struct error *),
               void (*done)(struct ask *ask));
void call_read(struct call *call, bool (*read)(struct ask *, struct store *, struct error *),
               void (*done)(struct ask *ask));
/* Something to keep, noted under `action`. */
void call_keep(struct call *call, const struct kept *keep, const char *action, const char *detail,
               void (*done)(struct ask *ask));
static inline struct call *call_of(struct ask *ask) { return (struct call *)ask; }

/* One more header for the answer. The value must last until then. */
void call_header(struct call *call, const char *name, struct text value);

/* Each of these answers and ends the call. Those for errors do so in the words of the
 * interface: JSON, or a status of gRPC. */

/* What was written to `body`; a read may have it not modified. */
void call_answer(struct call *call, int status, const char *content_type);
void call_answer_json(struct call *call, int status);
/* Like call_answer_json(), never compressed: for secrets. */
void call_answer_secret(struct call *call, int status);
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
void call_reject(struct call *call, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void call_refuse(struct call *call, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* 404, in the words that are also used for what the caller may not see. */
void call_unknown(struct call *call, const char *what, struct text name);
/* gRPC: the one message, and OK; or a status, with a text or NULL. */
void call_reply(struct call *call, struct text message);
void call_finish(struct call *call, enum grpc_status status, const char *text);

/* An answer whose body follows in parts, by exchange_write; call_end ends it. */
void call_begin(struct call *call, int status, const char *content_type);
void call_end(struct call *call);
/* Ends it so that the client can tell that the answer is not complete, or that there is none. */
void call_abort(struct call *call);

/* The status of an error, in HTTP and in gRPC. */
int status_of(enum error_code code);
enum grpc_status grpc_status_of_error(enum error_code code);

/* Begins the answer's body as a JSON object; json_close and call_answer_json end it. */
struct json_writer *call_object(struct call *call);

/* Counts and logs it. Those that answer do so; a call that becomes a WebSocket is counted as
 * 101 before that, and dropped after it. */
void call_count(struct call *call, int status);

#endif
