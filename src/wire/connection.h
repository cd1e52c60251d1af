/* connection.h - one client's connection: bytes in, bytes out, and how long that may take */
#ifndef WIRE_CONNECTION_H
#define WIRE_CONNECTION_H

#include <uv.h>

#include "wire/exchange_state.h"
#include "wire/loop_state.h"
#include "wire/net/proxy.h"

struct connection;
struct tls_session;

/* What is spoken over a connection. None of these frees the connection: it is closed
 * when it is next flushed. */
struct connection_protocol {
	/* Bytes have arrived; all are taken. */
	void (*receive)(struct connection *connection, struct text bytes);
	/* The client will send no more. */
	void (*hangup)(struct connection *connection);
	/* Puts what is to be sent into the output; may be NULL. */
	void (*produce)(struct connection *connection);
	/* The output has room again. */
	void (*drained)(struct connection *connection);
	/* Whether more bytes are wanted now. */
	bool (*wants_input)(const struct connection *connection);
	/* When something that is waited for is too late; INT64_MAX: never. */
	int64_t (*deadline_ms)(const struct connection *connection);
	void (*expire)(struct connection *connection);
	/* The loop is stopping. */
	void (*stop)(struct connection *connection);
	/* The connection is no more: loses the exchanges, frees what is its own. */
	void (*lost)(struct connection *connection);

	/* Answers to exchanges; NULL where there are none. The exchange is not gone. */
	/* Status and headers; with the body and the end of it unless `more` follows. */
	void (*begin)(struct exchange_state *state, const struct response *response, bool more);
	/* A part: copied from `part`, or a reference to `shared` taken over. */
	void (*write)(struct exchange_state *state, struct text part, struct shared *shared);
	void (*end)(struct exchange_state *state);
	void (*abort)(struct exchange_state *state);
	/* Bytes that are waiting to be sent on its behalf. */
	size_t (*waiting)(const struct exchange_state *state);
	/* The handler takes parts of the body again. */
	void (*resume_body)(struct exchange_state *state);
};

/* `output` is what the protocol has written; with TLS it becomes `sealed`, and that is
 * sent. At most one write waits for the socket at a time (`is_writing`). */
struct connection {
	uv_tcp_t tcp;
	uv_write_t write;
	uv_shutdown_t shutdown;
	struct loop *loop;
	const struct handler *handler;
	const struct connection_protocol *protocol;
	void *speech; /* the protocol's own */
	struct tls_session *tls;

	struct connection *next, *previous; /* of the loop */
	struct connection *next_dirty, *next_gathering;
	struct connection *next_stranger, *previous_stranger;

	struct account held; /* memory of all that waits to be sent, streams included */
	struct output output, sealed;
	size_t write_size; /* of the write that waits */
	struct timer timer;
	int64_t opened_ms, received_ms, progress_ms; /* progress: of sending */
	size_t discarded;                            /* bytes that nobody wanted any more */
	char greeting[24]; /* the first bytes, until it is clear what they are */
	size_t greeting_size;

	/* The client, as far as is known: a proxy may have said who it is. */
	char peer_address[IP_TEXT_MAX];
	uint16_t peer_port;
	struct ip peer;
	const struct proxies *proxies; /* NULL: none are trusted */
	struct buffer proxy_header;    /* what has arrived of it */
	struct address *address;       /* that it counts for; NULL: none */
	enum peer_kind kind;
	bool for_agents;

	bool awaits_proxy; /* a header of the PROXY protocol comes first */
	bool is_proxy;     /* `peer` is one that is trusted */
	bool is_counted;   /* in the loop's admission */
	bool is_stranger;  /* has not signed in: in the loop's list of those */
	bool is_dirty, is_gathering;
	bool is_reading, is_writing;
	bool is_hung_up;   /* the client sends no more */
	bool is_finishing; /* close when all is sent */
	bool is_closing;   /* close now */
	bool is_over;      /* handed to uv_close */
	bool is_lingering;
	bool is_blocked; /* the output was full */
};

/* How connections of a listener are served. */
struct tls;
struct reception {
	const struct handler *handler;
	struct tls *tls;               /* NULL: clear text */
	const struct proxies *proxies; /* NULL: none are trusted */
	bool for_agents;
};
/* Serves a connected socket, which becomes the loop's. */
void connection_open(struct loop *loop, int socket, const struct reception *reception);
/* connection_admit.c: looks who connected, and takes a place for it or refuses it; where a
 * proxy has to say first who it is, that follows with its header. Gives the place back. */
void connection_meet(struct connection *connection);
void connection_give_place(struct connection *connection);
/* Takes the header of the PROXY protocol off the first bytes; what is behind it. */
struct text connection_take_proxy(struct connection *connection, struct text bytes);
/* Its client has signed in, or it is closed: it is no longer one of those that make place. */
void connection_trust(struct connection *connection);

/* To be called when something has changed: the connection is looked at, and what is in its
 * output sent, at the end of the round. */
void connection_touch(struct connection *connection);
/* Sends what is in the output now, as far as the socket takes it. */
void connection_push(struct connection *connection);
/* Like connection_touch(), but sends together with others within the loop's gather_ms. */
void connection_gather(struct connection *connection);
void connections_gathered(struct loop *loop);
/* Ends it: at once; when all is sent. */
void connection_close(struct connection *connection);
void connection_finish(struct connection *connection);
void connection_stop(struct connection *connection);
/* For the loop only. */
void connection_flush(struct connection *connection);

/* Bytes that have been decrypted, or came in the clear. */
void connection_take(struct connection *connection, struct text bytes);
/* True if an answer or message of this size may be kept for the client. Small ones always
 * may, so that a refusal can be. */
bool connection_may_hold(const struct connection *connection, size_t size);
/* Closes the connection that holds most, where all hold too much; false: there is none. */
bool connections_shed(struct loop *loop);
/* True if so much waits to be sent that nothing should be added. */
bool connection_is_full(const struct connection *connection);
size_t connection_waiting(const struct connection *connection);
/* Speaks another protocol from now on; the one before has let go of the connection. */
void connection_speak(struct connection *connection, const struct connection_protocol *protocol,
                      void *speech);

#endif
