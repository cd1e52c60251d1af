/* digest.h - SHA-256 and HMAC-SHA-256, and comparing without telling how far it went */
#ifndef API_TEXT_DIGEST_H
#define API_TEXT_DIGEST_H

#include "base/text.h"

enum { DIGEST_SIZE = 32, DIGEST_HEX_SIZE = 65 };

void digest_sha256(struct text text, unsigned char digest[DIGEST_SIZE]);
void digest_hmac(struct text secret, struct text text, unsigned char digest[DIGEST_SIZE]);
/* As hexadecimal in lower case, with a NUL. */
void digest_hex(const unsigned char digest[DIGEST_SIZE], char hex[DIGEST_HEX_SIZE]);
/* Takes as long for what differs in its first byte as for what is equal. */
bool digest_equal(const void *a, const void *b, size_t size);

#endif
