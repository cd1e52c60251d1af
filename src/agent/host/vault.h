/* vault.h - secrets of tasks, sealed on this node by a key of its own */
#ifndef AGENT_HOST_VAULT_H
#define AGENT_HOST_VAULT_H

#include <jansson.h>

#include "base/memory.h"
#include "node/message.h"
#include "seal/secret.h"

/* An order brings `secret_environment` in the clear. It is sealed before anything keeps the order,
 * and opened when the task is started: so the journal, and memory while the task runs, have it
 * sealed only. What one reservation has sealed does not open for another. */

/* The keys in the file `node.key` of the state directory, which only its owner may read: made at
 * the first start. NULL with a reason. */
struct secret_keys *vault_keys(const char *state_directory, struct error *error);

/* Replaces the payload of an order that has secrets by one in the arena that has them sealed, and
 * wipes the old one, which must be writable. Where that fails the secrets are left out, so that
 * the task is refused when it is started. */
void vault_seal(const struct secret_keys *keys, struct arena *arena, struct node_order *order);
/* True if bytes that are to be kept have secrets in them, sealed or not. */
bool vault_has_secrets(const void *data, size_t size);

/* The secrets of a payload, opened: a JSON object, empty if there are none. NULL with a reason. */
json_t *vault_open(const struct secret_keys *keys, int64_t reservation_id, const json_t *payload,
                   struct error *error);
/* Wipes the texts in the object and gives it back. NULL is allowed. */
void vault_forget(json_t *secrets);

#endif
