/* slot_certificate.h - what a node shows to who asks its models by TLS */
#ifndef AGENT_HOST_SLOT_CERTIFICATE_H
#define AGENT_HOST_SLOT_CERTIFICATE_H

#include "agent/host/slot_keys.h"
#include "base/buffer.h"

/* A certificate, those that lead to its authority, and its key, in PEM. */
struct slot_certificate {
	struct buffer pem;
	char fingerprint[SLOT_KEY_SIZE + 1]; /* SHA-256 of the certificate, hexadecimal */
};

/* Reads these files. False with a reason. */
bool slot_certificate_read(const char *certificate_path, const char *key_path,
                           struct slot_certificate *certificate, struct error *error);
/* Reads the file of one that this function has made, or makes it: signed by itself, so it is known
 * by its fingerprint alone. Only its owner can read the file. */
bool slot_certificate_own(const char *path, struct slot_certificate *certificate,
                          struct error *error);
/* Wipes the key. */
void slot_certificate_free(struct slot_certificate *certificate);

#endif
