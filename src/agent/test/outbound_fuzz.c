/* outbound_fuzz.c - whatever a server asks its way out for, it is read or refused */
#include <stdlib.h>

#include "agent/proxy/outbound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outbound_target target;
	struct error error = { 0 };

	if (outbound_read((struct text){ (const char *)data, size }, &target, &error)) {
		INVARIANT(target.host[0] && target.port[0] &&
		          strlen(target.host) <= OUTBOUND_HOST_MAX);
		INVARIANT(atoi(target.port) > 0 && atoi(target.port) <= UINT16_MAX);
		INVARIANT(target.is_tunnel == (target.request.size == 0));
	} else {
		INVARIANT(error.text[0]);
	}
	buffer_free(&target.request);
	return 0;
}
