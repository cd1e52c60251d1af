/* http_post.h - one request to a scheduler, answered before it returns */
#ifndef AGENT_UPLINK_HTTP_POST_H
#define AGENT_UPLINK_HTTP_POST_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

struct http_post {
	const char *url; /* http://HOST:PORT or https://HOST[:PORT] */
	const char *path;
	const char *token;   /* NULL: none */
	const char *ca_file; /* NULL: whom the system trusts */
	struct text body;    /* JSON */
};

/* The status and the body of the answer. False with a reason where there is none. */
bool http_post(const struct http_post *post, int *status, struct buffer *answer,
               struct error *error);

#endif
