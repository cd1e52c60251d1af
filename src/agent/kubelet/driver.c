/* driver.c - the driver of GPUs on a node of Kubernetes */
#include "agent/kubelet/driver.h"

#include <kubelet.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/file.h"
#include "agent/host/pod_group.h"
#include "agent/kubelet/api.h"
#include "agent/kubelet/cdi_files.h"
#include "agent/kubelet/reply.h"
#include "agent/kubelet/sockets.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/record/heat.h"
#include "kubelet/cdi.h"
#include "kubelet/claims.h"
#include "kubelet/slice.h"
#include "node/accounts.h"

enum { TICK_MS = 200, CLAIMS_MAX = 256 };
#define DRA_V1 "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
#define DRA_V1BETA1 "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin"

/* A call about several claims: answered when all of them are. */
struct gathered {
	struct gathered *next;
	int64_t number;
	struct sockets_call *call;
	bool unprepares;
	size_t left;
	struct arena arena;
	Kubelet__PrepareEntry **prepared; /* one of both, `count` long */
	Kubelet__UnprepareEntry **unprepared;
	size_t count;
};

struct driver {
	struct driver_parts parts;
	char *endpoint, *registration;
	struct claims *claims;
	struct cdi_files *files;
	struct sockets *sockets;
	struct kube_api *api;
	struct gathered *gathered;
	int64_t calls;
	uv_timer_t tick;
	/* Of the last measurement. */
	struct buffer gpus, owners;             /* as the node has them */
	struct buffer claim_gpus, claim_owners; /* as the claims want them */
	struct buffer offered;                  /* struct slice_gpu */
	struct hot {
		char uuid[96];
		bool is_hot;
	} * hot;
	size_t hot_count, hot_capacity;
};

static char *string_in(struct arena *arena, const char *text)
{
	return *text ? arena_string(arena, text) : (char *)protobuf_c_empty_string;
}

/* What the claims ask for. */

static int64_t driver_measure(void *context)
{
	struct driver *driver = context;

	return measurements_ask_now(driver->parts.measurements);
}

static void driver_fetch(void *context, const char *uid, const char *namespace, const char *name)
{
	struct driver *driver = context;

	kube_api_fetch(driver->api, uid, namespace, name);
}

static bool driver_keep(void *context, const struct claim *claim, struct error *error)
{
	struct driver *driver = context;

	return cdi_files_keep(driver->files, claim, error);
}

static void driver_forget(void *context, const char *uid)
{
	struct driver *driver = context;

	cdi_files_forget(driver->files, uid);
}

static void driver_gave_up(void *context, const struct claim *claim, const char *uuid,
                           int64_t memory_mib)
{
	(void)context;
	log_at(LOG_WARNING,
	       *uuid ? "memory of a claim did not come back in time: it is foreign from now on"
	             : "the GPUs could not be measured after a claim ended",
	       LOG_TEXT("namespace", claim->namespace), LOG_TEXT("claim", claim->name),
	       LOG_TEXT("gpu", uuid), LOG_NUMBER("memory_mib", memory_mib));
}

static Kubelet__PreparedDevice *prepared_device(struct gathered *gathered,
                                                const struct claim *claim,
                                                const struct claim_device *device)
{
	struct arena *arena = &gathered->arena;
	Kubelet__PreparedDevice *prepared = arena_alloc(arena, sizeof(*prepared));
	char *name = cdi_device(claim->uid);

	kubelet__prepared_device__init(prepared);
	prepared->n_request_names = prepared->n_cdi_device_ids = 1;
	prepared->request_names = arena_alloc(arena, sizeof(char *));
	prepared->request_names[0] = string_in(arena, device->request);
	prepared->cdi_device_ids = arena_alloc(arena, sizeof(char *));
	prepared->cdi_device_ids[0] = string_in(arena, name);
	prepared->pool_name = string_in(arena, device->pool);
	prepared->device_name = string_in(arena, device->device);
	if (*device->share)
		prepared->share_id = string_in(arena, device->share);
	free(name);
	return prepared;
}

