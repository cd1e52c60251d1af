/* proxy_fuzz.c - whatever a proxy sends first, it is read in one way however it is cut */
#include <stdint.h>

#include "wire/net/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_header(struct text bytes)
{
	struct proxy_header whole, part;
	enum proxy_result result = proxy_read(bytes, &whole);
	INVARIANT(result != PROXY_DONE || (whole.size > 0 && whole.size <= bytes.size));
	INVARIANT(result != PROXY_MORE || bytes.size < PROXY_HEADER_MAX);
	/* What is there of it says 'more' until it is done, and never something else. */
	for (size_t i = 0; result == PROXY_DONE && i < whole.size; i++)
		INVARIANT(proxy_read((struct text){ bytes.data, i }, &part) == PROXY_MORE);
	if (result == PROXY_DONE) {
		INVARIANT(proxy_read((struct text){ bytes.data, whole.size }, &part) == PROXY_DONE);
		INVARIANT(part.size == whole.size && part.has_source == whole.has_source);
	}
}

static void check_forwarded(struct text value, enum forwarded_header kind)
{
	static const struct ip_network all = { .bits = 0 };
	struct header headers[] = { { TEXT("forwarded"), value },
		                    { TEXT("x-forwarded-for"), value } };
	struct proxies proxies = { .networks = &all, .count = 1, .forwarded = kind };
	struct ip peer = { { [15] = 1 } };
	char text[IP_TEXT_MAX];
	struct ip client = proxies_client(&proxies, &(struct headers){ headers, 2 }, &peer), again;
	ip_write(&client, text);
	INVARIANT(ip_read_text(text_of(text), &again) &&
	          memcmp(&client, &again, sizeof(client)) == 0);
	/* Nobody is believed who is not a proxy. */
	proxies.count = 0;
	client = proxies_client(&proxies, &(struct headers){ headers, 2 }, &peer);
	INVARIANT(memcmp(&client, &peer, sizeof(client)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text bytes = { (const char *)data, size };
	if (size == 0)
		return 0;
	check_header(bytes);
	check_forwarded(bytes, FORWARDED_FOR);
	check_forwarded(bytes, FORWARDED_RFC7239);
	return 0;
}
