/* walk.h - the real nodes and the real core in a world where everything fails */
#ifndef NODE_TEST_WALK_H
#define NODE_TEST_WALK_H

#include "core/sched.h"
#include "core/test/property_keeper.h"
#include "core/test/property_random.h"
#include "node/node.h"
#include "node/session.h"

#define WALK_NODES 3
#define WALK_GPUS 2
#define WALK_JOBS 4096

enum walk_event_kind {
	WALK_TO_AGENT, /* a message arrives */
	WALK_TO_SERVER,
	WALK_MEASURE, /* a measurement is made and told */
	WALK_CONNECT, /* a way to the scheduler is found */
	WALK_AGENT_TICK,
	WALK_AGENT_UP,
	WALK_SERVER_TICK,
	WALK_SERVER_UP,
	WALK_SERVER_COMMIT, /* what was decided is stored, and told */
	WALK_RUN_BEGUN,     /* the first process runs */
	WALK_RUN_ENDS,      /* it ends by itself */
	WALK_RUN_DIES,      /* it was told to, or killed */
	WALK_RUN_GONE,      /* nothing of it is left but memory */
	WALK_RUN_BACK,      /* which comes back now */
	WALK_RUN_READY,
	WALK_WORKLOAD, /* somebody wants something */
	WALK_FAULT,    /* something breaks */
};

struct walk_event {
	int64_t at_ms, number;
	enum walk_event_kind kind;
	int node;
	int64_t life; /* of the agent or server it is for */
	int64_t id;   /* of a run, or of what was asked */
	void *data;
	size_t size;
};

/* Something that a node really runs, or ran. */
struct run {
	int64_t reservation_id, job_id, task;
	int node;
	bool slot;
	int64_t used_mib[WALK_GPUS], reserved_mib[WALK_GPUS];
	bool begun, alive, exited, holds_memory;
	bool told;     /* to end, or killed: whatever comes is not its own end */
	bool stubborn; /* it ignores notices */
	int64_t exit_code;
	bool lease_stop;
	bool lease_lost; /* lease_stop: its node's lease was over while the node had it */
	int64_t grace_ms;
	bool traced; /* the node can still say how it ended */
};

struct walk_row {
	int64_t key;
	void *data;
	size_t size;
};

struct walk_node {
	struct local_node *agent; /* NULL: it is down */
	char name[16], boot[16];
	int64_t boots, life, asked, lease_until_ms;
	int64_t standing_mib[WALK_GPUS]; /* memory that no process ever explains */
	int64_t stranger_mib[WALK_GPUS];
	char uuid[WALK_GPUS][24];
	int gpu_count;
	bool powered, hangs;
	struct walk_row *rows;
	size_t row_count, row_capacity;
};

/* What one command led to, not stored yet, and the change of a node that it is from. */
struct walk_batch {
	struct effects effects;
	int node;
	int64_t connection, change; /* change 0: there is nothing to acknowledge */
	struct error refusal;       /* of a report */
};

struct walk_server {
	struct sched *sched; /* NULL: it is down */
	int64_t life;
	struct keeper keeper; /* what is stored */
	struct session *sessions[WALK_NODES];
	struct walk_batch **batches; /* in their order */
	size_t batch_count, batch_capacity;
	struct session_policy policy;
	bool wants_pass;
	int64_t next_pass_ms;
};

struct walk {
	uint64_t random;
	int64_t now_ms, last_event;
	bool faults, verbose;
	struct walk_event **events; /* a heap by (at_ms, number) */
	size_t event_count, event_capacity;
	struct walk_node nodes[WALK_NODES];
	struct walk_server server;
	struct run **runs;
	size_t run_count, run_capacity;
	bool ended_itself[WALK_JOBS]; /* a run of this job's only task ended by itself */
	bool keeps[WALK_JOBS];        /* the job stays where it is when its node is lost */
	int64_t jobs, starts, releases, ends, crashes, lost_messages;
	int64_t tenant_id, model_id;
};

void walk_init(struct walk *walk, uint64_t seed);
void walk_free(struct walk *walk);
/* So many events with faults, then none and until everything is done. */
void walk_go(struct walk *walk, int64_t steps);

/* Shared by the files of the walk. */
void walk_later(struct walk *walk, int64_t wait_ms, struct walk_event event);
/* True in so many of a thousand cases, while there are faults. */
bool walk_fails(struct walk *walk, int in_thousand);
void walk_send(struct walk *walk, enum walk_event_kind to, int node, const void *data, size_t size);

/* walk_machine.c: nodes as they really are, and their agents. */
void machine_init(struct walk *walk, int at);
void machine_free(struct walk_node *node);
void machine_event(struct walk *walk, const struct walk_event *event);
void machine_fault(struct walk *walk, int at);
/* Tells the agent, if it listens, and does what it says. */
void machine_apply(struct walk *walk, int at, struct input input);
void machine_mend(struct walk *walk, int at);

/* walk_run.c: what really runs. */
#define WALK_CAPACITY_MIB 10000
#define WALK_OVERHEAD_MIB 500
struct run *run_of(const struct walk *walk, int at, int64_t reservation_id);
int64_t run_in_use_mib(const struct walk *walk, int at, int gpu);
/* Panics if it does not fit, or runs already. */
void run_start(struct walk *walk, int at, const struct node_order *order);
/* Notice, or kill. */
void run_tell(struct walk *walk, int at, int64_t reservation_id, bool kill);
void run_event(struct walk *walk, const struct walk_event *event);
/* Kills what must not outlive a lease, whoever lives. */
void run_guard(struct walk *walk);

/* walk_server.c: the core, its store, and sessions. */
void server_init(struct walk *walk);
void server_free(struct walk_server *server);
void server_event(struct walk *walk, const struct walk_event *event);
void server_crash(struct walk *walk);
/* Its reply; 0: it was refused, or nobody is there to ask, or it has none. */
int64_t server_apply(struct walk *walk, struct command *command);
/* Whether every job is over and nothing is reserved any more. */
int64_t server_waiting(const struct walk *walk); /* jobs that are not over */
void server_print(const struct walk *walk);
bool server_is_done(const struct walk *walk);

#endif
