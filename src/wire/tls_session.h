/* tls_session.h - TLS on one connection */
#ifndef WIRE_TLS_SESSION_H
#define WIRE_TLS_SESSION_H

#include "wire/connection.h"
#include "wire/tls.h"

struct tls_session;

struct tls_session *tls_session_new(struct tls *tls, struct connection *connection);
void tls_session_free(struct tls_session *session);
/* True if the handshake is complete. */
bool tls_session_is_ready(const struct tls_session *session);
/* Takes bytes from the socket; what is in them goes to connection_take. Closes the
 * connection where they are not TLS. */
void tls_session_receive(struct tls_session *session, struct text bytes);
/* Encrypts the connection's output into what is sealed, as far as that has room. */
void tls_session_seal(struct tls_session *session);
/* Says that nothing follows. */
void tls_session_goodbye(struct tls_session *session);

#endif
