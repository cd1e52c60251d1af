/* reply.h - what clients are told in the shape that they expect */
#ifndef GATEWAY_REPLY_H
#define GATEWAY_REPLY_H

#include "base/buffer.h"
#include "gateway/state/gateway.h"
#include "gateway/text/endpoint.h"

/* The body of an error. */
void reply_error(struct buffer *out, enum dialect dialect, const struct refusal *refusal,
                 const char *request_id);
/* An error as an event of a stream that has begun. */
void reply_error_event(struct buffer *out, enum dialect dialect, const struct refusal *refusal,
                       const char *request_id);
/* What a stream says while nothing comes. `mode` is comment or chunk. */
void reply_waiting(struct buffer *out, enum dialect dialect, const char *mode, const char *model,
                   const char *why);

#endif
