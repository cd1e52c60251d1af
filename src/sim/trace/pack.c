/* pack.c - the packing protocol: pods arrive one by one until more was asked for than there is */
#include "sim/trace/pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "core/sched.h"
#include "sim/trace/gradient.h"

#define BEGIN_MS INT64_C(1767225600000) /* the first of January 2026 */
#define GPU_MIB INT64_C(32000)          /* a multiple of 1000, so that fractions are exact */
#define PASS_UNITS INT64_C(1000)

/* Two of the simulator's own to compare with, and those of the core. */
#define CORE_POLICY(symbol, name, ...) { name, POLICY_##symbol, CHOICE_OF_CORE },
const struct pack_policy pack_policies[PACK_POLICIES] = { { "random", POLICY_PACK, CHOICE_RANDOM },
	                                                  { "gradient", POLICY_FRAGMENT,
	                                                    CHOICE_GRADIENT },
	                                                  PLACEMENT_POLICIES(CORE_POLICY) };
const int pack_policy_count = PACK_POLICIES;

const struct pack_policy *pack_policy(const char *name)
{
	bool ours = strcmp(name, "default") == 0 || strcmp(name, "ours") == 0;
	int of_core = ours ? POLICY_DEFAULT : policy_find(name);

	if (of_core >= 0)
		name = policy_row(of_core)->name;
	for (int i = 0; i < pack_policy_count; i++)
		if (strcmp(pack_policies[i].name, name) == 0)
			return &pack_policies[i];
	return NULL;
}

struct pack {
	const struct openb *openb;
	const struct pack_policy *policy;
	struct sched *sched;
	struct effects effects;
	struct pack_node *nodes; /* by place in the list */
	struct gradient gradient;
	int64_t tenant_id;
	uint64_t random;
};

static bool pack_send(struct pack *pack, const struct command *command, struct error *error)
{
	effects_clear(&pack->effects);
	return sched_apply(pack->sched, command, &pack->effects, error);
}

/* Everything that fits is admitted, and nobody is stopped or moved for another. */
static bool pack_configure(struct pack *pack, struct error *error)
{
	struct command command = { .kind = COMMAND_CONFIGURE, .now_ms = BEGIN_MS };
	command.configure = config_default();
	command.configure.policy = (int32_t)pack->policy->policy;
	command.configure.enable_preemption = false;
	command.configure.enable_consolidation = false;
	command.configure.enable_backfill = false;
	command.configure.promise_jobs = 0;
	return pack_send(pack, &command, error);
}

static bool pack_put_tenant(struct pack *pack, struct error *error)
{
	struct command command = { .kind = COMMAND_PUT_TENANT, .now_ms = BEGIN_MS };
	command.tenant = tenant_default("trace");
	bool fine = pack_send(pack, &command, error);
	pack->tenant_id = pack->effects.reply_id;
	return fine;
}

/* "node=NAME", which a job that must go there asks for. */
static void label_of(const struct openb_node *node, char *label, size_t size)
{
	snprintf(label, size, "node=%s", node->name);
}

static bool pack_report_node(struct pack *pack, size_t number, struct error *error)
{
	const struct openb_node *node = &pack->openb->nodes[number];
	struct device devices[GPUS_PER_NODE_MAX];
	char uuids[GPUS_PER_NODE_MAX][32], label[256];

	label_of(node, label, sizeof(label));
	pack_node_begin(&pack->nodes[number], node, sched_meta(pack->sched)->last_gpu_id + 1);
	for (int64_t i = 0; i < node->gpu_count; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%zu-%" PRId64, number, i);
		devices[i] = (struct device){ .uuid = uuids[i],
			                      .model = node->model,
			                      .mig_parent = "",
			                      .place = i,
			                      .capacity_mib = GPU_MIB,
			                      .healthy = true };
	}
	struct command command = { .kind = COMMAND_NODE_REPORT, .now_ms = BEGIN_MS };
	command.report = (struct node_report_command){
		.name = node->name,
		.boot = "1",
		.zone = "",
		.rack = "",
		.labels = label,
		.cpu_milli = node->cpu_milli,
		.host_bytes = node->memory_mib << 20,
		.devices = devices,
		.device_count = node->gpu_count,
		.snapshot = true,
	};
	return pack_send(pack, &command, error);
}

/* Tells the core the same mix, by which it chooses the GPUs. */
static bool tell_mix(struct pack *pack, struct error *error)
{
	struct command command = { .kind = COMMAND_MIX, .now_ms = BEGIN_MS };

	command.mix = pack->gradient.mix.r.classes;
	return pack_send(pack, &command, error);
}

static bool pack_begin(struct pack *pack, struct error *error)
{
	const struct command start = { .kind = COMMAND_START, .now_ms = BEGIN_MS };

	pack->sched = sched_new();
	pack->nodes = memory_alloc(pack->openb->node_count * sizeof(*pack->nodes));
	if (!pack_send(pack, &start, error) || !pack_configure(pack, error) ||
	    !pack_put_tenant(pack, error))
		return false;
	for (size_t i = 0; i < pack->openb->node_count; i++)
		if (!pack_report_node(pack, i, error))
			return false;
	return pack->policy->choice != CHOICE_GRADIENT ||
	       (gradient_begin(&pack->gradient, pack->openb, error) && tell_mix(pack, error));
}

/* A node that fits, each as likely as the other; -1: none does. */
static int64_t draw_node(struct pack *pack, const struct openb_kind *kind)
{
	uint64_t fitting = 0;
	int64_t drawn = -1;

	for (size_t i = 0; i < pack->openb->node_count; i++)
		if (pack_node_fits(&pack->nodes[i], kind) &&
		    random_below(&pack->random, ++fitting) == 0)
			drawn = (int64_t)i;
	return drawn;
}

