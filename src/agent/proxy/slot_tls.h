/* slot_tls.h - TLS before a model's server */
#ifndef AGENT_PROXY_SLOT_TLS_H
#define AGENT_PROXY_SLOT_TLS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

/* A certificate with its key; and TLS on one connection, without its socket. */
struct slot_tls;
struct slot_tls_link;

/* From PEM, the certificates first; NULL with a reason. TLS 1.2 and later. */
struct slot_tls *slot_tls_new(struct text pem, struct error *error);
void slot_tls_free(struct slot_tls *tls);

struct slot_tls_link *slot_tls_begin(struct slot_tls *tls);
void slot_tls_end(struct slot_tls_link *link);
/* Takes what came from the client. False: it is not TLS. */
bool slot_tls_receive(struct slot_tls_link *link, struct text sealed);
/* Bytes that the client said: 0: none now; -1: it has ended, or what came is broken. */
int slot_tls_read(struct slot_tls_link *link, char *clear, size_t size);
/* Seals what goes to the client. */
bool slot_tls_write(struct slot_tls_link *link, struct text clear);
/* Says that nothing follows. */
void slot_tls_goodbye(struct slot_tls_link *link);
/* Moves what is to be sent, which comes of reading too. */
void slot_tls_take(struct slot_tls_link *link, struct buffer *sealed);

#endif
