/* mps.h - daemons of MPS, which divide a GPU's compute among the tasks that share it */
#ifndef AGENT_WORKLOAD_MPS_H
#define AGENT_WORKLOAD_MPS_H

#include "agent/gpu/gpu_source.h"
#include "base/error.h"

/* One daemon for each GPU that is shared by compute, and one server below it: servers on one GPU
 * would take turns, and a percentage of a server's turn is less than that of the GPU. A daemon
 * serves the tasks of one tenant (of several where the scheduler places them there together), and
 * ends some seconds after its last task, so that the next tenant gets another. Daemons survive
 * the agent, as tasks do.
 *
 * Its directories are below one that users can pass through and not list, under a name that
 * nobody can guess: a task finds the daemon by its environment alone.
 *
 * In the loop's thread alone, but for mps_account(). */
struct mps;

struct mps_settings {
	const char *program; /* nvidia-cuda-mps-control */
	const char *label;   /* the agent's name among all of the machine */
	int64_t memory_mib;  /* of each GPU, that is kept free for a server */
};

/* Finds the daemons that an earlier agent started. Texts are copied. */
struct mps *mps_new(const struct mps_settings *settings);
/* The daemons stay. */
void mps_free(struct mps *mps);

/* The directory by which clients of this tenant find the daemon of the GPU, which is started where
 * there is none. It lives until the next call. NULL with a reason. */
const char *mps_join(struct mps *mps, const char *uuid, int64_t sharer, struct error *error);

/* What happened to the daemon of a GPU. */
enum mps_event {
	MPS_RESTARTED, /* it had died, and its clients with it */
	MPS_FAULT,     /* an error of a client ended all clients of the server */
};

/* Called about once a second. `in_use` says whether a task is there that may be a client: a
 * daemon without any is ended, and one that died is started again for the others. */
void mps_look(struct mps *mps, int64_t now_ms, bool (*in_use)(void *context, const char *uuid),
              void (*event)(void *context, const char *uuid, enum mps_event event), void *context);

/* Counts the memory that is kept for servers as overhead of each GPU, and not as used by the
 * server. In any thread. */
void mps_account(const struct mps *mps, struct gpu_readings *readings);

#endif
