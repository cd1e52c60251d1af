/* http1_fuzz.c - whatever the bytes and however they are cut, HTTP/1.1 is answered or closed,
 * and nothing is left behind */
#include <stdint.h>

#include "pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte says into how many parts the rest is cut. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pair pair;
	if (!pair.loop)
		pair = pair_new(NULL);
	if (size == 0)
		return 0;
	struct text rest = { (const char *)data + 1, size - 1 };
	size_t step = 1 + rest.size / (1 + data[0] % 16);
	pair_connect(&pair, &pair_handler);
	while (rest.size > 0) {
		size_t part = rest.size < step ? rest.size : step;
		pair_send(&pair, (struct text){ rest.data, part });
		rest = text_from(rest, part);
		if (data[0] & 0x40)
			pair_answer_kept();
	}
	if (data[0] & 0x80)
		pair_shut(&pair);
	pair_close(&pair);
	return 0;
}
