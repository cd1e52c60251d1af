/* origin.h - the host names of the service, and the origins of pages that may call it */
#ifndef API_AUTH_ORIGIN_H
#define API_AUTH_ORIGIN_H

#include "wire/exchange.h"

/* Lists end with NULL; NULL is an empty list. */

/* localhost, 127.0.0.0/8 and ::1, with any port: names that only this machine can mean.
 * A page elsewhere can make its own name point here (DNS rebinding), but then the
 * browser sends that name. */
bool origin_is_loopback(struct text authority);
/* Whether the list has the authority's host ("example.org"), or host and port. */
bool origin_host_is_listed(struct text authority, const char *const *hosts);
/* Whether an Origin is the one that the request itself was sent to. The scheme may differ:
 * TLS may end in front of us. */
bool origin_is_same(struct text origin, struct text authority);
/* Whether Sec-Fetch-Site says that a page of another origin made a browser ask. It is there
 * where Origin is not: for images, scripts and links. */
bool origin_is_foreign(struct text fetch_site);
/* Whether the list has it, or "*". */
bool origin_is_listed(struct text origin, const char *const *origins);

#endif
