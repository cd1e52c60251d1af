/* request.h - one request, whoever asks by whatever interface, and how it is answered */
#ifndef API_REQUEST_REQUEST_H
#define API_REQUEST_REQUEST_H

#include "api/engine/engine_pool.h"
#include "api/engine/engine_port.h"
#include "api/read/identity.h"
#include "wire/wire.h"

struct audit;
struct gate;
struct route;
struct service;
struct traffic;

enum { REQUEST_ID_MAX = 64, REQUEST_HEADERS_MAX = 16, REQUEST_TAG_MAX = 24 };

/* What all requests share. */
struct requests {
	struct engine_port *port;
	struct gate *gate;
	struct audit *audit;
	struct traffic *traffic; /* counts them, for metrics */
	struct service *service; /* for handlers */
	struct engine_pool pool; /* of struct request */
	int64_t count;           /* of clients: taken, and neither ended nor a stream */
	uint64_t id_seed, id_count;
};

/* A REST request, a gRPC call or a request of the service itself. It is taken from the pool when
 * the head of a request has arrived. It ends once: with its answer, or without one if the client is
 * gone. Everything with its lifetime is in the arena of the engine request.
 * - REQUEST_ARRIVING: the client may still leave.
 * - REQUEST_OPEN: a handler must end it.
 * - REQUEST_OVER: it has ended, and its exchange may not be used. If the engine still has the
 *   engine request, the reply is dropped. */
enum request_phase { REQUEST_ARRIVING, REQUEST_OPEN, REQUEST_OVER };

struct request {
	struct engine_request engine; /* first: one pointer is the other */
	struct requests *requests;
	struct service *service;
	struct exchange *exchange; /* NULL: the service itself asks, or it has ended */
	struct identity identity;
	const struct route *route; /* NULL: there is none for it */
	enum request_phase phase;
	bool is_asked;           /* the engine has the engine request */
	bool is_noted;           /* it is in the audit log, unless it is refused */
	bool is_stream;          /* stays open: not among those in flight */
	struct buffer body;      /* of the answer */
	struct json_writer json; /* to `body`, for who wants it */
	/* Of the answer. The first `common_count` are those of every answer. */
	struct header headers[REQUEST_HEADERS_MAX];
	size_t common_count, header_count;
	char request_id[REQUEST_ID_MAX];
	int64_t began_us;
	int status;            /* that was answered */
	void *message, *state; /* the handler's; message: of gRPC, as it was read */
	void (*done)(struct engine_request *engine); /* the handler's */
};

/* The caller fills in `requests`, with the size of a request for the pool. */
void requests_free(struct requests *requests);

/* The exchange's context is the request from now on. */
struct request *request_take(struct requests *requests, struct exchange *exchange);
/* A request of the service itself. `done` gets the engine request, and request_drop() ends it. */
struct request *request_take_own(struct requests *requests);
/* Ends it without an answer: the client is gone, or has its answer already. */
void request_drop(struct request *request);
/* It stays open, and is ended by request_finish or request_drop. */
void request_stream(struct request *request);

/* The place of a path's {name}: segments from 0 on, with a NUL behind each. */
struct text request_segment(const struct request *request, size_t place);
int64_t request_viewer(const struct request *request);

/* Hands in the engine request. `done` gets it back and finds the request by request_of(), unless
 * the request has ended meanwhile. A request may hand in one after the other. */
void request_send(struct request *request, void (*done)(struct engine_request *engine));
/* Hands in a command, a look at the core, or a read of the store. The audit log gets every command
 * but submissions, with the path of the resource that it changes. request_command() takes the path
 * of the request. */
void request_command(struct request *request, void (*done)(struct engine_request *engine));
void request_command_on(struct request *request, const char *object,
                        void (*done)(struct engine_request *engine));
/* Only an entry of the audit log. */
void request_audit(struct request *request, const char *action, const char *object,
                   const char *detail, void (*done)(struct engine_request *engine));
void request_look(struct request *request,
                  bool (*look)(struct engine_request *, struct sched *, struct error *),
                  void (*done)(struct engine_request *engine));
void request_read(struct request *request,
                  bool (*read)(struct engine_request *, struct store *, struct error *),
                  void (*done)(struct engine_request *engine));
/* Something to keep, noted under `action`. */
void request_keep(struct request *request, const struct kept *keep, const char *action,
                  const char *detail, void (*done)(struct engine_request *engine));
/* Several things to keep together; the note is about the first. */
void request_keep_all(struct request *request, const struct kept *keeps, size_t count,
                      const char *action, const char *detail,
                      void (*done)(struct engine_request *engine));
/* Somebody other than the engine has the request, and gives it back by request_return(): then
 * `done` gets it, unless it has ended meanwhile. In the loop's thread. */
void request_lend(struct request *request, void (*done)(struct engine_request *engine));
void request_return(struct request *request);
static inline struct request *request_of(struct engine_request *engine)
{
	return (struct request *)engine;
}

/* One more header for the answer. The value must last until then. */
void request_header(struct request *request, const char *name, struct text value);

/* Each of these answers and ends the request. Errors take the form of the interface: JSON, or a
 * status of gRPC. */

/* Answers with `body`; a read may get 304 instead. */
void request_answer(struct request *request, int status, const char *content_type);
void request_answer_json(struct request *request, int status);
/* Like request_answer_json(), never compressed: for secrets. */
void request_answer_secret(struct request *request, int status);
/* 200 with bytes that many share, or 304. */
struct request_page {
	const char *content_type;
	struct shared *body; /* the caller's */
	const char *tag;     /* by request_make_tag, of what it is when unpacked */
	bool is_lasting;     /* it never changes under this path */
};
void request_answer_shared(struct request *request, const struct request_page *page);
/* A weak tag of a body. */
void request_make_tag(struct text body, char tag[REQUEST_TAG_MAX]);
/* {"message":text} */
void request_answer_message(struct request *request, int status, const char *text);
/* {"error":...,"code":...} with the status that belongs to the code. */
void request_fail(struct request *request, const struct error *error);
void request_reject(struct request *request, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void request_refuse(struct request *request, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* 404, in the words that are also used for what the caller may not see. */
void request_unknown(struct request *request, const char *what, struct text name);
/* gRPC: the one message, and OK; or a status, with a text or NULL. */
void request_reply(struct request *request, struct text message);
void request_finish(struct request *request, enum grpc_status status, const char *text);

/* An answer whose body follows in parts, by exchange_write; request_complete ends it. */
void request_begin(struct request *request, int status, const char *content_type);
void request_complete(struct request *request);
/* Ends it so that the client can tell that the answer is not complete, or that there is none. */
void request_abort(struct request *request);

/* The status of an error, in HTTP and in gRPC. */
int status_of(enum error_code code);
enum grpc_status grpc_status_of_error(enum error_code code);

/* Begins the answer's body as a JSON object; json_close and request_answer_json end it. */
struct json_writer *request_object(struct request *request);

/* Counts and logs it. Those that answer do so; a request that becomes a WebSocket is counted as
 * 101 before that, and dropped after it. */
void request_count(struct request *request, int status);

#endif
