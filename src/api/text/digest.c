/* digest.c - SHA-256 and HMAC-SHA-256 by OpenSSL */
#include "api/text/digest.h"

#include <stdint.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/error.h"

void digest_sha256(struct text text, unsigned char digest[DIGEST_SIZE])
{
	unsigned int size = 0;

	if (EVP_Digest(text.data, text.size, digest, &size, EVP_sha256(), NULL) != 1 ||
	    size != DIGEST_SIZE)
		panic("OpenSSL has no SHA-256");
}

void digest_hmac(struct text secret, struct text text, unsigned char digest[DIGEST_SIZE])
{
	unsigned int size = 0;

	INVARIANT(secret.size <= INT32_MAX);
	if (!HMAC(EVP_sha256(), secret.data, (int)secret.size, (const unsigned char *)text.data,
	          text.size, digest, &size) ||
	    size != DIGEST_SIZE)
		panic("OpenSSL has no HMAC with SHA-256");
}

void digest_hex(const unsigned char digest[DIGEST_SIZE], char hex[DIGEST_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < DIGEST_SIZE; i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[DIGEST_HEX_SIZE - 1] = '\0';
}

bool digest_equal(const void *a, const void *b, size_t size)
{
	return CRYPTO_memcmp(a, b, size) == 0;
}
