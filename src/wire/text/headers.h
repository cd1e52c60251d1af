/* headers.h - the headers of a request or of a response */
#ifndef WIRE_TEXT_HEADERS_H
#define WIRE_TEXT_HEADERS_H

#include <stddef.h>

#include "base/text.h"

/* The name is in lower case. */
struct header {
	struct text name, value;
};
struct headers {
	const struct header *of;
	size_t count;
};

/* The first value under a name, given in lower case; data is NULL if there is none. */
struct text headers_find(const struct headers *headers, struct text name);
static inline struct text headers_get(const struct headers *headers, const char *name)
{
	return headers_find(headers, text_of(name));
}
/* How often the name is there. */
size_t headers_count(const struct headers *headers, const char *name);
/* True if a list such as Connection or Accept-Encoding has a token, in any case, in
 * any header of that name, and does not refuse it with ';q=0'. */
bool headers_has_token(const struct headers *headers, const char *name, const char *token);

#endif