static void add_prepared(struct gathered *gathered, const char *uid, const struct claim *claim,
                         const char *refusal)
{
	struct arena *arena = &gathered->arena;
	Kubelet__PrepareEntry *entry = arena_alloc(arena, sizeof(*entry));
	Kubelet__PrepareResult *result = arena_alloc(arena, sizeof(*result));

	kubelet__prepare_entry__init(entry);
	kubelet__prepare_result__init(result);
	entry->key = string_in(arena, uid);
	entry->value = result;
	result->error = string_in(arena, refusal ? refusal : "");
	if (claim) {
		result->devices =
		    arena_alloc(arena, (size_t)claim->device_count * sizeof(*result->devices));
		for (int64_t i = 0; i < claim->device_count; i++)
			result->devices[result->n_devices++] =
			    prepared_device(gathered, claim, &claim->devices[i]);
	}
	gathered->prepared[gathered->count++] = entry;
}

static void add_unprepared(struct gathered *gathered, const char *uid, const char *refusal)
{
	Kubelet__UnprepareEntry *entry = arena_alloc(&gathered->arena, sizeof(*entry));
	Kubelet__UnprepareResult *result = arena_alloc(&gathered->arena, sizeof(*result));

	kubelet__unprepare_entry__init(entry);
	kubelet__unprepare_result__init(result);
	entry->key = string_in(&gathered->arena, uid);
	entry->value = result;
	result->error = string_in(&gathered->arena, refusal ? refusal : "");
	gathered->unprepared[gathered->count++] = entry;
}

static void gathered_free(struct driver *driver, struct gathered *gathered)
{
	struct gathered **at = &driver->gathered;

	while (*at != gathered)
		at = &(*at)->next;
	*at = gathered->next;
	arena_free(&gathered->arena);
	free(gathered);
}

static void gathered_reply(struct driver *driver, struct gathered *gathered)
{
	Kubelet__PrepareResponse prepared = KUBELET__PREPARE_RESPONSE__INIT;
	Kubelet__UnprepareResponse unprepared = KUBELET__UNPREPARE_RESPONSE__INIT;

	prepared.claims = gathered->prepared;
	unprepared.claims = gathered->unprepared;
	if (gathered->unprepares) {
		unprepared.n_claims = gathered->count;
		reply_message(gathered->call, &unprepared.base);
	} else {
		prepared.n_claims = gathered->count;
		reply_message(gathered->call, &prepared.base);
	}
	gathered_free(driver, gathered);
}

static void driver_answer(void *context, int64_t number, const char *uid, const struct claim *claim,
                          const char *refusal)
{
	struct driver *driver = context;
	struct gathered *gathered = driver->gathered;

	while (gathered && gathered->number != number)
		gathered = gathered->next;
	INVARIANT(gathered && gathered->left > 0);
	log_at(refusal ? LOG_WARNING : LOG_INFO,
	       refusal                ? "a claim was refused"
	       : gathered->unprepares ? "a claim was unprepared"
	                              : "a claim was prepared",
	       LOG_TEXT("uid", uid), LOG_TEXT("reason", refusal ? refusal : ""));
	if (gathered->unprepares)
		add_unprepared(gathered, uid, refusal);
	else
		add_prepared(gathered, uid, claim, refusal);
	gathered->left--;
}

/* Replies leave after the claims have done what they were told, never in the middle. */
static void driver_reply_due(struct driver *driver)
{
	for (struct gathered *at = driver->gathered, *next; at; at = next) {
		next = at->next;
		if (at->left == 0)
			gathered_reply(driver, at);
	}
}

/* Calls of the kubelet. */

static void take_registration(struct driver *driver, struct sockets_call *call, const char *service,
                              const char *method, struct text message)
{
	static char *versions[] = { "v1.DRAPlugin", "v1beta1.DRAPlugin" };
	struct reply_plugin named = { "DRAPlugin", CLAIM_DRIVER, driver->endpoint, versions,
		                      sizeof(versions) / sizeof(*versions) };

	if (reply_registration(call, &named, service, method, message))
		kube_api_look(driver->api);
}

