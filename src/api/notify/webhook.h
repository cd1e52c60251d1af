/* webhook.h - a signed message, posted to a URL */
#ifndef API_NOTIFY_WEBHOOK_H
#define API_NOTIFY_WEBHOOK_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "fetch/fetch.h"

struct webhook {
	const char *url;    /* http:// or https:// */
	const char *secret; /* "" or NULL: not signed */
	bool is_timed;      /* the signature is of the time and the body */
	const char *event;  /* what it is about: one word */
	int64_t number;     /* of the delivery: the same each time it is tried */
	struct text body;   /* JSON */
	const char *ca_path;
	bool only_public;
	int64_t timeout_ms;
	const fetch_end_ms *end_ms; /* as in struct fetch_request */
};

/* The parts of a URL that can be posted to. */
struct webhook_url {
	char host[256];
	char target[2048]; /* path and query */
	int64_t port;
	bool tls;
};
/* False with a reason: another scheme, user and password, characters that do not belong. */
bool webhook_url_read(const char *url, struct webhook_url *parts, struct error *error);

/* Posts it, in the calling thread. True for an answer of 2xx. Redirections are not followed.
 * With `is_timed` the header x-gpu-scheduler-time has the seconds since 1970, and what is signed
 * is those, a dot and the body. The signature is 'x-gpu-scheduler-signature: sha256=HEX',
 * HMAC-SHA-256 of the body. */
bool webhook_post(const struct webhook *webhook, struct error *error);

#endif
