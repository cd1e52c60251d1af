/* legacy_local.h - what the files of legacy share */
#ifndef API_SESSION_LEGACY_LOCAL_H
#define API_SESSION_LEGACY_LOCAL_H

#include "api/session/agents_local.h"

enum work_state { WORK_QUEUED, WORK_SENT, WORK_RUNNING };

struct legacy_part {
	char *uuid;
	int64_t memory_mib;
};

/* Something that the scheduler wants run there. */
struct legacy_work {
	int64_t reservation_id, job_id;
	enum work_state state;
	bool stopping;
	struct legacy_part parts[PARTS_MAX];
	int64_t part_count;
	struct buffer assignment; /* a packed JobAssignmentResponse; empty: handed out before */
};

struct legacy_device {
	char *uuid, *model;
	int64_t place, capacity_mib;
};

/* Speaks for a node whose agent knows only the older calls: holds its half of the
 * conversation that src/node's agent would hold. It is in this process, so nothing is lost
 * on the way and changes need not be sent again. */
struct legacy {
	struct agents_node *node;
	char boot[32];
	int64_t connection, change, acknowledged;
	bool open; /* welcomed, and not refused since */
	int64_t cpu_milli, host_bytes;
	struct legacy_device *devices;
	int64_t device_count;
	struct legacy_work **works;
	size_t work_count, work_capacity;
	struct request *registering; /* waits for the snapshot to be durable */
	struct request *assignments; /* the stream of ReceiveJobAssignment; NULL: none */
};

/* legacy.c */
/* Begins a connection on the node's behalf; the snapshot follows by itself. */
void legacy_connect(struct legacy *legacy);
/* A change of the node, numbered. */
void legacy_change(struct legacy *legacy, struct change change);
struct legacy_work *legacy_find(const struct legacy *legacy, const char *id);
void legacy_forget(struct legacy *legacy, struct legacy_work *work);
/* It ended, and its memory is taken to be back. Forgets it. */
void legacy_ended(struct legacy *legacy, struct legacy_work *work, int64_t exit_code,
                  const char *message);
void legacy_beat(struct legacy *legacy, Agent__GPUMetrics *const *metrics, size_t count);

/* legacy_call.c */
/* The call of RegisterAgent that waits, if there is one. It is the caller's to end. */
struct request *legacy_end_registering(struct legacy *legacy);
/* Ends one of the two streams. */
void legacy_end_stream(struct request *request, enum grpc_status status, const char *text);

/* legacy_work.c */
void legacy_order(struct legacy *legacy, const struct node_order *order);
/* Hands out what waits, as far as somebody takes it. */
void legacy_hand_out(struct legacy *legacy);
/* The agent reports on a job that it does not have: noted where another node has it. */
void legacy_not_here(struct legacy *legacy, const char *job);
/* Works that run there according to the ledger, from before this scheduler started. */
void legacy_adopt(struct legacy *legacy);

#endif
