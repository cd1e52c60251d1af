/* world.c - a node of Kubernetes for tests */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static const char *const uuids[WORLD_GPUS] = { "GPU-aa", "GPU-bb" };

static struct world_pod *pod_of_claim(struct world *world, const char *uid)
{
	for (int i = 0; i < WORLD_CLAIMS; i++)
		if (strcmp(world->pods[i].claim, uid) == 0)
			return &world->pods[i];
	return NULL;
}

static int64_t world_ask(void *context)
{
	struct world *world = context;

	return ++world->asked;
}

static void world_fetch(void *context, const char *uid, const char *namespace, const char *name)
{
	struct world *world = context;
	struct world_pod *pod = pod_of_claim(world, uid);

	INVARIANT(pod && *namespace && *name);
	world->fetches[pod - world->pods]++;
}

static bool world_keep(void *context, const struct claim *claim, struct error *error)
{
	struct world *world = context;
	struct world_pod *pod = pod_of_claim(world, claim->uid);
	struct buffer kept = { 0 };

	if (world->keeps_failing)
		return error_set(error, ERROR_UNAVAILABLE, "no space left on device");
	claim_write(claim, &kept);
	INVARIANT(kept.size < sizeof(pod->kept));
	memcpy(pod->kept, kept.data, kept.size + 1);
	buffer_free(&kept);
	return pod->is_kept = pod->has_file = true;
}

static void world_forget(void *context, const char *uid)
{
	struct world_pod *pod = pod_of_claim(context, uid);

	if (pod)
		pod->is_kept = pod->has_file = false;
}

static void world_answer(void *context, int64_t number, const char *uid, const struct claim *claim,
                         const char *refusal)
{
	struct world *world = context;
	struct world_call *call = &world->calls[number];

	INVARIANT(!call->is_answered && *uid);
	call->is_answered = true;
	call->is_refused = refusal != NULL;
	snprintf(call->text, sizeof(call->text), "%s", refusal ? refusal : "");
	if (claim) {
		INVARIANT(pod_of_claim(world, uid)->is_kept);
		snprintf(call->uuid, sizeof(call->uuid), "%s", claim->devices[0].uuid);
		call->memory_mib = claim->devices[0].memory_mib;
	}
}

static void world_gave_up(void *context, const struct claim *claim, const char *uuid,
                          int64_t memory_mib)
{
	struct world *world = context;

	INVARIANT(*claim->uid && uuid);
	world->gave_up++;
	world->gave_up_mib = memory_mib;
}

static struct claims *new_claims(struct world *world)
{
	return claims_new(&(struct claims_settings){ .pool = "node-1", .tolerance_mib = 64 },
	                  &(struct claims_port){ .context = world,
	                                         .measure = world_ask,
	                                         .fetch = world_fetch,
	                                         .keep = world_keep,
	                                         .forget = world_forget,
	                                         .answer = world_answer,
	                                         .gave_up = world_gave_up });
}

struct world *world_new(void)
{
	struct world *world = NEW(struct world);

	world->capacity_mib = 10000;
	world->overhead_mib = 500;
	for (int i = 0; i < WORLD_CLAIMS; i++) {
		snprintf(world->pods[i].uid, sizeof(world->pods[i].uid), "pod-%d", i);
		snprintf(world->pods[i].claim, sizeof(world->pods[i].claim), "claim-%d", i);
		world->pods[i].asked_mib = 4000;
	}
	world->claims = new_claims(world);
	return world;
}

void world_free(struct world *world)
{
	claims_free(world->claims);
	free(world);
}

void world_restart(struct world *world, bool reboot)
{
	struct error error = { 0 };

	claims_free(world->claims);
	world->claims = new_claims(world);
	memset(world->fetches, 0, sizeof(world->fetches));
	for (int i = 0; i < WORLD_CLAIMS; i++) {
		struct world_pod *pod = &world->pods[i];
		if (reboot) {
			pod->has_file = false;
			pod->used_mib = pod->left_mib = 0;
		}
		if (!pod->is_kept)
			continue;
		struct claim *claim = claim_load(text_of(pod->kept), &error);
		INVARIANT(claim);
		claims_restore(world->claims, claim);
	}
	for (int64_t i = 0; i < world->call_count; i++)
		world->calls[i].is_answered = true;
}

