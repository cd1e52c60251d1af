/* claims.c - the claims that a kubelet has prepared and unprepared on this node: a state machine */
#include "kubelet/claims.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kubelet/slice.h"

enum {
	GIVE_UP_MS = 30000,
	PREPARE_MS = 30000,
	LOOK_MS = 200,
	BLIND_MS = 5000, /* beyond GIVE_UP_MS, for the measurement that tells what is left */
	UID_BYTES = 64,
};

enum phase {
	CLAIM_FETCHING, /* its object was asked for */
	CLAIM_CHECKING, /* waits for a measurement */
	CLAIM_PREPARED, /* kept */
	CLAIM_LEAVING,  /* kept; waits until its memory is measured as gone */
};

/* `claim` is there from CLAIM_CHECKING on. `asked` is the measurement that it waits for. */
struct entry {
	char uid[UID_BYTES];
	enum phase phase;
	struct claim *claim;
	int64_t *calls;
	size_t call_count, call_capacity;
	int64_t asked, deadline_ms;
	int64_t look_ms; /* CLAIM_LEAVING: the next measurement is asked for then; INT64_MAX: one
	                    was */
};

struct claims {
	struct claims_settings settings;
	struct claims_port port;
	struct entry **entries;
	size_t count, capacity;
};

struct claims *claims_new(const struct claims_settings *settings, const struct claims_port *port)
{
	struct claims *claims = NEW(struct claims);

	INVARIANT(settings->pool && port->measure && port->fetch && port->keep && port->forget);
	claims->settings = *settings;
	claims->port = *port;
	if (claims->settings.give_up_ms <= 0)
		claims->settings.give_up_ms = GIVE_UP_MS;
	if (claims->settings.prepare_ms <= 0)
		claims->settings.prepare_ms = PREPARE_MS;
	if (claims->settings.look_ms <= 0)
		claims->settings.look_ms = LOOK_MS;
	return claims;
}

static void entry_free(struct entry *entry)
{
	claim_free(entry->claim);
	free(entry->calls);
	free(entry);
}

void claims_free(struct claims *claims)
{
	if (!claims)
		return;
	for (size_t i = 0; i < claims->count; i++)
		entry_free(claims->entries[i]);
	free(claims->entries);
	free(claims);
}

static struct entry *entry_find(const struct claims *claims, const char *uid)
{
	for (size_t i = 0; i < claims->count; i++)
		if (strcmp(claims->entries[i]->uid, uid) == 0)
			return claims->entries[i];
	return NULL;
}

static struct entry *entry_add(struct claims *claims, const char *uid, enum phase phase)
{
	struct entry *entry = NEW(struct entry);

	INVARIANT(claim_uid_is_valid(uid) && !entry_find(claims, uid));
	memcpy(entry->uid, uid, strlen(uid) + 1);
	entry->phase = phase;
	entry->look_ms = INT64_MAX;
	array_reserve(claims->entries, claims->capacity, claims->count + 1);
	claims->entries[claims->count++] = entry;
	return entry;
}

static void entry_remove(struct claims *claims, struct entry *entry)
{
	size_t at = 0;

	while (claims->entries[at] != entry)
		at++;
	claims->count--;
	memmove(claims->entries + at, claims->entries + at + 1,
	        (claims->count - at) * sizeof(*claims->entries));
	entry_free(entry);
}

static void entry_wait(struct entry *entry, int64_t call)
{
	array_reserve(entry->calls, entry->call_capacity, entry->call_count + 1);
	entry->calls[entry->call_count++] = call;
}

/* Answers all who wait. */
static void entry_answer(struct claims *claims, struct entry *entry, const struct claim *claim,
                         const char *refusal)
{
	size_t count = entry->call_count;

	entry->call_count = 0;
	for (size_t i = 0; i < count; i++)
		claims->port.answer(claims->port.context, entry->calls[i], entry->uid, claim,
		                    refusal);
}

static void entry_refuse(struct claims *claims, struct entry *entry, const char *refusal)
{
	INVARIANT(entry->phase == CLAIM_FETCHING || entry->phase == CLAIM_CHECKING);
	entry_answer(claims, entry, NULL, refusal);
	entry_remove(claims, entry);
}

void claims_restore(struct claims *claims, struct claim *claim)
{
	if (entry_find(claims, claim->uid)) {
		claim_free(claim);
		return;
	}
	entry_add(claims, claim->uid, CLAIM_PREPARED)->claim = claim;
}

