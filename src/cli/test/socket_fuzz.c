/* socket_fuzz.c - the head of an answer to a WebSocket's handshake */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/client/socket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *head = memory_zero(size + 1, 1);
	memcpy(head, data, size);
	socket_is_accepted(head, "dGhlIHNhbXBsZSBub25jZQ==");
	free(head);
	return 0;
}
