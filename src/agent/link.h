/* link.h - the way to a scheduler: one gRPC call that stays open, over HTTP/2 */
#ifndef AGENT_LINK_H
#define AGENT_LINK_H

#include <uv.h>

#include "agent/envelope.h"
#include "base/error.h"

/* In the loop's thread alone. Connects to the first of the addresses that answers, and after a
 * while anew when that way is lost: sooner at first, later each time, never all agents at once.
 * Who is told something by it does not call it then, but later, and then link_flush. */
struct link;

struct link_settings {
	uv_loop_t *loop;
	const char *const *addresses; /* HOST:PORT, [HOST]:PORT; ends with NULL */
	bool tls;
	const char *ca_file;               /* whom to trust; NULL: the system's */
	const char *cert_file, *key_file;  /* who we are; NULL: nobody in particular */
	const char *server_name;           /* in the certificate; NULL: the host of the address */
	const char *token_file;            /* read at each connection; NULL: none */
	int64_t retry_least_ms, retry_most_ms;
	void (*connected)(void *context);
	void (*disconnected)(void *context, const char *reason);
	void (*received)(void *context, const struct envelope *envelope);
	void *context;
};

/* The texts are copied. NULL with a reason, such as files that cannot be read. Begins to
 * connect. */
struct link *link_new(const struct link_settings *settings, struct error *error);
/* Its handles are closed; it is freed when the loop has done that. */
void link_free(struct link *link);

bool link_is_connected(const struct link *link);
/* Dropped while there is no connection. */
void link_send(struct link *link, const struct envelope *envelope);
/* Sends what there is to send. To be called in each round of events, before the loop waits. */
void link_flush(struct link *link);
/* Bytes that wait to be sent. */
size_t link_waiting(const struct link *link);
/* Gives up this connection, and finds another. */
void link_disconnect(struct link *link, const char *reason);

#endif