static bool is_kept(const struct entry *entry)
{
	return entry->phase == CLAIM_PREPARED || entry->phase == CLAIM_LEAVING;
}

static void answer_one(struct claims *claims, int64_t call, const char *uid,
                       const struct claim *claim, const char *refusal)
{
	claims->port.answer(claims->port.context, call, uid, claim, refusal);
}

/* The runtime's file does not outlive a reboot: so it is written again. */
static void prepare_again(struct claims *claims, const struct entry *entry, int64_t call)
{
	struct error error = { 0 };

	if (claims->port.keep(claims->port.context, entry->claim, &error))
		answer_one(claims, call, entry->uid, entry->claim, NULL);
	else
		answer_one(claims, call, entry->uid, NULL, error.text);
}

void claims_prepare(struct claims *claims, int64_t now_ms, int64_t call, const char *uid,
                    const char *namespace, const char *name)
{
	if (!claim_uid_is_valid(uid) || !claim_name_is_valid(namespace) ||
	    !claim_name_is_valid(name)) {
		answer_one(claims, call, uid, NULL, "the name or the uid of the claim is invalid");
		return;
	}
	struct entry *entry = entry_find(claims, uid);
	if (entry && entry->phase == CLAIM_PREPARED) {
		prepare_again(claims, entry, call);
		return;
	}
	if (entry && entry->phase == CLAIM_LEAVING) {
		answer_one(claims, call, uid, NULL, "the claim is being unprepared");
		return;
	}
	if (entry) {
		entry_wait(entry, call);
		return;
	}
	entry = entry_add(claims, uid, CLAIM_FETCHING);
	entry->deadline_ms = now_ms + claims->settings.prepare_ms;
	entry_wait(entry, call);
	claims->port.fetch(claims->port.context, uid, namespace, name);
}

void claims_fetched(struct claims *claims, int64_t now_ms, const char *uid, struct text json,
                    const char *failure)
{
	struct entry *entry = entry_find(claims, uid);
	struct error error = { 0 };

	if (!entry || entry->phase != CLAIM_FETCHING)
		return;
	if (failure) {
		entry_refuse(claims, entry, failure);
		return;
	}
	struct claim *claim = claim_read(json, claims->settings.pool, &error);
	if (claim && strcmp(claim->uid, uid) != 0) {
		error_set(&error, ERROR_CONFLICT, "ResourceClaim %s has another uid: %s",
		          claim->name, claim->uid);
		claim_free(claim);
		claim = NULL;
	}
	if (!claim) {
		entry_refuse(claims, entry, error.text);
		return;
	}
	entry->claim = claim;
	entry->phase = CLAIM_CHECKING;
	entry->deadline_ms = now_ms + claims->settings.prepare_ms;
	entry->asked = claims->port.measure(claims->port.context);
}

void claims_unprepare(struct claims *claims, int64_t now_ms, int64_t call, const char *uid)
{
	if (!claim_uid_is_valid(uid)) {
		answer_one(claims, call, uid, NULL, "the uid of the claim is invalid");
		return;
	}
	struct entry *entry = entry_find(claims, uid);
	if (entry && !is_kept(entry)) {
		entry_refuse(claims, entry, "the claim was unprepared meanwhile");
		entry = NULL;
	}
	if (!entry) {
		/* One that was written before a crash, and not kept. */
		claims->port.forget(claims->port.context, uid);
		answer_one(claims, call, uid, NULL, NULL);
		return;
	}
	entry_wait(entry, call);
	if (entry->phase == CLAIM_LEAVING)
		return;
	entry->phase = CLAIM_LEAVING;
	entry->deadline_ms = now_ms + claims->settings.give_up_ms;
	entry->look_ms = INT64_MAX;
	entry->asked = claims->port.measure(claims->port.context);
}

static bool has_pod(const struct claim *claim, const char *pod)
{
	for (int64_t i = 0; *pod && i < claim->pod_count; i++)
		if (strcmp(claim->pods[i], pod) == 0)
			return true;
	return false;
}

static const struct claims_gpu *gpu_of(const struct claims_measured *measured, const char *uuid)
{
	for (int64_t i = 0; i < measured->gpu_count; i++)
		if (strcmp(measured->gpus[i].uuid, uuid) == 0)
			return &measured->gpus[i];
	return NULL;
}

