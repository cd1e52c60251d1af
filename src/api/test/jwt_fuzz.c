/* jwt_fuzz.c - any bytes as a token: with a signature of their own, and with a good one */
#include <stdlib.h>

#include "api/auth/jwt.h"
#include "base/memory.h"
#include "sign.h"

#define SECRET "a secret of more than thirty-two bytes"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct jwt_key *key;
	struct jwt_wanted wanted = { .audience = "gpu", .now_ms = 1000000 };
	struct jwt_claims claims;
	struct error error = { 0 };

	if (!key)
		key = jwt_key_new("", "HS256", SECRET, &error);
	if (jwt_verify((struct text){ (const char *)data, size }, &key, 1, &wanted, &claims,
	               &error))
		panic("a token was forged");
	/* Signed, so that the claims are read too. */
	char *payload = memory_zero(1, size + 1);
	for (size_t i = 0; i < size; i++)
		payload[i] = (char)data[i];
	char *token = sign_hmac("{\"alg\":\"HS256\"}", payload, SECRET);
	bool ok = jwt_verify(text_of(token), &key, 1, &wanted, &claims, &error);
	INVARIANT(!ok || claims.expires_ms > wanted.now_ms - 5001);
	free(token);
	free(payload);
	return 0;
}
