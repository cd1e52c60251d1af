/* agents_keys.c - the keys of slots, as their nodes tell them, and of leases on them: in memory
 * alone */
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "api/session/agents_local.h"
#include "base/clock.h"
#include "base/memory.h"

enum { KEYS_LEAST = 64, CERTIFICATE_DIGITS = 64 };

struct slot_key {
	int64_t slot_id;
	bool has_lease_keys, tls_only;
	char certificate[CERTIFICATE_DIGITS + 1];
	char text[SLOT_KEY_BYTES_MAX + 1];
};

static struct slot_key *find_key(const struct agents_node *node, int64_t slot_id)
{
	for (size_t i = 0; node && i < node->key_count; i++)
		if (node->keys[i].slot_id == slot_id)
			return &node->keys[i];
	return NULL;
}

/* Of slots that are no more. */
static void drop_old_keys(struct agents_node *node)
{
	struct catalogue *catalogue = node->agents->port->catalogue;
	size_t kept = 0;

	catalogue_lock(catalogue);
	for (size_t i = 0; i < node->key_count; i++)
		if (catalogue_get(catalogue, RECORD_RESERVATION, node->keys[i].slot_id, 0))
			node->keys[kept++] = node->keys[i];
	catalogue_unlock(catalogue);
	OPENSSL_cleanse(node->keys + kept, (node->key_count - kept) * sizeof(*node->keys));
	node->key_count = kept;
}

static bool is_key(const char *text)
{
	size_t size = strlen(text);

	for (size_t i = 0; i < size; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return size > 0 && size <= SLOT_KEY_BYTES_MAX;
}

static bool is_certificate(const char *text)
{
	return strlen(text) == CERTIFICATE_DIGITS &&
	       strspn(text, "0123456789abcdef") == CERTIFICATE_DIGITS;
}

void agents_take_key(struct agents_node *node, const Agent__SlotKey *told)
{
	const struct agents_settings *settings = &node->agents->settings;
	const char *certificate =
	    is_certificate(told->certificate_sha256) ? told->certificate_sha256 : "";

	if (!is_key(told->key) || told->reservation_id <= 0)
		return;
	struct slot_key *key = find_key(node, told->reservation_id);
	if (!key) {
		if (node->key_count >= KEYS_LEAST && node->key_count == node->key_capacity)
			drop_old_keys(node);
		array_reserve(node->keys, node->key_capacity, node->key_count + 1);
		key = &node->keys[node->key_count++];
		*key = (struct slot_key){ .slot_id = told->reservation_id };
	} else if (strcmp(key->text, told->key) == 0 && key->has_lease_keys == told->lease_keys &&
	           key->tls_only == told->tls_only && strcmp(key->certificate, certificate) == 0) {
		return;
	}
	key->has_lease_keys = told->lease_keys;
	key->tls_only = told->tls_only;
	memcpy(key->certificate, certificate, strlen(certificate) + 1);
	memcpy(key->text, told->key, strlen(told->key) + 1);
	if (settings->slots_changed)
		settings->slots_changed(settings->context);
}

const char *agents_slot_key(const struct agents *agents, const char *node, int64_t slot_id,
                            bool *follows)
{
	const struct agents_node *of = node ? agents_find(agents, node) : NULL;
	const struct slot_key *key = find_key(of, slot_id);

	*follows = of && !key && !session_is_synced(of->session);
	return key ? key->text : NULL;
}

const char *agents_slot_certificate(const struct agents *agents, const char *node, int64_t slot_id,
                                    bool *tls_only)
{
	const struct slot_key *key = find_key(node ? agents_find(agents, node) : NULL, slot_id);

	*tls_only = key && key->tls_only;
	return key && key->certificate[0] ? key->certificate : NULL;
}

bool agents_slot_has_lease_keys(const struct agents *agents, const char *node, int64_t slot_id)
{
	const struct slot_key *key = find_key(node ? agents_find(agents, node) : NULL, slot_id);

	return key && key->has_lease_keys;
}

/* With their keys as long as they hold; `all`: whatever else the node knows has ended. */
static void send_leases(struct agents_node *node, const struct agents_lease *leases, size_t count,
                        bool all)
{
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	Agent__LeaseKeys message = AGENT__LEASE_KEYS__INIT;
	struct arena arena = { 0 };
	int64_t now_ms = clock_unix_ms();

	if (!node->stream)
		return;
	Agent__LeaseKey *keys = arena_alloc(&arena, (count + 1) * sizeof(*keys));
	message.all = all;
	message.first_id = node->agents->first_lease_id;
	message.keys = arena_alloc(&arena, (count + 1) * sizeof(*message.keys));
	message.n_keys = count;
	for (size_t i = 0; i < count; i++) {
		agent__lease_key__init(&keys[i]);
		keys[i].reservation_id = leases[i].slot_id;
		keys[i].lease_id = leases[i].lease_id;
		keys[i].key = (char *)leases[i].key;
		keys[i].valid_ms = max64(leases[i].until_ms - now_ms, 0);
		message.keys[i] = &keys[i];
	}
	envelope.lease_keys = &message;
	agents_stream_send(node->stream, &envelope);
	arena_free(&arena);
}

void agents_tell_leases(struct agents_node *node)
{
	send_leases(node, node->leases, node->lease_count, true);
}

static struct agents_lease *find_lease(const struct agents_node *node, int64_t lease_id)
{
	for (size_t i = 0; node && i < node->lease_count; i++)
		if (node->leases[i].lease_id == lease_id)
			return &node->leases[i];
	return NULL;
}

void agents_begin_leases(struct agents *agents, int64_t first_id)
{
	agents->first_lease_id = first_id;
}

void agents_tell_lease(struct agents *agents, const char *node, const struct agents_lease *lease)
{
	struct agents_node *of = agents_find(agents, node);
	struct agents_lease *kept = find_lease(of, lease->lease_id);

	if (!of)
		return;
	if (!kept) {
		array_reserve(of->leases, of->lease_capacity, of->lease_count + 1);
		kept = &of->leases[of->lease_count++];
	}
	*kept = *lease;
	send_leases(of, kept, 1, false);
}

void agents_end_lease(struct agents *agents, const char *node, int64_t slot_id, int64_t lease_id)
{
	struct agents_node *of = agents_find(agents, node);
	struct agents_lease *kept = find_lease(of, lease_id);
	const struct agents_lease ended = { .lease_id = lease_id, .slot_id = slot_id };

	if (!kept)
		return;
	*kept = of->leases[--of->lease_count];
	OPENSSL_cleanse(&of->leases[of->lease_count], sizeof(*kept));
	send_leases(of, &ended, 1, false);
}

void agents_lease_taken(struct agents_node *node, const Agent__LeaseKeyTaken *taken)
{
	const struct agents_settings *settings = &node->agents->settings;

	/* Of a lease on another node, it has nothing to say. */
	if (settings->lease_taken && find_lease(node, taken->lease_id))
		settings->lease_taken(settings->context, taken->lease_id,
		                      *taken->error ? taken->error : NULL);
}

void agents_keys_free(struct agents_node *node)
{
	if (node->leases)
		OPENSSL_cleanse(node->leases, node->lease_capacity * sizeof(*node->leases));
	free(node->leases);
	if (node->keys)
		OPENSSL_cleanse(node->keys, node->key_capacity * sizeof(*node->keys));
	free(node->keys);
}
