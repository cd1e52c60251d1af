/* connection_admit.c - who is at the other end of a connection, and whether there is a place */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/connection.h"

enum { REFUSALS_MAX = 256 /* that are told why at once */ };

static void forget_address(struct connection *connection)
{
	struct address *address = connection->address;
	connection->address = NULL;
	if (!address || --address->connections > 0)
		return;
	map_remove(&connection->loop->addresses, address->key);
	free(address);
}

void connection_give_place(struct connection *connection)
{
	connection->loop->admission.counts[connection->kind] -= connection->is_counted;
	connection->is_counted = false;
	forget_address(connection);
}

void connection_trust(struct connection *connection)
{
	struct strangers *strangers = &connection->loop->strangers[connection->kind];
	if (!connection->is_stranger)
		return;
	connection->is_stranger = false;
	if (connection->previous_stranger)
		connection->previous_stranger->next_stranger = connection->next_stranger;
	else
		strangers->first = connection->next_stranger;
	if (connection->next_stranger)
		connection->next_stranger->previous_stranger = connection->previous_stranger;
	else
		strangers->last = connection->previous_stranger;
}

static void add_stranger(struct connection *connection)
{
	struct strangers *strangers = &connection->loop->strangers[connection->kind];
	connection->is_stranger = true;
	connection->previous_stranger = strangers->last;
	if (strangers->last)
		strangers->last->next_stranger = connection;
	else
		strangers->first = connection;
	strangers->last = connection;
}

/* Closes the connection of this kind that has been there longest without signing in. */
static bool make_place(struct loop *loop, enum peer_kind kind)
{
	struct connection *oldest = loop->strangers[kind].first;
	if (!oldest || loop_now_ms(loop) - oldest->opened_ms < loop->limits.stranger_ms)
		return false;
	connection_trust(oldest);
	loop->counters.connections_shed++;
	connection_close(oldest);
	return true;
}

/* The address with this key, with one connection more; NULL if it has too many. */
static struct address *count_address(struct loop *loop, int64_t key)
{
	struct address *address = map_get(&loop->addresses, key);
	if (!address) {
		address = NEW(struct address);
		address->key = key;
		map_put(&loop->addresses, key, address);
	} else if (address->connections >= loop->limits.connections_per_address) {
		return NULL;
	}
	address->connections++;
	return address;
}

/* The client at the other end, or behind it. */
static void set_peer(struct connection *connection, const struct ip *ip, uint16_t port)
{
	connection->peer = *ip;
	connection->peer_port = port;
	ip_write(ip, connection->peer_address);
	connection->is_proxy = proxies_have(connection->proxies, ip);
	if (ip_is_loopback(ip))
		connection->kind = PEER_LOCAL;
}

/* Looks who is at the other end; in tests that may be no address. */
static void find_peer(struct connection *connection)
{
	struct sockaddr_storage address = { 0 };
	int size = sizeof(address);
	struct ip ip;
	uint16_t port;
	if (uv_tcp_getpeername(&connection->tcp, (struct sockaddr *)&address, &size) == 0 &&
	    ip_of_socket((const struct sockaddr *)&address, &ip, &port))
		set_peer(connection, &ip, port);
}

static void connection_admit_refuse(struct connection *connection)
{
	static const char head[] = "HTTP/1.1 503 Service Unavailable\r\n"
				   "content-type: application/json\r\n"
				   "connection: close\r\n"
				   "x-content-type-options: nosniff\r\n"
				   "retry-after: 1\r\n";
	static const char body[] =
	    "{\"error\":\"there are too many connections\",\"code\":\"unavailable\"}";
	connection->loop->counters.connections_refused++;
	if (connection->tls) {
		connection_close(connection);
		return;
	}
	char length[48];
	snprintf(length, sizeof(length), "content-length: %zu\r\n\r\n", sizeof(body) - 1);
	output_bytes(&connection->output, head, sizeof(head) - 1);
	output_bytes(&connection->output, length, strlen(length));
	output_bytes(&connection->output, body, sizeof(body) - 1);
	connection_finish(connection);
}

/* Takes the place that the connection needs; false if there is none. */
static bool take_place(struct connection *connection)
{
	struct loop *loop = connection->loop;
	if (*connection->peer_address) {
		connection->address =
		    count_address(loop, (int64_t)(ip_customer(&connection->peer) >> 1 | 1));
		if (!connection->address)
			return false;
	}
	if (!admission_has_place(&loop->admission, connection->kind) &&
	    !make_place(loop, connection->kind))
		return false;
	loop->admission.counts[connection->kind]++;
	connection->is_counted = true;
	add_stranger(connection);
	return true;
}

static void admit(struct connection *connection)
{
	const struct loop *loop = connection->loop;
	if (take_place(connection))
		return;
	connection_admit_refuse(connection);
	/* Telling them takes descriptors as well. */
	if (loop->counters.connections > loop->limits.connections + REFUSALS_MAX)
		connection_close(connection);
}

struct text connection_take_proxy(struct connection *connection, struct text bytes)
{
	struct proxy_header header;
	struct buffer *seen = &connection->proxy_header;
	size_t before = seen->size;
	size_t room = PROXY_HEADER_MAX - before;
	buffer_bytes(seen, bytes.data, bytes.size < room ? bytes.size : room);
	enum proxy_result result = proxy_read((struct text){ seen->data, seen->size }, &header);
	if (result == PROXY_MORE)
		return (struct text){ 0 };
	buffer_free(seen);
	connection->awaits_proxy = false;
	if (result == PROXY_INVALID) {
		connection->loop->counters.protocol_errors++;
		connection_close(connection);
		return (struct text){ 0 };
	}
	if (header.has_source) {
		connection->kind = connection->for_agents ? PEER_AGENT : PEER_OTHER;
		set_peer(connection, &header.source, header.port);
	}
	admit(connection);
	return text_from(bytes, header.size - before);
}

void connection_meet(struct connection *connection)
{
	find_peer(connection);
	connection->awaits_proxy = connection->is_proxy && connection->proxies->send_header;
	if (!connection->awaits_proxy)
		admit(connection);
}
