/* secret_fuzz.c - no text opens that was not sealed, and none of them harms */
#include <stdlib.h>
#include <string.h>

#include "seal/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer text = { 0 }, plain = { 0 };
	struct error error;
	buffer_bytes(&text, data, size);
	buffer_text(&text, "");
	struct secret_keys *keys =
	    secret_keys_read("a:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", &error);
	if (!keys || secret_open(keys, "context", text.data, &plain, &error))
		abort();
	secret_keys_free(keys);
	secret_keys_free(secret_keys_read(text.data, &error));
	buffer_free(&text);
	buffer_free(&plain);
	return 0;
}
