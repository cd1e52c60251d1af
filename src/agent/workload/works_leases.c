/* works_leases.c - the keys of leases on slots: as the scheduler says */
#include <stdlib.h>

#include "agent/host/lease_keys.h"
#include "agent/uplink/envelope.h"
#include "agent/workload/works_local.h"
#include "base/clock.h"

static struct lease_keys *open_leases(const struct works *works, int64_t reservation_id)
{
	char *path = works_leases_path(works, reservation_id);
	struct lease_keys *keys = lease_keys_open(path);

	free(path);
	return keys;
}

bool works_has_lease_keys(const struct works *works, int64_t reservation_id)
{
	struct lease_keys *keys = open_leases(works, reservation_id);

	if (keys)
		lease_keys_close(keys);
	return keys != NULL;
}

/* NULL, or why the key does not hold. */
static const char *take_lease(const struct works *works, const struct told_lease *lease)
{
	struct works_slot slot;
	struct lease_keys *keys = works_slot(works, lease->reservation_id, &slot)
	                              ? open_leases(works, lease->reservation_id)
	                              : NULL;
	const char *reason = NULL;

	if (!keys)
		return "the slot is not on the node any more";
	if (lease->valid_ms <= 0)
		lease_keys_end(keys, lease->lease_id);
	else if (!lease_keys_put(keys, lease->lease_id, lease->key,
	                         clock_boot_ms() + lease->valid_ms))
		reason = "the slot has too many leases";
	lease_keys_close(keys);
	return reason;
}

static bool is_told(const void *context, int64_t lease_id)
{
	const struct told_leases *leases = context;

	if (lease_id < leases->first_id)
		return true;
	for (size_t i = 0; i < leases->count; i++)
		if (leases->at[i].lease_id == lease_id)
			return true;
	return false;
}

/* Those that ended while the scheduler could not say so. */
static void end_others(const struct works *works, const struct told_leases *leases)
{
	for (size_t i = 0; i < works->count; i++) {
		struct lease_keys *keys = open_leases(works, works->list[i]->reservation_id);
		if (!keys)
			continue;
		lease_keys_end_others(keys, is_told, leases);
		lease_keys_close(keys);
	}
}

void works_take_leases(struct works *works, const struct told_leases *leases,
                       void (*taken)(void *context, int64_t lease_id, const char *reason),
                       void *context)
{
	if (leases->all)
		end_others(works, leases);
	for (size_t i = 0; i < leases->count; i++) {
		const char *reason = take_lease(works, &leases->at[i]);
		if (leases->at[i].valid_ms > 0)
			taken(context, leases->at[i].lease_id, reason);
	}
}