static const struct claims_gpu *gpu_of_device(const struct claims_measured *measured,
                                              const char *device)
{
	const struct claims_gpu *found = NULL;

	for (int64_t i = 0; !found && i < measured->gpu_count; i++) {
		char *name = slice_device(measured->gpus[i].uuid);
		found = strcmp(name, device) == 0 ? &measured->gpus[i] : NULL;
		free(name);
	}
	return found;
}

/* What the claim has of a GPU, by all of its devices there. */
static int64_t reserved_on(const struct claim *claim, const char *uuid)
{
	int64_t sum_mib = 0;

	for (int64_t i = 0; i < claim->device_count; i++)
		if (strcmp(claim->devices[i].uuid, uuid) == 0)
			sum_mib += claim->devices[i].memory_mib;
	return sum_mib;
}

/* What the pods of a claim were measured to use on a GPU. `ordered`: the node has an order for one
 * of them there, and counts it by that. */
static int64_t measured_on(const struct claims_measured *measured, const struct claim *claim,
                           const char *uuid, bool *ordered)
{
	int64_t sum_mib = 0;

	*ordered = false;
	for (int64_t i = 0; i < measured->owner_count; i++) {
		const struct claims_owner *owner = &measured->owners[i];
		if (strcmp(owner->uuid, uuid) != 0 || !has_pod(claim, owner->pod))
			continue;
		sum_mib += owner->measured_mib;
		*ordered = *ordered || !owner->is_foreign;
	}
	return sum_mib;
}

/* What others than the claim have on a GPU. */
struct others {
	int64_t foreign_mib, memory_mib, count;
	bool have_whole;
};

static void add_other(struct others *others, int64_t reserved_mib, int64_t measured_mib)
{
	others->memory_mib += max64(reserved_mib, measured_mib);
	others->count++;
}

static void count_claims(const struct claims *claims, const struct claims_measured *measured,
                         const struct claim *but, const char *uuid, struct others *others)
{
	for (size_t i = 0; i < claims->count; i++) {
		const struct entry *entry = claims->entries[i];
		bool ordered = false;
		if (!is_kept(entry) || entry->claim == but || reserved_on(entry->claim, uuid) == 0)
			continue;
		int64_t measured_mib = measured_on(measured, entry->claim, uuid, &ordered);
		if (ordered)
			continue;
		others->foreign_mib -= measured_mib;
		add_other(others, reserved_on(entry->claim, uuid), measured_mib);
	}
}

static struct others others_on(const struct claims *claims, const struct claims_measured *measured,
                               const struct claim *claim, const struct claims_gpu *gpu)
{
	struct others others = { .foreign_mib = gpu->foreign_mib };

	for (int64_t i = 0; i < measured->owner_count; i++) {
		const struct claims_owner *owner = &measured->owners[i];
		if (strcmp(owner->uuid, gpu->uuid) != 0)
			continue;
		bool own = has_pod(claim, owner->pod);
		if (own && owner->is_foreign)
			others.foreign_mib -= owner->measured_mib;
		if (own || owner->is_foreign)
			continue;
		add_other(&others, owner->reserved_mib, owner->measured_mib);
		others.have_whole = others.have_whole || owner->has_whole;
	}
	count_claims(claims, measured, claim, gpu->uuid, &others);
	others.foreign_mib = max64(others.foreign_mib, 0);
	return others;
}

/* True if a claim that is kept is reserved for the pod. */
static bool has_claim(const struct claims *claims, const char *pod)
{
	for (size_t i = 0; i < claims->count; i++)
		if (is_kept(claims->entries[i]) && has_pod(claims->entries[i]->claim, pod))
			return true;
	return false;
}

int64_t claims_offer_mib(const struct claims *claims, const struct claims_measured *measured,
                         const struct claims_gpu *gpu)
{
	int64_t taken_mib = 0, foreign_mib = gpu->foreign_mib;

	for (int64_t i = 0; i < measured->owner_count; i++) {
		const struct claims_owner *owner = &measured->owners[i];
		if (strcmp(owner->uuid, gpu->uuid) != 0)
			continue;
		bool claimed = has_claim(claims, owner->pod);
		if (claimed && owner->is_foreign)
			foreign_mib -= owner->measured_mib;
		else if (!claimed && !owner->is_foreign)
			taken_mib += max64(owner->reserved_mib, owner->measured_mib);
	}
	return max64(gpu->capacity_mib - gpu->overhead_mib - max64(foreign_mib, 0) - taken_mib, 0);
}