static struct gathered *gather(struct driver *driver, struct sockets_call *call, bool unprepares,
                               size_t count)
{
	struct gathered *gathered = NEW(struct gathered);

	gathered->number = ++driver->calls;
	gathered->call = call;
	gathered->unprepares = unprepares;
	gathered->left = count;
	if (count > 0 && unprepares)
		gathered->unprepared =
		    arena_alloc(&gathered->arena, count * sizeof(*gathered->unprepared));
	else if (count > 0)
		gathered->prepared =
		    arena_alloc(&gathered->arena, count * sizeof(*gathered->prepared));
	gathered->next = driver->gathered;
	driver->gathered = gathered;
	return gathered;
}

static void take_claims(struct driver *driver, struct sockets_call *call, bool unprepares,
                        const Kubelet__ClaimsRequest *request)
{
	int64_t now_ms = clock_boot_ms(),
		number = gather(driver, call, unprepares, request->n_claims)->number;

	for (size_t i = 0; i < request->n_claims; i++) {
		const Kubelet__Claim *claim = request->claims[i];
		if (unprepares)
			claims_unprepare(driver->claims, now_ms, number, claim->uid);
		else
			claims_prepare(driver->claims, now_ms, number, claim->uid,
			               claim->namespace_, claim->name);
	}
	driver_reply_due(driver);
}

static void take_service(struct driver *driver, struct sockets_call *call, const char *service,
                         const char *method, struct text message)
{
	bool unprepares = strcmp(method, "NodeUnprepareResources") == 0;

	if ((strcmp(service, DRA_V1) != 0 && strcmp(service, DRA_V1BETA1) != 0) ||
	    (!unprepares && strcmp(method, "NodePrepareResources") != 0)) {
		sockets_refuse(call, GRPC_UNIMPLEMENTED, "");
		return;
	}
	Kubelet__ClaimsRequest *request =
	    kubelet__claims_request__unpack(NULL, message.size, (const uint8_t *)message.data);
	if (!request)
		sockets_refuse(call, GRPC_INVALID_ARGUMENT, "the request cannot be read");
	else if (request->n_claims > CLAIMS_MAX)
		sockets_refuse(call, GRPC_INVALID_ARGUMENT,
		               "there are too many claims in one call");
	else
		take_claims(driver, call, unprepares, request);
	if (request)
		kubelet__claims_request__free_unpacked(request, NULL);
}

static void driver_called(void *context, struct sockets_call *call, bool registration,
                          const char *service, const char *method, struct text message)
{
	struct driver *driver = context;

	if (!registration)
		take_service(driver, call, service, method, message);
	else
		take_registration(driver, call, service, method, message);
}

static void driver_fetched(void *context, const char *uid, struct text json, const char *failure)
{
	struct driver *driver = context;

	claims_fetched(driver->claims, clock_boot_ms(), uid, json, failure);
	driver_reply_due(driver);
}

/* Measurements. */

/* Processes that the node has no order for, in pods of prepared claims. */
static void add_pod_process(struct driver *driver, const struct process_reading *process,
                            const char *groups)
{
	for (int64_t i = 0; i < claims_count(driver->claims); i++) {
		const struct claim *claim = claims_at(driver->claims, i);
		for (int64_t pod = 0; pod < claim->pod_count; pod++) {
			struct claims_owner owner = { .uuid = process->uuid,
				                      .pod = claim->pods[pod],
				                      .measured_mib = max64(process->memory_mib, 0),
				                      .is_foreign = true };
			if (!pod_group_is_named(groups, claim->pods[pod]))
				continue;
			buffer_bytes(&driver->claim_owners, &owner, sizeof(owner));
			return;
		}
	}
}

static void add_pod_processes(struct driver *driver, const struct measured *measured)
{
	struct buffer groups = { 0 };

	for (int64_t i = 0; i < measured->process_count && claims_count(driver->claims) > 0; i++) {
		const struct process_reading *process = &measured->processes[i];
		if (process->reservation_id != 0)
			continue;
		char *path = file_path("/proc/%d/cgroup", (int)process->pid);
		if (file_read(path, 65536, &groups))
			add_pod_process(driver, process, groups.data);
		free(path);
	}
	buffer_free(&groups);
}

