/* token_fuzz.c - any bytes as a kept token: what is read is written back as the same */
#include <stdlib.h>
#include <string.h>

#include "api/auth/gate.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *json = memory_zero(1, size + 1);
	struct gate_token token = { 0 }, back = { 0 };
	struct buffer written = { 0 };
	struct error error = { 0 };

	if (size > 0)
		memcpy(json, data, size);
	if (gate_token_read(json, &token, &error)) {
		gate_token_write(&token, &written);
		INVARIANT(gate_token_read(written.data, &back, &error));
		INVARIANT(strcmp(token.hash, back.hash) == 0 && strcmp(token.id, back.id) == 0);
		INVARIANT(strcmp(token.identity.node, back.identity.node) == 0);
		buffer_free(&written);
	}
	free(json);
	return 0;
}
