/* agent.h - a node with GPUs, processes and a connection: everything around src/node */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/gpu/gpu_source.h"
#include "agent/kubelet/driver.h"
#include "agent/workload/run.h"
#include "node/node.h"
#include "uplink/uplink.h"

/* Texts live as long as the agent. */
struct agent_settings {
	struct node_identity identity; /* boot, CPU and memory: as the machine says where empty */
	struct node_policy policy;
	bool own_beat, own_figures; /* its times are the administrator's, not the scheduler's */
	struct run_settings run;
	struct uplink_settings link; /* without loop and callbacks */
	const char *state_directory;
	bool trust_open_scheduler; /* tasks may name their user although nobody signs in there */
	int64_t pids_total;        /* processes of all tasks together; 0: not limited */
	const char *cgroup_parent; /* NULL: chosen; "none": no cgroups */
	const char *keeper;        /* the program gpu-keeper */
	const char *mps_control;   /* the control program of MPS; NULL: no shares of compute */
	int64_t mps_memory_mib;    /* of each GPU, that is kept free for a server of MPS */
	int64_t output_total_bytes, output_age_s; /* of finished tasks */
	struct driver_settings driver;            /* of a node of Kubernetes */
};

struct agent;

/* Loads what was kept, finds what runs, and begins. The source becomes the agent's. NULL with a
 * reason. */
struct agent *agent_new(uv_loop_t *loop, const struct agent_settings *settings,
                        struct gpu_source *source, struct error *error);
/* Stops. Tasks keep running without it. The loop then has nothing left to do, and ends. */
void agent_free(struct agent *agent);

/* For those who watch. */
const struct local_node *agent_node(const struct agent *agent);

#endif
