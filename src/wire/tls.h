/* tls.h - a certificate and its key, and what is spoken over them */
#ifndef WIRE_TLS_H
#define WIRE_TLS_H

#include "base/error.h"
#include "wire/loop.h"

/* Belongs to one loop. */
struct tls;

/* TLS 1.2 and later, ALPN for h2 and http/1.1, no renegotiation. `ca_path` (may be NULL)
 * makes clients show a certificate signed by it. The files are read now, and again
 * when they change: connections that are made from then on see the new ones. A change
 * that cannot be used is told to `reloaded` (may be NULL) and the old one stays. */
struct tls_options {
	const char *certificate_path; /* PEM, the whole chain */
	const char *key_path;
	const char *ca_path;
	int64_t check_ms; /* how often the files are looked at; 0: each two seconds */
	void (*reloaded)(void *context, const struct error *failed);
	void *context;
};
/* NULL with the reason if the files cannot be used together. */
struct tls *tls_new(struct loop *loop, const struct tls_options *options, struct error *error);
/* Reads the files now, changed or not: SIGHUP. False: the old ones stay. */
bool tls_reload(struct tls *tls, struct error *error);
/* Before the loop has ended. Connections live on without it. */
void tls_free(struct tls *tls);

#endif
