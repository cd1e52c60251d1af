/* response.h - an answer to a request */
#ifndef WIRE_RESPONSE_H
#define WIRE_RESPONSE_H

#include <stdbool.h>

#include "wire/text/headers.h"
#include "wire/text/shared.h"

/* What is left out is left out: 0 means 200, no content type means no body to speak
 * of. All texts are copied; of the body either `body` is copied or a reference to
 * `shared` is taken over, which spares a copy where it is large. Date, length,
 * compression and connection headers are added. */
struct response {
	int status;
	const char *content_type;
	const struct header *headers; /* more of them, names in lower case */
	size_t header_count;
	struct text body;
	struct shared *shared;
	bool never_compress; /* secrets beside what a client chose, or compressed already */
};

/* 'Not Found' for 404; an empty text for a status that has no name. */
const char *response_reason(int status);

/* True if a content type is worth compressing. */
bool response_is_compressible(const char *content_type);

#endif
