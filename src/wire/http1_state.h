/* http1_state.h - what HTTP/1.1 keeps for a connection */
#ifndef WIRE_HTTP1_STATE_H
#define WIRE_HTTP1_STATE_H

#include <llhttp.h>

#include "wire/connection.h"

/* Answers leave in the order of the requests: `first` to `last` are those that are owed;
 * only the first may write to the connection, the others hold back what they have.
 * `current` is the request that is being read, and the last of the owed once its head
 * is complete. */
struct http1 {
	llhttp_t parser;
	struct connection *connection;
	struct exchange_state *first, *last, *current;
	size_t owed;
	struct buffer pending; /* bytes that were not parsed yet, because of `is_paused` */
	const char *gap;       /* where, in the bytes being parsed, the last name or value ended */
	bool gap_has_newline;  /* in bytes that were parsed before those */
	size_t overhead;       /* bytes of chunk extensions and trailers of `current` */
	bool is_paused;
	bool is_upgrading;              /* what follows the last request may not be HTTP */
	struct exchange_state *upgrade; /* is complete, and the handler not yet told */
	bool is_done;                   /* no more requests are read */
};

extern const llhttp_settings_t http1_parser_settings;

/* http1_parse.c: parses bytes; keeps what it may not parse yet. */
void http1_parse(struct http1 *http1, struct text bytes);
/* Refuses what is being read, and reads no more. */
void http1_fail(struct http1 *http1, int status, const char *code, const char *text);
/* True if the next request must wait. */
bool http1_is_blocked(const struct http1 *http1);

/* http1.c: an exchange becomes owed; its answer is written. */
void http1_link(struct http1 *http1, struct exchange_state *state);
void http1_answered(struct http1 *http1, struct exchange_state *state);

/* http1_answer.c */
void http1_begin(struct exchange_state *state, const struct response *response, bool more);
void http1_write(struct exchange_state *state, struct text part, struct shared *shared);
void http1_end(struct exchange_state *state);
/* Tells the client to send the body that it asks about. */
void http1_continue(struct http1 *http1, struct exchange_state *state);

static inline struct http1 *http1_of(const struct exchange_state *state)
{
	return state->connection->speech;
}

#endif
