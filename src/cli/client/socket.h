/* socket.h - a WebSocket to the service */
#ifndef CLI_CLIENT_SOCKET_H
#define CLI_CLIENT_SOCKET_H

#include "base/text.h"
#include "cli/client/client.h"

struct socket;
/* A message; valid during the call. */
typedef void (*socket_message)(void *context, struct text message, bool is_text);

/* `path` begins with a slash and is escaped already. NULL with a reason: the service's own where it
 * gives one. */
struct socket *socket_open(const struct client *client, const char *path, socket_message message,
                           void *context, struct error *error);
void socket_close(struct socket *socket);
/* Sends a binary message. False: the connection is gone. */
bool socket_send(struct socket *socket, struct text message);
/* Hands over what has come, without waiting. False: nothing more will come. */
bool socket_advance(struct socket *socket);
/* To poll for reading. */
int socket_descriptor(const struct socket *socket);
/* What the service closed with, and why; 0: it just went. */
int socket_code(const struct socket *socket, const char **reason);

/* True if these are the headers of an answer to a request with that key which accepts it. */
bool socket_is_accepted(const char *head, const char *key);

#endif
