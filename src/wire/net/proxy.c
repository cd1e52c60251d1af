/* proxy.c - proxies in front of the service, and whom they say they speak for */
#include "wire/net/proxy.h"

#include <netinet/in.h>

enum { V1_BYTES_MAX = 107, V2_HEAD_BYTES = 16, ADDRESSES_MAX = 32 };
enum { V2_LOCAL = 0x20, V2_PROXY = 0x21, V2_TCP4 = 0x11, V2_TCP6 = 0x21 };

static const char v2_signature[] = "\r\n\r\n\0\r\nQUIT\n";

bool proxies_have(const struct proxies *proxies, const struct ip *ip)
{
	for (size_t i = 0; proxies && i < proxies->count; i++)
		if (ip_network_has(&proxies->networks[i], ip))
			return true;
	return false;
}

static bool read_port(struct text text, uint16_t *port)
{
	unsigned number = 0;
	if (text.size == 0 || text.size > 5)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		number = number * 10 + (unsigned)(text.data[i] - '0');
	}
	*port = (uint16_t)number;
	return number <= UINT16_MAX;
}

/* TCP4 or TCP6, source, destination, and their ports. */
static bool read_v1_fields(struct text line, struct proxy_header *header)
{
	struct text fields[5];
	struct ip destination;
	uint16_t port;
	for (int i = 0; i < 5; i++) {
		const char *space = memchr(line.data, ' ', line.size);
		bool is_last = i == 4;
		if (is_last == (space != NULL))
			return false;
		fields[i] =
		    (struct text){ line.data, space ? (size_t)(space - line.data) : line.size };
		line = text_from(line, fields[i].size + (space ? 1 : 0));
	}
	bool is_v4 = text_is(fields[0], "TCP4");
	header->has_source = true;
	return (is_v4 || text_is(fields[0], "TCP6")) && ip_read_text(fields[1], &header->source) &&
	       ip_read_text(fields[2], &destination) && ip_is_v4(&header->source) == is_v4 &&
	       read_port(fields[3], &header->port) && read_port(fields[4], &port);
}

static enum proxy_result read_v1(struct text bytes, struct proxy_header *header)
{
	struct text seen = bytes;
	seen.size = seen.size < V1_BYTES_MAX ? seen.size : V1_BYTES_MAX;
	const char *end = memchr(seen.data, '\n', seen.size);
	if (!end)
		return bytes.size < V1_BYTES_MAX ? PROXY_MORE : PROXY_INVALID;
	size_t size = (size_t)(end - bytes.data) + 1;
	struct text line = { bytes.data + strlen("PROXY "), 0 };
	if (size < strlen("PROXY \r\n") || end[-1] != '\r')
		return PROXY_INVALID;
	line.size = size - strlen("PROXY \r\n");
	header->size = size;
	if (text_is(line, "UNKNOWN") || text_starts(line, "UNKNOWN "))
		return PROXY_DONE;
	return read_v1_fields(line, header) ? PROXY_DONE : PROXY_INVALID;
}

static void read_v2_source(const unsigned char *address, bool is_v4, struct proxy_header *header)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	header->has_source = true;
	if (is_v4) {
		memcpy(&v4.sin_addr, address, 4);
		memcpy(&v4.sin_port, address + 8, 2);
		ip_of_socket((const struct sockaddr *)&v4, &header->source, &header->port);
	} else {
		memcpy(&v6.sin6_addr, address, 16);
		memcpy(&v6.sin6_port, address + 32, 2);
		ip_of_socket((const struct sockaddr *)&v6, &header->source, &header->port);
	}
}

