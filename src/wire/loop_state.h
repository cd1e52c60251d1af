/* loop_state.h - the inside of a loop, for the files of src/wire */
#ifndef WIRE_LOOP_STATE_H
#define WIRE_LOOP_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/map.h"
#include "wire/loop.h"
#include "wire/net/admission.h"
#include "wire/net/output.h"
#include "wire/text/compress.h"

struct connection;
struct listener;
struct exchange_state;
struct http2_shared;

enum {
	LOOP_INPUT_BYTES = 64 << 10,
	LOOP_DATE_BYTES = 40, /* 'date: Sun, 15 Nov 2026 16:00:00 GMT\r\n' and a NUL */
};

/* Where connections come from; gone with the last of them. */
struct address {
	int64_t key; /* a hash of it */
	size_t connections;
};

/* A connection with pending output, or to be closed or examined, is in the dirty list, once.
 * The list is processed at the end of a round of events, so that the output of a round is
 * sent together. Those in `gathering` are sent a little later. */
struct loop {
	uv_loop_t uv;
	uv_async_t wake;
	uv_prepare_t before_wait;
	uv_check_t after_wait;
	uv_timer_t alarm; /* for the first of `timers` */
	int64_t alarm_ms; /* when it is set for; INT64_MAX: not set */
	pthread_t thread;
	_Atomic(struct post *) posts; /* the latest first */

	struct limits limits;
	struct timers timers;
	struct loop_counters counters;
	struct account held;  /* what all connections hold */
	struct map addresses; /* struct address by its key */
	struct admission admission;
	/* Connections of each kind that have not signed in, the oldest first. */
	struct strangers {
		struct connection *first, *last;
	} strangers[PEER_KINDS];

	struct connection *connections, *dirty;
	struct connection *gathering;
	struct timer gather_timer;
	int64_t gathered_ms; /* when they were last sent */
	struct listener *listeners;
	struct timer stop_timer;
	bool is_stopping, is_closing;

	/* Used again and again: none of these keeps anything between two events. */
	char *input, *plain;
	struct buffer scratch;
	struct compressor compressor;
	struct output_blocks blocks;
	struct exchange_state *spare_exchanges;
	size_t spare_exchange_count;
	struct http2_shared *http2; /* made for the first HTTP/2 connection */
	char date[LOOP_DATE_BYTES];
	int64_t date_s;
};

/* Panics if another thread than the loop's is here. */
void loop_check_thread(const struct loop *loop);
/* Deals with all dirty connections. */
void loop_flush(struct loop *loop);
/* The Date header, with its line end. */
struct text loop_date(struct loop *loop);
/* A connection or an exchange has ended: the loop may be done. */
void loop_check_end(struct loop *loop);

#endif
