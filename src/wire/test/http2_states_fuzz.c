/* http2_states_fuzz.c - streams of one HTTP/2 connection, HTTP and gRPC, that begin, send, are
 * reset, stop reading and are answered in any order, and leave nothing behind */
#include <stdint.h>

#include "h2_client.h"
#include "states.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STREAMS = 24 };

static struct pair pair;

static struct limits small_limits(void)
{
	struct limits limits = limits_default();
	limits.gather_ms = 0;
	limits.output_bytes = 8192;
	limits.held_bytes_per_connection = 64 << 10;
	limits.held_bytes = 128 << 10;
	limits.streams = 8;
	limits.message_bytes = 4096;
	limits.body_bytes = 4096;
	limits.buffered_bytes = 16384;
	return limits;
}

static int32_t http2_states_ask(struct h2_client *client, unsigned how)
{
	static const char *const paths[] = { "/a", "/r", "/s", "/b" };
	static const struct text bodies[] = { { "\0\0\0\0\3abc", 8 },
		                              { "\0\0\0\0\3ab", 7 },
		                              { "\0\0\0\0\0\0\0\0\0\0", 10 },
		                              { "\1\0\0\0\0", 5 } };
	return h2_client_request(client,
	                         &(struct h2_request){ .path = paths[how % 4],
	                                               .is_grpc = how & 4,
	                                               .is_open = how & 8,
	                                               .method = how & 4 ? NULL : "POST",
	                                               .body = how & 16 ? bodies[how / 32 % 4]
	                                                                : (struct text){ "", 0 } });
}

/* Pairs of bytes: what to do, and to which stream or how. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int32_t last = 0;
	struct limits limits = small_limits();
	if (!pair.loop)
		pair = pair_new(&limits);
	if (size < 2)
		return 0;
	struct h2_client *client = h2_client_new(&pair, &states_handler, data[0] * 64U);
	for (size_t i = 1; i + 1 < size && !client->has_goaway; i += 2) {
		unsigned what = data[i], how = data[i + 1];
		int32_t id = last > 0 ? (int32_t)(how % 2 == 0 || last < 3 ? last : last - 2) : 0;
		struct text part = { (const char *)data + i, size - i < 300 ? size - i : 300 };
		if (what % 8 == 0 && last < 2 * STREAMS)
			last = http2_states_ask(client, how);
		else if (what % 8 == 1 && id > 0)
			h2_client_send(client, id, part, how & 2);
		else if (what % 8 == 2 && id > 0)
			h2_client_reset(client, id);
		else if (what % 8 == 3 && id > 0)
			h2_client_open_window(client, id, 1 + (int32_t)how * 100);
		else if (what % 8 == 4)
			h2_client_ping(client);
		else if (what % 8 == 5 && how == 255)
			pair_send(&pair, part);
		else
			states_act(what / 8 + how * 32);
		h2_client_run(client);
	}
	states_end(&pair);
	h2_client_free(client);
	return 0;
}