int64_t world_prepare(struct world *world, int64_t pod)
{
	char name[32];

	INVARIANT(world->call_count < WORLD_CALLS);
	snprintf(name, sizeof(name), "c%d", (int)pod);
	claims_prepare(world->claims, world->now_ms, world->call_count, world->pods[pod].claim,
	               "default", name);
	return world->call_count++;
}

int64_t world_unprepare(struct world *world, int64_t pod)
{
	INVARIANT(world->call_count < WORLD_CALLS);
	claims_unprepare(world->claims, world->now_ms, world->call_count, world->pods[pod].claim);
	return world->call_count++;
}

static void fetched_one(struct world *world, int at, const char *failure)
{
	const struct world_pod *pod = &world->pods[at];
	struct buffer json = { 0 };

	buffer_print(
	    &json,
	    "{\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"c%d\",\"namespace\":\"default\","
	    "\"uid\":\"%s\"},\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":"
	    "\"gpu\",\"driver\":\"" CLAIM_DRIVER "\",\"pool\":\"node-1\",\"device\":\"%s\","
	    "\"consumedCapacity\":{\"memory\":\"%lldMi\"}}]}},\"reservedFor\":[{\"resource\":"
	    "\"pods\",\"name\":\"p\",\"uid\":\"%s\"}]}}",
	    at, pod->claim, pod->gpu == 0 ? "gpu-aa" : "gpu-bb", (long long)pod->asked_mib,
	    pod->uid);
	claims_fetched(world->claims, world->now_ms, pod->claim,
	               (struct text){ json.data, json.size }, failure);
	buffer_free(&json);
}

void world_fetched(struct world *world, const char *failure)
{
	for (int i = 0; i < WORLD_CLAIMS; i++)
		for (; world->fetches[i] > 0; world->fetches[i]--)
			fetched_one(world, i, failure);
}

void world_measure(struct world *world)
{
	struct claims_gpu gpus[WORLD_GPUS] = { 0 };
	struct claims_owner owners[WORLD_CLAIMS] = { 0 };
	int64_t count = 0;

	for (int i = 0; i < WORLD_GPUS; i++)
		gpus[i] = (struct claims_gpu){ .uuid = uuids[i],
			                       .capacity_mib = world->capacity_mib,
			                       .overhead_mib = world->overhead_mib,
			                       .foreign_mib = world->foreign_mib[i] +
			                                      world->unexplained_mib[i],
			                       .unexplained_mib = world->unexplained_mib[i],
			                       .is_present = true,
			                       .is_healthy = !world->is_sick[i] };
	for (int i = 0; i < WORLD_CLAIMS; i++) {
		const struct world_pod *pod = &world->pods[i];
		struct claims_gpu *gpu = &gpus[pod->gpu];
		gpu->unexplained_mib += pod->left_mib;
		gpu->foreign_mib += pod->left_mib;
		if (pod->used_mib == 0 && !pod->is_ordered)
			continue;
		gpu->foreign_mib += pod->is_ordered ? 0 : pod->used_mib;
		owners[count++] =
		    (struct claims_owner){ .uuid = gpu->uuid,
			                   .pod = pod->uid,
			                   .reserved_mib = pod->is_ordered ? pod->asked_mib : 0,
			                   .measured_mib = pod->used_mib,
			                   .is_foreign = !pod->is_ordered };
	}
	world->measured = world->asked;
	claims_measured(world->claims, world->now_ms,
	                &(struct claims_measured){ .number = world->measured,
	                                           .gpus = gpus,
	                                           .gpu_count = WORLD_GPUS,
	                                           .owners = owners,
	                                           .owner_count = count });
}

void world_sleep(struct world *world, int64_t ms)
{
	world->now_ms += ms;
	claims_time(world->claims, world->now_ms);
}

const struct world_call *world_prepared(struct world *world, int64_t pod)
{
	int64_t call = world_prepare(world, pod);

	world_fetched(world, NULL);
	world_measure(world);
	return &world->calls[call];
}
