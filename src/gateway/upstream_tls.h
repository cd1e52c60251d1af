/* upstream_tls.h - TLS to the server of a model, which is known by its certificate's digest */
#ifndef GATEWAY_UPSTREAM_TLS_H
#define GATEWAY_UPSTREAM_TLS_H

#include <openssl/ssl.h>

#include "base/buffer.h"
#include "base/text.h"

/* One for all connections. No authority is asked: the scheduler says which certificate it is. */
SSL_CTX *upstream_tls_new(void);

/* TLS on one connection, without its socket. */
struct upstream_tls;

struct upstream_tls *upstream_tls_begin(SSL_CTX *context);
void upstream_tls_end(struct upstream_tls *tls);

enum upstream_tls_state {
	UPSTREAM_TLS_SHAKES,
	UPSTREAM_TLS_OPEN,
	UPSTREAM_TLS_FAILED, /* `why` says it */
};
/* Continues the handshake. It is open only if the server shows the certificate with this SHA-256
 * (hexadecimal). */
enum upstream_tls_state upstream_tls_shake(struct upstream_tls *tls, const char *certificate,
                                           const char **why);
/* Takes what came. False: there is no memory for it. */
bool upstream_tls_receive(struct upstream_tls *tls, struct text sealed);
/* Bytes that the server said. 0: none now; -1: it has ended; -2: what came is broken. */
int upstream_tls_read(struct upstream_tls *tls, char *clear, size_t size);
bool upstream_tls_write(struct upstream_tls *tls, struct text clear);
/* True if all that came has been read. */
bool upstream_tls_is_quiet(const struct upstream_tls *tls);
/* Moves what is to be sent. */
void upstream_tls_take(struct upstream_tls *tls, struct buffer *sealed);

#endif