static void add_accounts(struct driver *driver)
{
	const struct gpu_account *gpus = (const void *)driver->gpus.data;
	const struct owner_account *owners = (const void *)driver->owners.data;

	for (size_t i = 0; i < driver->gpus.size / sizeof(*gpus); i++) {
		struct claims_gpu gpu = { .uuid = gpus[i].reading.uuid,
			                  .capacity_mib = gpus[i].reading.capacity_mib,
			                  .overhead_mib = gpus[i].reading.overhead_mib,
			                  .foreign_mib = gpus[i].foreign_mib,
			                  .unexplained_mib = gpus[i].unexplained_mib,
			                  .is_present = gpus[i].present,
			                  .is_healthy = gpus[i].reading.healthy,
			                  .is_mig_parent = gpus[i].reading.mig_mode };
		buffer_bytes(&driver->claim_gpus, &gpu, sizeof(gpu));
	}
	for (size_t i = 0; i < driver->owners.size / sizeof(*owners); i++) {
		struct claims_owner owner = { .uuid = owners[i].uuid,
			                      .pod = owners[i].pod,
			                      .reserved_mib = owners[i].reserved_mib,
			                      .measured_mib = owners[i].measured_mib,
			                      .has_whole = owners[i].whole };
		buffer_bytes(&driver->claim_owners, &owner, sizeof(owner));
	}
}

static bool is_hot(struct driver *driver, const struct gpu_reading *reading)
{
	struct hot *hot = NULL;

	for (size_t i = 0; !hot && i < driver->hot_count; i++)
		hot = strcmp(driver->hot[i].uuid, reading->uuid) == 0 ? &driver->hot[i] : NULL;
	if (!hot) {
		array_reserve(driver->hot, driver->hot_capacity, driver->hot_count + 1);
		hot = &driver->hot[driver->hot_count++];
		*hot = (struct hot){ 0 };
		snprintf(hot->uuid, sizeof(hot->uuid), "%s", reading->uuid);
	}
	hot->is_hot = heat_is_hot(hot->is_hot, reading->temperature_c,
	                          heat_threshold_c(0, reading->slowdown_c), 0);
	return hot->is_hot;
}

static void driver_offer(struct driver *driver, const struct claims_measured *measured)
{
	const struct gpu_account *gpus = (const void *)driver->gpus.data;

	buffer_clear(&driver->offered);
	for (int64_t i = 0; i < measured->gpu_count; i++) {
		const struct gpu_reading *reading = &gpus[i].reading;
		struct slice_gpu gpu = { .uuid = reading->uuid,
			                 .model = reading->model,
			                 .index = reading->place,
			                 .memory_mib = claims_offer_mib(driver->claims, measured,
			                                                &measured->gpus[i]),
			                 .is_hot = is_hot(driver, reading),
			                 .is_healthy = reading->healthy,
			                 .reason = reading->reason };
		if (gpus[i].present && !reading->mig_mode)
			buffer_bytes(&driver->offered, &gpu, sizeof(gpu));
	}
	kube_api_offer(driver->api, (const void *)driver->offered.data,
	               (int64_t)(driver->offered.size / sizeof(struct slice_gpu)));
}

void driver_measured(struct driver *driver, const struct measured *measured)
{
	buffer_clear(&driver->gpus);
	buffer_clear(&driver->owners);
	buffer_clear(&driver->claim_gpus);
	buffer_clear(&driver->claim_owners);
	node_accounts(driver->parts.local, &driver->gpus, &driver->owners);
	add_accounts(driver);
	add_pod_processes(driver, measured);
	struct claims_measured all = {
		.number = measurements_told(driver->parts.measurements),
		.gpus = (const void *)driver->claim_gpus.data,
		.gpu_count = (int64_t)(driver->claim_gpus.size / sizeof(struct claims_gpu)),
		.owners = (const void *)driver->claim_owners.data,
		.owner_count = (int64_t)(driver->claim_owners.size / sizeof(struct claims_owner)),
	};
	driver_offer(driver, &all);
	claims_measured(driver->claims, clock_boot_ms(), &all);
	driver_reply_due(driver);
}

