/* webhook_fuzz.c - any bytes as a URL, as an address, and as a notification that was kept */
#include <stdlib.h>
#include <string.h>

#include "api/notify/notify_local.h"
#include "api/notify/webhook.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = memory_zero(1, size + 1);
	struct webhook_url url;
	struct error error = { 0 };
	struct buffer json = { 0 };

	if (size > 0)
		memcpy(text, data, size);
	if (webhook_url_read(text, &url, &error)) {
		INVARIANT(url.port >= 1 && url.port <= 65535 && url.target[0] == '/');
		INVARIANT(!strpbrk(url.host, "\r\n /@") && !strpbrk(url.target, "\r\n "));
	}
	if (smtp_address_check(text, &error))
		INVARIANT(!strpbrk(text, "\r\n <>"));
	struct parcel *parcel = notify_parcel_read(text, 1);
	if (parcel) {
		notify_parcel_write(parcel, &json);
		struct parcel *back = notify_parcel_read(json.data, 1);
		INVARIANT(back && strcmp(back->body, parcel->body) == 0);
		parcel_free(back);
		parcel_free(parcel);
		buffer_free(&json);
	}
	free(text);
	return 0;
}