static enum proxy_result read_v2(struct text bytes, struct proxy_header *header)
{
	const unsigned char *data = (const unsigned char *)bytes.data;
	if (bytes.size < V2_HEAD_BYTES)
		return PROXY_MORE;
	unsigned command = data[12], family = data[13];
	size_t length = (size_t)data[14] << 8 | data[15];
	bool is_v4 = family == V2_TCP4, is_v6 = family == V2_TCP6;
	header->size = V2_HEAD_BYTES + length;
	if ((command != V2_LOCAL && command != V2_PROXY) || header->size > PROXY_HEADER_MAX)
		return PROXY_INVALID;
	if (command == V2_PROXY && (is_v4 || is_v6) && length < (is_v4 ? 12U : 36U))
		return PROXY_INVALID;
	if (bytes.size < header->size)
		return PROXY_MORE;
	/* Of other families the address is not known, and what follows it is not needed. */
	if (command == V2_PROXY && (is_v4 || is_v6))
		read_v2_source(data + V2_HEAD_BYTES, is_v4, header);
	return PROXY_DONE;
}

enum proxy_result proxy_read(struct text bytes, struct proxy_header *header)
{
	size_t v2_size = sizeof(v2_signature) - 1, v1_size = strlen("PROXY ");
	*header = (struct proxy_header){ 0 };
	if (memcmp(bytes.data, v2_signature, bytes.size < v2_size ? bytes.size : v2_size) == 0)
		return bytes.size < v2_size ? PROXY_MORE : read_v2(bytes, header);
	if (memcmp(bytes.data, "PROXY ", bytes.size < v1_size ? bytes.size : v1_size) == 0)
		return bytes.size < v1_size ? PROXY_MORE : read_v1(bytes, header);
	return PROXY_INVALID;
}

/* An address that may have a port, or brackets where it is of IPv6, or quotes. */
static bool proxy_read_node(struct text node, struct ip *ip)
{
	if (node.size >= 2 && node.data[0] == '"' && node.data[node.size - 1] == '"')
		node = (struct text){ node.data + 1, node.size - 2 };
	const char *bracket = node.size > 0 ? memchr(node.data, ']', node.size) : NULL;
	if (node.size > 0 && node.data[0] == '[' && bracket)
		return ip_read_text(
		    (struct text){ node.data + 1, (size_t)(bracket - node.data) - 1 }, ip);
	if (ip_read_text(node, ip))
		return true;
	const char *colon = node.size > 0 ? memchr(node.data, ':', node.size) : NULL;
	return colon && ip_read_text((struct text){ node.data, (size_t)(colon - node.data) }, ip);
}

/* The node of an element of Forwarded: 'proto=http;for=192.0.2.1'. */
static struct text for_of(struct text element)
{
	struct text pair;
	while (text_next(&element, ';', &pair))
		if (pair.size > 4 && strncasecmp(pair.data, "for=", 4) == 0)
			return text_from(pair, 4);
	return (struct text){ "", 0 };
}

/* The last items of the header, in order. What is before them nobody would get to. */
static size_t proxy_collect(const struct proxies *proxies, const struct headers *headers,
                            struct text nodes[ADDRESSES_MAX])
{
	bool is_list = proxies->forwarded == FORWARDED_FOR;
	size_t count = 0;
	for (size_t i = 0; i < headers->count; i++) {
		struct text list = headers->of[i].value, item;
		if (!text_is(headers->of[i].name, is_list ? "x-forwarded-for" : "forwarded"))
			continue;
		while (text_next(&list, ',', &item)) {
			if (count == ADDRESSES_MAX) {
				memmove(nodes, nodes + 1, (count - 1) * sizeof(*nodes));
				count--;
			}
			nodes[count++] = is_list ? item : for_of(item);
		}
	}
	return count;
}

struct ip proxies_client(const struct proxies *proxies, const struct headers *headers,
                         const struct ip *peer)
{
	struct text nodes[ADDRESSES_MAX];
	struct ip client = *peer, before;
	size_t count =
	    proxies->forwarded == FORWARDED_NONE ? 0 : proxy_collect(proxies, headers, nodes);
	while (count > 0 && proxies_have(proxies, &client) &&
	       proxy_read_node(nodes[count - 1], &before)) {
		client = before;
		count--;
	}
	return client;
}
