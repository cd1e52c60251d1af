/* agents_keys.c - the keys of slots, as their nodes tell them: in memory alone */
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "api/session/agents_local.h"
#include "base/memory.h"

enum { KEYS_LEAST = 64 };

struct slot_key {
	int64_t slot_id;
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

void agents_take_key(struct agents_node *node, const Agent__SlotKey *told)
{
	const struct agents_settings *settings = &node->agents->settings;

	if (!is_key(told->key) || told->reservation_id <= 0)
		return;
	struct slot_key *key = find_key(node, told->reservation_id);
	if (!key) {
		if (node->key_count >= KEYS_LEAST && node->key_count == node->key_capacity)
			drop_old_keys(node);
		array_reserve(node->keys, node->key_capacity, node->key_count + 1);
		key = &node->keys[node->key_count++];
		*key = (struct slot_key){ .slot_id = told->reservation_id };
	} else if (strcmp(key->text, told->key) == 0) {
		return;
	}
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

void agents_keys_free(struct agents_node *node)
{
	if (node->keys)
		OPENSSL_cleanse(node->keys, node->key_capacity * sizeof(*node->keys));
	free(node->keys);
}
