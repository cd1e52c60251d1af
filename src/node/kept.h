/* kept.h - what an agent stores so that it can resume after a restart */
#ifndef NODE_KEPT_H
#define NODE_KEPT_H

#include "node/message.h"

/* About the node. One row, key 0. */
struct kept_node {
	const char *boot;
	int64_t term;       /* the highest seen: orders of an older one are refused */
	int64_t connection; /* the last one's number */
};

enum work_phase {
	WORK_WAITING,  /* ordered, to be checked against the next measurement; never written */
	WORK_STARTING, /* to be started, or started already: written before that is done */
	WORK_RUNNING,  /* a process of it was seen */
	WORK_STOPPING, /* given notice, or being killed */
	WORK_OVER,     /* it ended; processes may be left, or memory may not be back */
	WORK_BACK,     /* nothing is left of it; kept until its end is acknowledged */
};

/* Where the GPU memory of a running task is. */
enum work_memory {
	MEMORY_ON_GPU,
	MEMORY_LEAVING, /* it is being moved to host memory */
	MEMORY_AWAY,    /* it was moved, and measured as gone from its GPUs once `told` */
	MEMORY_COMING,  /* it is being moved back */
};

/* A task or a slot, under the reservation that is its key. `order` says what it
 * may use and is fixed. Times are by the node's clock, 0 where it is not so yet. */
struct kept_work {
	int64_t reservation_id;
	int32_t phase;          /* enum work_phase */
	bool slot;              /* else a task */
	bool unordered;         /* found running without a record: no parts, nothing it may use */
	bool ready;             /* a slot that takes requests at `address` */
	bool gone;              /* none of its processes is left */
	int32_t reason;         /* enum end_reason: from WORK_STOPPING on */
	int64_t pid, pid_start; /* of its first process, and when that started; 0: not known */
	int64_t started_ms;
	int64_t stop_ms; /* told to stop, or ended: what a release took counts from here */
	int64_t kill_ms; /* WORK_STOPPING: killed from here on */
	int64_t exit_code;
	const char *message, *address;
	int64_t ended_ms;     /* from WORK_OVER on */
	int64_t accounted_ms; /* up to then `use` has the energy */
	struct task_use use;
	int32_t memory;       /* enum work_memory */
	int64_t memory_ms;    /* since when; MEMORY_AWAY: it was told to leave then */
	int64_t copy_bytes;   /* host memory that it may have beside its own until it is back */
	int64_t paused_ms;    /* how long it was not on its GPUs, before that */
	struct rows standing; /* 1 wide, per part: MiB on its GPU that no process explains
	                         and that were there before anything of ours was */
};

extern const struct record_type kept_node_type, kept_work_type;

/* Encode appends; decode reads all of the data into the arena, or says why not.
 * What it gives is in range: phases are phases, and so on. */
void kept_node_encode(struct buffer *buffer, const struct kept_node *kept);
bool kept_node_decode(struct arena *arena, const void *data, size_t size, struct kept_node *kept,
                      struct error *error);
void kept_work_encode(struct buffer *buffer, const struct kept_work *kept,
                      const struct node_order *order);
bool kept_work_decode(struct arena *arena, const void *data, size_t size, struct kept_work *kept,
                      struct node_order *order, struct error *error);

#endif