static bool claims_check_gpu(const struct claims *claims, const struct claims_measured *measured,
                             const struct claim *claim, const struct claims_gpu *gpu,
                             struct error *error)
{
	struct others others = others_on(claims, measured, claim, gpu);
	int64_t asked_mib = reserved_on(claim, gpu->uuid);
	int64_t sum_mib = gpu->overhead_mib + others.foreign_mib + others.memory_mib + asked_mib;

	if (!gpu->is_present)
		return error_set(error, ERROR_NOT_FOUND, "GPU %s is not there", gpu->uuid);
	if (!gpu->is_healthy)
		return error_set(error, ERROR_CONFLICT, "GPU %s is not healthy", gpu->uuid);
	if (gpu->is_mig_parent)
		return error_set(error, ERROR_CONFLICT,
		                 "GPU %s is in MIG mode: only its instances can be used",
		                 gpu->uuid);
	if (others.have_whole)
		return error_set(error, ERROR_NO_ROOM, "another has GPU %s to itself", gpu->uuid);
	return sum_mib <= gpu->capacity_mib ||
	       error_set(error, ERROR_NO_ROOM,
	                 "GPU %s has no room: overhead %lld + foreign %lld + %lld others %lld + "
	                 "asked %lld = %lld MiB, capacity %lld MiB",
	                 gpu->uuid, (long long)gpu->overhead_mib, (long long)others.foreign_mib,
	                 (long long)others.count, (long long)others.memory_mib,
	                 (long long)asked_mib, (long long)sum_mib, (long long)gpu->capacity_mib);
}

/* Which GPUs its devices are, and what stands on them. One that was given as a whole has all of
 * its memory. */
static bool find_gpus(const struct claims_measured *measured, struct claim *claim,
                      struct error *error)
{
	for (int64_t i = 0; i < claim->device_count; i++) {
		struct claim_device *device = &claim->devices[i];
		const struct claims_gpu *gpu = gpu_of_device(measured, device->device);
		if (!gpu)
			return error_set(error, ERROR_NOT_FOUND, "GPU %s is not on this node",
			                 device->device);
		device->uuid = arena_string(&claim->arena, gpu->uuid);
		device->unexplained_mib = gpu->unexplained_mib;
		if (device->memory_mib == 0)
			device->memory_mib = max64(gpu->capacity_mib - gpu->overhead_mib, 1);
	}
	return true;
}

static bool claims_check(const struct claims *claims, const struct claims_measured *measured,
                         struct claim *claim, struct error *error)
{
	if (!find_gpus(measured, claim, error))
		return false;
	for (int64_t i = 0; i < claim->device_count; i++)
		if (!claims_check_gpu(claims, measured, claim,
		                      gpu_of(measured, claim->devices[i].uuid), error))
			return false;
	return true;
}

static void decide(struct claims *claims, struct entry *entry,
                   const struct claims_measured *measured)
{
	struct error error = { 0 };

	if (!claims_check(claims, measured, entry->claim, &error) ||
	    !claims->port.keep(claims->port.context, entry->claim, &error)) {
		entry_refuse(claims, entry, error.text);
		return;
	}
	entry->phase = CLAIM_PREPARED;
	entry_answer(claims, entry, entry->claim, NULL);
}

/* Memory of the claim that is still there on one of its GPUs; 0 for one that is not there. */
static int64_t left_on(const struct claims *claims, const struct claims_measured *measured,
                       const struct claim *claim, const struct claim_device *device)
{
	const struct claims_gpu *gpu = gpu_of(measured, device->uuid);
	bool ordered;

	if (!gpu || !gpu->is_present)
		return 0;
	int64_t more_mib = gpu->unexplained_mib - device->unexplained_mib;
	return measured_on(measured, claim, device->uuid, &ordered) +
	       (more_mib > claims->settings.tolerance_mib ? more_mib : 0);
}

static void entry_leave(struct claims *claims, struct entry *entry)
{
	claims->port.forget(claims->port.context, entry->uid);
	entry_answer(claims, entry, NULL, NULL);
	entry_remove(claims, entry);
}

