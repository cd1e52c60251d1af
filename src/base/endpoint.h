/* endpoint.h - the URL of a server, taken apart: http[s]://HOST[:PORT][/PATH][?QUERY] */
#ifndef BASE_ENDPOINT_H
#define BASE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* All texts point into the URL. There is never a user, a password or a fragment in it, nor a
 * byte that a URL has to encode, so it can be put into a request or a line of a log. */
struct endpoint {
	bool is_secure;
	bool has_port;         /* it was given; otherwise `port` is the scheme's: 80 or 443 */
	bool is_bracketed;     /* the host is an IPv6 address, in brackets in the URL */
	struct text host;      /* without the brackets; 1 to 253 bytes */
	struct text authority; /* host and port as they were given */
	struct text target;    /* path and query, as they were given; may be empty */
	int64_t port;
};

/* False: it is something else. The host is checked only for bytes that would end it. */
bool endpoint_read(struct text url, struct endpoint *endpoint);
/* True if the host is a name that DNS could know: letters, digits, '-', '.' and '_'. */
bool endpoint_host_is_name(struct text host);

#endif
