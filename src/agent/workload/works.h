/* works.h - the tasks and slots on this node as processes: started, watched, ended */
#ifndef AGENT_WORKLOAD_WORKS_H
#define AGENT_WORKLOAD_WORKS_H

#include <uv.h>

#include "agent/gpu/gpu_source.h"
#include "agent/host/cgroup.h"
#include "agent/uplink/envelope.h"
#include "agent/workload/run.h"
#include "node/node.h"

/* In the loop's thread alone. What happens to works is told by `event`, never from within a
 * call. */
struct works;

struct works_settings {
	uv_loop_t *loop;
	const char *state_directory;
	const char *keeper; /* the program gpu-keeper */
	const struct cgroups *cgroups;
	struct gpu_source *source;
	struct run_settings run;
	void (*event)(void *context, enum input_kind kind, const struct work_event *event);
	void *context;
};

struct works *works_new(const struct works_settings *settings);
/* For tasks from now on, as in struct run_settings. The text lives as long as the works do. */
void works_use_container_runtime(struct works *works, const char *runtime);
/* Whether tasks may name their user from now on, as in struct run_settings. */
void works_trust_users(struct works *works, bool trusted);
/* Stops watching works; they keep running. */
void works_free(struct works *works);

/* What is there of works that an earlier agent started: for INPUT_RESTART. Freed by the
 * caller, texts are constant. */
struct found *works_found(struct works *works, int64_t *count);
/* Watches one of them from now on; its order is copied. */
void works_adopt(struct works *works, const struct node_order *order, const struct kept_work *kept);
/* What is left of works that nobody knows any more is removed. */
void works_sweep(struct works *works);

/* Queued: the loop starts works between its other duties. The order is copied. */
void works_start(struct works *works, const struct node_order *order);
void works_notice(struct works *works, int64_t reservation_id);
void works_freeze(struct works *works, int64_t reservation_id);
void works_kill(struct works *works, int64_t reservation_id);
/* Moves its GPU memory to host memory, of which it may have `host_bytes` of the order in all, and
 * freezes it; and back. */
void works_suspend(struct works *works, const struct node_order *order);
void works_resume(struct works *works, const struct node_order *order);
/* A child of the agent has ended, with a status as of waitpid(). */
void works_child_ended(struct works *works, pid_t pid, int status);
void works_warn(struct works *works, int64_t reservation_id, const char *message);
/* Says to those with shares of compute that more processes use their GPU than they said. */
void works_count_clients(struct works *works, const struct measured *measured);
/* Whether any is on the GPU; and says something to all of those. */
bool works_use_gpu(const struct works *works, const char *uuid);
void works_warn_all(struct works *works, const char *uuid, const char *message);
/* It has ended and was reported: forgets everything but its output. */
void works_erase(struct works *works, int64_t reservation_id);

/* Who is on GPUs, for simulated ones. Appends struct gpu_user; texts live until the next
 * change of works. */
void works_users(const struct works *works, struct buffer *users);
/* What the guards of works say, and (in `processes`, as they were measured) who is on a GPU
 * without the guard that he should have. Appends struct guard_reading and struct
 * hidden_reading. */
void works_guards(const struct works *works, struct process_reading *processes,
                  size_t process_count, struct buffer *guards, struct buffer *hidden);
/* Looks for checkpoints that were written. */
void works_look(struct works *works);

/* Where a slot listens and is asked whether it is ready. False: it is no slot here. */
struct works_slot {
	int64_t port;     /* of the server */
	bool own_network; /* where it alone can listen */
	int64_t public_port;
	const char *key, *client_key; /* to be asked there; NULL: none is needed */
	const char *certificate;      /* its SHA-256, for who speaks TLS there; NULL: nobody can */
	bool tls_only;
	const char *health_path;
	int32_t runtime;     /* enum runtime */
	struct cgroup group; /* its processes; belongs to the works */
};
bool works_slot(const struct works *works, int64_t reservation_id, struct works_slot *slot);

/* Leases on the slot have keys of their own: an older agent may have started it without. */
bool works_has_lease_keys(const struct works *works, int64_t reservation_id);
/* `taken` is called for each key that holds now, or (with a reason) does not. */
struct told_leases;
void works_take_leases(struct works *works, const struct told_leases *leases,
                       void (*taken)(void *context, int64_t lease_id, const char *reason),
                       void *context);

/* Appends struct work_keeper, for works_owner. */
#define POD_UID_SIZE 64
struct work_keeper {
	int64_t reservation_id, keeper;
	char pod[POD_UID_SIZE]; /* uid of the pod that it is; "" : it is none */
};
void works_keepers(const struct works *works, struct buffer *keepers);
/* In any thread: whose process that is; 0: nobody's. */
int64_t works_owner(const struct cgroups *cgroups, const struct buffer *keepers, pid_t pid);

/* Where the output of a task is: of this reservation, or (0) of its last start here. NULL: not
 * here. To be freed. */
char *works_output_directory(const char *state_directory, int64_t reservation_id, int64_t job_id,
                             int64_t task);
/* Where the FIFO of a work's standard input is, and the offset up to which the agent has written
 * to it: see keeper/input.h. To be freed. */
char *works_input_path(const struct works *works, int64_t reservation_id);
char *works_input_offset_path(const struct works *works, int64_t reservation_id);
/* Where the keeper of a work takes sessions; to be freed. */
char *works_session_path(const struct works *works, int64_t reservation_id);
/* The command of a new session of a task, as its keeper takes it; in the arena, and to be wiped. */
bool works_session_command(const struct works *works, const struct session_open *open,
                           struct arena *arena, struct spec *command, struct error *error);
/* True if that is of a work that may write more. */
bool works_is_writing(const struct works *works, int64_t reservation_id, int64_t job_id,
                      int64_t task);
/* Removes the outputs that were last written longest ago, beyond these limits: in a thread, and
 * not what was made in the last minute. */
void works_trim_outputs(struct works *works, int64_t most_bytes, int64_t most_age_s);

#endif
