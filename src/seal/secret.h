/* secret.h - secrets of jobs, sealed wherever they are kept: in the store and on nodes */
#ifndef SEAL_SECRET_H
#define SEAL_SECRET_H

#include "base/buffer.h"
#include "base/error.h"

/* Keys by name. The first one seals; all of them open, so that a new key can be
 * put in front and the old ones kept until nothing is sealed with them. */
struct secret_keys;

/* Reads 'NAME:KEY' pairs separated by commas, spaces or newlines: the name of
 * letters, digits, '-' and '_', the key 32 bytes in base64. NULL with a reason,
 * which never shows a key. */
struct secret_keys *secret_keys_read(const char *text, struct error *error);
/* Wipes and frees; NULL is allowed. */
void secret_keys_free(struct secret_keys *keys);

/* Appends 'sealed:1:NAME:BASE64', which is AES-256-GCM of the plain text with a
 * nonce of its own. `context` (the tenant, say) is not hidden, but what was
 * sealed in one context does not open in another. False if there is no
 * randomness to be had. */
bool secret_seal(const struct secret_keys *keys, const char *context, const char *plain,
                 size_t size, struct buffer *sealed, struct error *error);
/* Appends the plain text. False with a reason for anything but what secret_seal
 * made in this context with one of these keys. */
bool secret_open(const struct secret_keys *keys, const char *context, const char *sealed,
                 struct buffer *plain, struct error *error);
/* True if it was sealed with another key than the first. */
bool secret_is_old(const struct secret_keys *keys, const char *sealed);

#endif
