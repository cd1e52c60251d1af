/* lease_keys.h - the keys of leases on a slot: the agent writes them, the slot's proxy reads them
 */
#ifndef AGENT_HOST_LEASE_KEYS_H
#define AGENT_HOST_LEASE_KEYS_H

#include "agent/host/slot_keys.h"

enum { LEASE_KEYS_MAX = 4096 };

/* A file that both map. It outlives the agent, and the proxy has it open from before it gave up its
 * privileges. An entry holds until `until_ms` of clock_boot_ms(). The key is written while
 * `until_ms` is 0, so a reader never takes half a key for a whole one. */
struct lease_keys {
	_Atomic int64_t used; /* entries from here on were never written */
	struct lease_key {
		_Atomic int64_t until_ms; /* 0: none */
		int64_t lease_id;
		char key[SLOT_KEY_SIZE];
	} at[LEASE_KEYS_MAX];
};

/* Makes an empty file that only its owner can read, in place of an older one, and opens it for
 * reading. -1 with a reason. */
int lease_keys_make(const char *path, struct error *error);
/* NULL: the file is not one of these. The descriptor may be closed afterwards. */
const struct lease_keys *lease_keys_map(int fd);

/* For the agent alone. NULL: there is no such file. */
struct lease_keys *lease_keys_open(const char *path);
void lease_keys_close(struct lease_keys *keys);
/* Adds a key, or sets until when it holds. False: the key makes no sense, or there are too many. */
bool lease_keys_put(struct lease_keys *keys, int64_t lease_id, struct text key, int64_t until_ms);
void lease_keys_end(struct lease_keys *keys, int64_t lease_id);
/* Ends those that `is_kept` does not name. */
void lease_keys_end_others(struct lease_keys *keys,
                           bool (*is_kept)(const void *context, int64_t lease_id),
                           const void *context);

/* True if the text is a key that holds at `now_ms`. */
bool lease_keys_admit(const struct lease_keys *keys, struct text given, int64_t now_ms);

#endif
