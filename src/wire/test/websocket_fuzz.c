/* websocket_fuzz.c - whatever the frames, a WebSocket echoes them or is closed, and what it
 * sends are frames */
#include <stdint.h>

#include "pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What came back must be whole frames that are not masked, after the handshake. */
static void check_frames(struct text bytes)
{
	while (bytes.size > 0) {
		const unsigned char *at = (const unsigned char *)bytes.data;
		INVARIANT(bytes.size >= 2 && !(at[1] & 0x80) && !(at[0] & 0x70));
		size_t head = 2, length = at[1];
		if (length >= 126) {
			head += length == 126 ? 2 : 8;
			INVARIANT(bytes.size >= head);
			length = 0;
			for (size_t i = 2; i < head; i++)
				length = length << 8 | at[i];
		}
		INVARIANT(bytes.size >= head + length);
		bytes = text_from(bytes, head + length);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pair pair;
	if (!pair.loop)
		pair = pair_new(NULL);
	pair_connect(&pair, &pair_handler);
	pair_send(&pair, TEXT("GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\n"
	                      "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
	                      "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n\r\n"));
	pair_send(&pair, (struct text){ (const char *)data, size });
	pair_run(&pair);
	struct text answers = { pair.answers.data, pair.answers.size };
	INVARIANT(text_starts(answers, "HTTP/1.1 101 "));
	while (!text_starts(answers, "\r\n\r\n"))
		answers = text_from(answers, 1);
	check_frames(text_from(answers, 4));
	pair_close(&pair);
	return 0;
}