static void driver_tick(uv_timer_t *timer)
{
	struct driver *driver = timer->data;

	if (claims_wake_ms(driver->claims) <= clock_boot_ms()) {
		claims_time(driver->claims, clock_boot_ms());
		driver_reply_due(driver);
	}
	kube_api_time(driver->api);
}

void driver_flush(struct driver *driver)
{
	kube_api_flush(driver->api);
}

static void restored(void *context, struct claim *claim)
{
	struct driver *driver = context;

	claims_restore(driver->claims, claim);
}

static struct claims *driver_claims(struct driver *driver)
{
	return claims_new(
	    &(struct claims_settings){ .pool = driver->parts.node,
	                               .tolerance_mib =
	                                   driver->parts.policy->release_tolerance_mib },
	    &(struct claims_port){ .context = driver,
	                           .measure = driver_measure,
	                           .fetch = driver_fetch,
	                           .keep = driver_keep,
	                           .forget = driver_forget,
	                           .answer = driver_answer,
	                           .gave_up = driver_gave_up });
}

static bool driver_open(struct driver *driver, const struct driver_settings *settings,
                        struct error *error)
{
	driver->files = cdi_files_new(
	    &(struct cdi_files_settings){ driver->parts.state_directory, settings->cdi_directory,
	                                  settings->root, driver->parts.source },
	    error);
	if (!driver->files)
		return false;
	cdi_files_load(driver->files, restored, driver);
	driver->api = kube_api_new(&(struct kube_api_settings){ .loop = driver->parts.loop,
	                                                        .kubeconfig = settings->kubeconfig,
	                                                        .node = driver->parts.node,
	                                                        .fetched = driver_fetched,
	                                                        .context = driver },
	                           error);
	if (!driver->api)
		return false;
	driver->sockets =
	    sockets_new(&(struct sockets_settings){ .loop = driver->parts.loop,
	                                            .registration_path = driver->registration,
	                                            .service_path = driver->endpoint,
	                                            .called = driver_called,
	                                            .context = driver },
	                error);
	return driver->sockets != NULL;
}

struct driver *driver_new(const struct driver_settings *settings, const struct driver_parts *parts,
                          struct error *error)
{
	struct driver *driver = NEW(struct driver);

	driver->parts = *parts;
	driver->endpoint =
	    file_path("%s/plugins/" CLAIM_DRIVER "/dra.sock", settings->kubelet_directory);
	driver->registration =
	    file_path("%s/plugins_registry/" CLAIM_DRIVER "-reg.sock", settings->kubelet_directory);
	driver->claims = driver_claims(driver);
	uv_timer_init(parts->loop, &driver->tick);
	driver->tick.data = driver;
	if (!driver_open(driver, settings, error)) {
		driver_free(driver);
		return NULL;
	}
	uv_timer_start(&driver->tick, driver_tick, TICK_MS, TICK_MS);
	log_at(LOG_INFO, "the kubelet may prepare claims of GPUs here",
	       LOG_TEXT("driver", CLAIM_DRIVER), LOG_TEXT("socket", driver->endpoint),
	       LOG_NUMBER("prepared", claims_count(driver->claims)));
	return driver;
}

static void driver_closed(uv_handle_t *handle)
{
	struct driver *driver = handle->data;

	buffer_free(&driver->gpus);
	buffer_free(&driver->owners);
	buffer_free(&driver->claim_gpus);
	buffer_free(&driver->claim_owners);
	buffer_free(&driver->offered);
	free(driver->hot);
	free(driver->endpoint);
	free(driver->registration);
	free(driver);
}

void driver_free(struct driver *driver)
{
	if (!driver)
		return;
	sockets_free(driver->sockets);
	kube_api_free(driver->api);
	claims_free(driver->claims);
	cdi_files_free(driver->files);
	while (driver->gathered) /* the sockets have ended their calls */
		gathered_free(driver, driver->gathered);
	uv_close((uv_handle_t *)&driver->tick, driver_closed);
}