/* True if it has left, and is gone. */
static bool try_to_leave(struct claims *claims, struct entry *entry, int64_t now_ms,
                         const struct claims_measured *measured)
{
	bool over = now_ms >= entry->deadline_ms, left = false;

	for (int64_t i = 0; i < entry->claim->device_count; i++) {
		const struct claim_device *device = &entry->claim->devices[i];
		int64_t left_mib = left_on(claims, measured, entry->claim, device);
		left = left || left_mib > 0;
		if (left_mib > 0 && over)
			claims->port.gave_up(claims->port.context, entry->claim, device->uuid,
			                     left_mib);
	}
	if (left && !over) {
		entry->look_ms = now_ms + claims->settings.look_ms;
		return false;
	}
	entry_leave(claims, entry);
	return true;
}

/* What was there before is no longer, so that much more is its own. */
static void lower_unexplained(struct claim *claim, const struct claims_measured *measured)
{
	for (int64_t i = 0; i < claim->device_count; i++) {
		struct claim_device *device = &claim->devices[i];
		const struct claims_gpu *gpu = gpu_of(measured, device->uuid);
		if (gpu && gpu->is_present)
			device->unexplained_mib =
			    min64(device->unexplained_mib, gpu->unexplained_mib);
	}
}

/* Those that leave first, in the order in which they were asked for: it makes room. */
static void take_phase(struct claims *claims, int64_t now_ms,
                       const struct claims_measured *measured, enum phase phase)
{
	for (size_t i = 0; i < claims->count;) {
		struct entry *entry = claims->entries[i];
		size_t count = claims->count;
		bool due = entry->phase == phase && measured->number >= entry->asked;
		if (due && phase == CLAIM_CHECKING)
			decide(claims, entry, measured);
		else if (due && entry->look_ms == INT64_MAX)
			try_to_leave(claims, entry, now_ms, measured);
		i += claims->count == count;
	}
}

void claims_measured(struct claims *claims, int64_t now_ms, const struct claims_measured *measured)
{
	for (size_t i = 0; i < claims->count; i++)
		if (claims->entries[i]->phase == CLAIM_PREPARED)
			lower_unexplained(claims->entries[i]->claim, measured);
	take_phase(claims, now_ms, measured, CLAIM_LEAVING);
	take_phase(claims, now_ms, measured, CLAIM_CHECKING);
}

static void entry_time(struct claims *claims, struct entry *entry, int64_t now_ms)
{
	if (entry->phase == CLAIM_LEAVING && entry->look_ms <= now_ms) {
		entry->look_ms = INT64_MAX;
		entry->asked = claims->port.measure(claims->port.context);
	}
	if (entry->phase == CLAIM_PREPARED || now_ms < entry->deadline_ms)
		return;
	if (entry->phase == CLAIM_FETCHING) {
		entry_refuse(claims, entry, "the API server did not answer");
	} else if (entry->phase == CLAIM_CHECKING) {
		entry_refuse(claims, entry, "the GPUs could not be measured");
	} else if (now_ms >= entry->deadline_ms + BLIND_MS) {
		/* No measurement came that could tell. */
		claims->port.gave_up(claims->port.context, entry->claim, "", 0);
		entry_leave(claims, entry);
	}
}

void claims_time(struct claims *claims, int64_t now_ms)
{
	for (size_t i = 0; i < claims->count;) {
		size_t count = claims->count;
		entry_time(claims, claims->entries[i], now_ms);
		i += claims->count == count;
	}
}

int64_t claims_wake_ms(const struct claims *claims)
{
	int64_t wake_ms = INT64_MAX;

	for (size_t i = 0; i < claims->count; i++) {
		const struct entry *entry = claims->entries[i];
		if (entry->phase == CLAIM_PREPARED)
			continue;
		int64_t end_ms = entry->deadline_ms +
		                 (entry->phase == CLAIM_LEAVING ? claims->settings.look_ms : 0);
		wake_ms = min64(wake_ms, min64(end_ms, entry->look_ms));
	}
	return wake_ms;
}

int64_t claims_count(const struct claims *claims)
{
	int64_t count = 0;

	for (size_t i = 0; i < claims->count; i++)
		count += is_kept(claims->entries[i]);
	return count;
}

const struct claim *claims_at(const struct claims *claims, int64_t at)
{
	for (size_t i = 0; i < claims->count; i++)
		if (is_kept(claims->entries[i]) && at-- == 0)
			return claims->entries[i]->claim;
	return NULL;
}

int64_t claims_pending(const struct claims *claims)
{
	int64_t count = 0;

	for (size_t i = 0; i < claims->count; i++)
		count += claims->entries[i]->phase != CLAIM_PREPARED;
	return count;
}
