/* uplink.h - the way to a scheduler: one gRPC call that stays open, over HTTP/2 */
#ifndef UPLINK_UPLINK_H
#define UPLINK_UPLINK_H

#include <uv.h>

#include "base/error.h"
#include "base/text.h"

/* In the loop's thread only. Connects to the first address that answers. Reconnects after a
 * delay that grows each time and differs between callers. A callback must not call it;
 * call it later, and then uplink_flush(). */
struct uplink;

struct uplink_settings {
	uv_loop_t *loop;
	const char *path; /* of the call: /agent.AgentService/Connect */
	const char *user_agent;
	const char *const *addresses; /* HOST:PORT, [HOST]:PORT; ends with NULL */
	bool tls;
	const char *ca_file;              /* whom to trust; NULL: the system's */
	const char *cert_file, *key_file; /* who we are; NULL: nobody in particular */
	const char *server_name;          /* in the certificate; NULL: the host of the address */
	const char *token_file;           /* read at each connection; NULL: none */
	int64_t retry_least_ms, retry_most_ms;
	void (*connected)(void *context);
	void (*disconnected)(void *context, const char *reason);
	/* A message, valid during the call. */
	void (*received)(void *context, struct text message);
	void *context;
};

/* The texts are copied. NULL with a reason, such as files that cannot be read. Begins to
 * connect. */
struct uplink *uplink_new(const struct uplink_settings *settings, struct error *error);
/* Its handles are closed; it is freed when the loop has done that. */
void uplink_free(struct uplink *link);

bool uplink_is_connected(const struct uplink *link);
/* Dropped while there is no connection. */
void uplink_send(struct uplink *link, struct text message);
/* Sends what there is to send. To be called in each round of events, before the loop waits. */
void uplink_flush(struct uplink *link);
/* Bytes that wait to be sent. */
size_t uplink_waiting(const struct uplink *link);
/* Gives up this connection, and finds another. */
void uplink_disconnect(struct uplink *link, const char *reason);

#endif
