/* connection.h - bytes to a service and back, over TCP or TLS */
#ifndef CLI_CLIENT_CONNECTION_H
#define CLI_CLIENT_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

#include "cli/client/address.h"

/* One connection. It waits itself where it has to, at most as long as it is told. */
struct connection;

/* Connects, and with TLS makes sure that the other end is who it says: certificates in
 * `ca_file`, or those that the system trusts where it is NULL. NULL with a reason. */
struct connection *connection_open(const struct address *address, const char *ca_file,
                                   int64_t most_ms, struct error *error);
void connection_close(struct connection *connection);

/* Writes all of it. */
bool connection_write(struct connection *connection, const void *data, size_t size, int64_t most_ms,
                      struct error *error);

enum { CONNECTION_ENDED = 0, CONNECTION_FAILED = -1, CONNECTION_WAITS = -2 };
/* Reads what is there: how much, CONNECTION_WAITS where nothing came within `most_ms` (or a
 * signal did), or that it is over. 0 ms: does not wait at all. */
long connection_read(struct connection *connection, void *data, size_t size, int64_t most_ms,
                     struct error *error);

/* To poll for reading. Bytes may be waiting inside even if it is not readable. */
int connection_descriptor(const struct connection *connection);

#endif
