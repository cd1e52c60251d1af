/* http1_states_fuzz.c - requests of one HTTP/1.1 connection, whole, in parts, broken, and
 * WebSockets, that are answered in any order and leave nothing behind */
#include <stdint.h>

#include "states.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UPGRADE                                                                                    \
	"GET /a HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"              \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n\r\n"

static const struct text pieces[] = {
	TEXT("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"),
	TEXT("GET /b HTTP/1.1\r\nHost: x\r\n\r\n"),
	TEXT("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n"),
	TEXT("GET /r HTTP/1.1\r\nHost: x\r\n\r\n"),
	TEXT("GET /h HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
	TEXT("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"),
	TEXT("POST /s HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"),
	TEXT("POST /s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
	TEXT("POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
	TEXT("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"),
	TEXT("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n"),
	TEXT("abc"),
	TEXT("3\r\nabc\r\n"),
	TEXT("0\r\n\r\n"),
	TEXT(UPGRADE),
	TEXT("\x81\x81\1\2\3\4a"), /* frames of a WebSocket: a text */
	TEXT("\x88\x80\1\2\3\4"),  /* a close */
	TEXT("\x89\x80\1\2\3\4"),  /* a ping */
	TEXT("ffffffffffffffff\r\n"),
};
enum { PIECES = sizeof(pieces) / sizeof(pieces[0]) };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pair pair;
	struct limits limits = limits_default();
	limits.gather_ms = 0;
	limits.output_bytes = 8192;
	limits.held_bytes_per_connection = 64 << 10;
	limits.held_bytes = 128 << 10;
	limits.pipeline = 4;
	limits.body_bytes = 100;
	if (!pair.loop)
		pair = pair_new(&limits);
	pair_connect(&pair, &states_handler);
	for (size_t i = 0; i + 1 < size && !pair.is_ended; i += 2) {
		unsigned what = data[i], how = data[i + 1];
		if (what % 4 == 0)
			pair_send(&pair, pieces[how % PIECES]);
		else if (what % 4 == 1)
			states_act(what / 4 + how * 64);
		else if (what % 4 == 2 && how < 8)
			pair_shut(&pair);
		else if (what % 4 == 2)
			pair_run(&pair);
		else
			pair_send(&pair, (struct text){ (const char *)data + i + 1, 1 });
	}
	pair_run(&pair);
	pair_hang_up(&pair);
	states_end();
	pair_close(&pair);
	return 0;
}
