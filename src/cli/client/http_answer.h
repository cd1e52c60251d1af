/* http_answer.h - an answer of HTTP/1.1, read as it comes */
#ifndef CLI_CLIENT_HTTP_ANSWER_H
#define CLI_CLIENT_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct http_parser;

enum { HTTP_HEADERS_MAX_BYTES = 64 << 10 };

/* What has come of an answer so far. The body goes to `body`, or to `part` as it comes. Begun
 * by http_answer_begin; freed with http_answer_free. */
struct http_answer {
	int status;
	bool has_headers, complete;
	bool keeps_alive; /* complete, and another request may follow on the connection */
	bool upgraded;    /* 101: what follows is not HTTP. `left` has what came of it */
	int64_t retry_after_s;
	struct buffer accept; /* Sec-WebSocket-Accept */
	struct buffer body, left;
	size_t most_bytes; /* of the body; 0: any number */
	void (*part)(void *context, const char *data, size_t size);
	void *context;
	struct http_parser *parser;
};

void http_answer_begin(struct http_answer *answer);
void http_answer_free(struct http_answer *answer);
/* More of it. False: it is not HTTP, or more than was asked for. */
bool http_answer_take(struct http_answer *answer, const char *data, size_t size,
                      struct error *error);
/* The connection ended: whether that completes the answer. */
bool http_answer_end(struct http_answer *answer, struct error *error);

#endif
