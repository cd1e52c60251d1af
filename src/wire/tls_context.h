/* tls_context.h - what a session needs of its tls */
#ifndef WIRE_TLS_CONTEXT_H
#define WIRE_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "wire/tls.h"

/* The one that was loaded last. */
SSL_CTX *tls_context(const struct tls *tls);

#endif