static bool pack_submit(struct pack *pack, const struct openb_kind *kind, const char *labels,
                        struct error *error)
{
	struct command command = { .kind = COMMAND_SUBMIT, .now_ms = BEGIN_MS };
	bool whole = kind->gpu_milli == WHOLE_GPU;
	command.submit.job = (struct job_record){
		.tenant_id = pack->tenant_id,
		.name = "pod",
		.payload = "",
		.gpu_kind = kind->gpu_count == 0 ? GPU_NONE
		            : whole              ? GPU_WHOLE
		                                 : GPU_FRACTION,
		.gpu_count = (int32_t)kind->gpu_count,
		.fraction = whole ? 0 : (int32_t)kind->gpu_milli,
		.cpu_milli = kind->cpu_milli,
		.host_bytes = kind->memory_mib << 20,
		.tasks = 1,
		.min_available = 1,
		.gpu_models = kind->models,
		.node_labels = labels,
		.idempotency_key = "",
	};
	return pack_send(pack, &command, error);
}

static const struct task_order *find_start(const struct pack *pack)
{
	for (size_t i = 0; i < pack->effects.count; i++)
		if (pack->effects.at[i].kind == EFFECT_START)
			return &pack->effects.at[i].order;
	return NULL;
}

/* Lets the core decide, confirms what it starts and drops what it does not. `node` is
 * the one that the simulator chose, whose GPUs the core has chosen; -1: none. */
static bool pack_decide(struct pack *pack, const struct openb_kind *kind, int64_t node,
                        bool *started, struct error *error)
{
	int64_t job_id = pack->effects.reply_id;
	struct command command = { .kind = COMMAND_PASS, .now_ms = BEGIN_MS, .units = PASS_UNITS };

	if (!pack_send(pack, &command, error))
		return false;
	const struct task_order *order = find_start(pack);
	*started = order != NULL;
	if (!order) {
		command =
		    (struct command){ .kind = COMMAND_CANCEL, .now_ms = BEGIN_MS, .id = job_id };
		return pack_send(pack, &command, error);
	}
	if (node >= 0)
		pack_node_take(&pack->nodes[node], kind, order->parts);
	command = (struct command){ .kind = COMMAND_TASK_STARTED, .now_ms = BEGIN_MS };
	command.task.reservation_id = order->reservation_id;
	command.task.message = "";
	return pack_send(pack, &command, error);
}

/* The node, where the simulator chooses it; -1: none fits. */
static int64_t choose_node(struct pack *pack, int32_t number)
{
	return pack->policy->choice == CHOICE_GRADIENT
	           ? gradient_choose(&pack->gradient, (size_t)number, pack->nodes)
	           : draw_node(pack, &pack->openb->kinds[number]);
}

/* One pod of that kind: whether it was started. */
static bool arrive(struct pack *pack, int32_t number, bool *started, struct error *error)
{
	const struct openb_kind *kind = &pack->openb->kinds[number];
	bool chooses = pack->policy->choice != CHOICE_OF_CORE;
	int64_t node = chooses ? choose_node(pack, number) : -1;
	char label[256] = "";

	*started = false;
	if (chooses && node < 0)
		return true;
	if (node >= 0)
		label_of(&pack->openb->nodes[node], label, sizeof(label));
	return pack_submit(pack, kind, label, error) &&
	       pack_decide(pack, kind, node, started, error);
}

static void shuffle(int32_t *pods, size_t count, uint64_t *random)
{
	for (size_t i = count; i > 1; i--) {
		size_t other = (size_t)random_below(random, i);
		int32_t pod = pods[i - 1];
		pods[i - 1] = pods[other];
		pods[other] = pod;
	}
}

static bool pack_perform(struct pack *pack, const int32_t *pods, uint64_t *random,
                         struct pack_result *result, void (*tick)(void *context, int percent),
                         void *context, struct error *error)
{
	const struct openb *openb = pack->openb;
	int64_t asked = 0, allocated = 0;
	int percent = 0;

	for (size_t i = 0; percent < PACK_ARRIVED; i++) {
		int32_t number = i < openb->pod_count
		                     ? pods[i]
		                     : openb->pods[random_below(random, openb->pod_count)];
		const struct openb_kind *kind = &openb->kinds[number];
		bool started;
		if (!arrive(pack, number, &started, error))
			return false;
		asked += openb_asks(kind);
		allocated += started ? openb_asks(kind) : 0;
		result->arrived[number]++;
		result->rejected[number] += !started;
		while (percent < PACK_ARRIVED && asked * 100 >= openb->gpu_milli * (percent + 1)) {
			result->allocated[++percent] = allocated;
			if (tick)
				tick(context, percent);
		}
	}
	return true;
}

bool pack_run(const struct openb *openb, const struct pack_policy *policy, uint64_t seed,
              struct pack_result *result, void (*tick)(void *context, int percent), void *context,
              struct error *error)
{
	uint64_t random = seed;
	struct pack pack = { .openb = openb, .policy = policy, .random = ~seed };
	int32_t *pods = memory_alloc(openb->pod_count * sizeof(*pods));

	memcpy(pods, openb->pods, openb->pod_count * sizeof(*pods));
	shuffle(pods, openb->pod_count, &random);
	bool fine = pack_begin(&pack, error) &&
	            pack_perform(&pack, pods, &random, result, tick, context, error);
	free(pods);
	free(pack.nodes);
	gradient_free(&pack.gradient);
	effects_free(&pack.effects);
	sched_free(pack.sched);
	return fine;
}
