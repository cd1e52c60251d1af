/* chaos_cluster.c - a random cluster, and how patient its agents and scheduler are */
#include <stdio.h>
#include <string.h>

#include "sim/chaos/chaos_world.h"

static struct chaos_gpu *chaos_cluster_add_gpu(struct chaos_node *node, int at,
                                               int64_t capacity_mib, uint64_t *random)
{
	struct chaos_gpu *gpu = &node->gpus[node->gpu_count];

	*gpu = (struct chaos_gpu){ .capacity_mib = capacity_mib,
		                   .overhead_mib = chance(random, 80) ? 500 : 0,
		                   .standing_mib = chance(random, 20) ? 300 : 0 };
	snprintf(gpu->uuid, sizeof(gpu->uuid), "gpu-%d-%d", at, node->gpu_count++);
	return gpu;
}

/* A parent, which has nothing to give, and what it is cut into. */
static void add_mig(struct chaos_node *node, int at, int64_t capacity_mib, uint64_t *random)
{
	struct chaos_gpu *parent = chaos_cluster_add_gpu(node, at, capacity_mib, random);
	int64_t instances = between(random, 1, 3);

	parent->mig_mode = true;
	parent->standing_mib = 0;
	for (int64_t i = 0; i < instances; i++) {
		struct chaos_gpu *gpu =
		    chaos_cluster_add_gpu(node, at, capacity_mib / instances, random);
		memcpy(gpu->parent, parent->uuid, sizeof(gpu->parent));
		gpu->overhead_mib = 100;
	}
}

static void build(struct chaos *chaos, int at)
{
	static const int64_t capacities[] = { 10000, 10000, 16384, 40960, 81559 };
	static const char *const models[] = { "H100", "H100", "A100" };
	struct chaos_node *node = &chaos->nodes[at];
	uint64_t *random = &chaos->random;
	int64_t capacity_mib = ONE_OF(random, capacities);
	int64_t gpus = between(random, 1, chance(random, 70) ? 2 : 4);

	snprintf(node->name, sizeof(node->name), "node-%d", at);
	snprintf(node->boot, sizeof(node->boot), "boot-%d-0", at);
	snprintf(node->rack, sizeof(node->rack), "rack-%lld", (long long)between(random, 0, 1));
	node->gpu_model = ONE_OF(random, models);
	node->host_bytes = INT64_C(1) << between(random, 33, 38);
	node->labels = chance(random, 30)   ? "disk=ssd\n" NODE_COMPUTE_SHARES "=mps"
	               : chance(random, 50) ? NODE_COMPUTE_SHARES "=mps"
	                                    : "";
	for (int64_t i = 0; i < gpus && node->gpu_count + 4 < CHAOS_GPUS; i++) {
		if (chance(random, 15))
			add_mig(node, at, capacity_mib, random);
		else
			chaos_cluster_add_gpu(node, at, capacity_mib, random)->nvlink_group =
			    chance(random, 50) ? 1 : 0;
	}
	for (int i = 0; i < node->gpu_count; i++)
		node->gpus[i].seen_ms = chaos->now_ms;
	node->clock_ms = between(random, 0, 1000000);
	chaos_later(chaos, between(random, 1, 3000),
	            (struct chaos_event){ .kind = HAPPEN_AGENT_UP, .node = at });
	chaos->result->gpus += node->gpu_count;
}

void cluster_init(struct chaos *chaos)
{
	chaos->node_count = (int)between(&chaos->random, 1, chance(&chaos->random, 70) ? 4 : 8);
	for (int i = 0; i < chaos->node_count; i++)
		build(chaos, i);
	chaos->result->nodes = chaos->node_count;
}

/* Nodes are reached by their names here, and by nothing else. */
static const struct address_rules own_names = { NULL, 0, NULL };

void cluster_policies(struct chaos *chaos)
{
	uint64_t *random = &chaos->random;

	chaos->node_policy = node_policy_default();
	chaos->session_policy = session_policy_default();
	chaos->session_policy.addresses = &own_names;
	chaos->exact = chance(random, 60);
	if (chaos->exact) {
		chaos->node_policy.release_tolerance_mib = 0;
		/* longer than any run of this program */
		chaos->node_policy.release_settle_ms = INT64_C(100) * 24 * 3600 * 1000;
	}
	if (chance(random, 30)) {
		chaos->node_policy.overuse = OVERUSE_STOP;
		chaos->node_policy.overuse_tolerance_mib = 100;
	}
	if (chance(random, 50)) { /* quick to give up, so that it happens more often */
		chaos->session_policy.silent_ms = 4000;
		chaos->session_policy.lease_ms = 8000;
		chaos->session_policy.grace_ms = 10000;
		chaos->session_policy.standing_ms = 3000;
	}
	if (chance(random, 70)) /* most orders wait for others */
		chaos->session_policy.starts_max = between(random, 1, 4);
	chaos->session_policy.margin_ms = 200; /* clocks run evenly here, and kills are quick */
	if (!chaos->exact)                     /* as real ones do */
		chaos->node_policy.acknowledge_ms = chaos->session_policy.acknowledge_ms = 50;
}

struct config_record cluster_config(struct chaos *chaos)
{
	struct config_record config = config_default();
	uint64_t *random = &chaos->random;

	config.policy = (int32_t)between(random, 0, POLICY_COUNT - 1);
	config.enable_preemption = chance(random, 60);
	config.enable_consolidation = chance(random, 50);
	config.enable_backfill = chance(random, 70);
	config.move_any_job = chance(random, 30);
	config.gang_grace_ms = between(random, 5, 60) * 1000;
	config.release_timeout_ms = between(random, 5, 60) * 1000;
	config.grace_ms = between(random, 1, 10) * 1000;
	config.refuse_backoff_ms = 1000;
	config.retention_ms = chance(random, 50) ? 900000 : 3600000;
	config.time_sharing = chance(random, 30)
	                          ? (int32_t)between(random, 1, SHARING_PREDICTED_SERVICE)
	                          : SHARING_OFF;
	config.sharing_wait_ms = between(random, 10, 600) * 1000;
	config.sharing_turn_ms = between(random, 0, 60) * 1000;
	config.suspend = chance(random, 60) ? SUSPEND_ALWAYS : SUSPEND_AUTO;
	config.suspend_host = between(random, 0, 10) * 100;
	config.sharing_mixed = chaos->mixed = chance(random, 30);
	config.suspend_wait_ms = between(random, 1, 120) * 1000;
	config.sharing_delay_ms = chance(random, 50) ? 0 : between(random, 1, 20) * 1000;
	config.foreign_tolerance_mib = 500; /* more than what always stands on GPUs here */
	return config;
}
