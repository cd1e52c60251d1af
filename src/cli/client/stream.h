/* stream.h - live events of the service, over a WebSocket */
#ifndef CLI_CLIENT_STREAM_H
#define CLI_CLIENT_STREAM_H

#include <jansson.h>

#include "cli/client/client.h"

struct stream;

/* Opens /api/v1/stream with the topics ("jobs,nodes"). NULL with a reason: the caller can still
 * poll. */
struct stream *stream_open(const struct client *client, const char *topics, struct error *error);
void stream_close(struct stream *stream);

/* The next event, if one has arrived, in `*event` (json_decref); NULL: none has. False: the
 * stream has ended. Does not wait. */
bool stream_next(struct stream *stream, json_t **event);
/* To poll for reading. */
int stream_descriptor(const struct stream *stream);

#endif
