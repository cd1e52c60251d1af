/* chaos_world.h - the inside of a chaos run: what its files share */
#ifndef SIM_CHAOS_CHAOS_WORLD_H
#define SIM_CHAOS_CHAOS_WORLD_H

#include "base/map.h"
#include "node/node.h"
#include "node/session.h"
#include "sim/chaos/chaos.h"
#include "sim/world/world.h"

#define CHAOS_NODES 8
#define CHAOS_GPUS 12 /* of a node, MIG instances and their parents counted */
#define CHAOS_MODELS 3
#define CHAOS_TENANTS 4
#define CHAOS_TASKS 64

enum chaos_event_kind {
	HAPPEN_TO_AGENT, /* a message arrives */
	HAPPEN_TO_SERVER,
	HAPPEN_MEASURE, /* a measurement is made and told */
	HAPPEN_CONNECT, /* a way to a scheduler is found */
	HAPPEN_AGENT_TICK,
	HAPPEN_AGENT_UP,
	HAPPEN_AGENT_WAKES,
	HAPPEN_SERVER_TICK,
	HAPPEN_SERVER_UP,
	HAPPEN_SERVER_COMMIT, /* what was decided is stored */
	HAPPEN_SERVER_TELL,   /* what was stored is told */
	HAPPEN_SERVER_STOPS,  /* one that leads no more finds that out */
	HAPPEN_RUN_BEGUN,     /* the first process runs */
	HAPPEN_RUN_ENDS,      /* it ends by itself */
	HAPPEN_RUN_DIES,      /* it was told to, or killed */
	HAPPEN_RUN_GONE,      /* nothing of it is left but memory */
	HAPPEN_RUN_BACK,      /* which comes back now */
	HAPPEN_RUN_READY,
	HAPPEN_RUN_CHECKPOINT,
	HAPPEN_RUN_MOVED, /* its GPU memory is in host memory, or back; or not */
	HAPPEN_RUN_LEFT,  /* what lingered of it is gone, too */
	HAPPEN_CLIENT,    /* somebody wants something */
	HAPPEN_REQUEST,   /* a request in flight ends */
	HAPPEN_FAULT,     /* something breaks */
};

struct chaos_event {
	int64_t at_ms, number;
	enum chaos_event_kind kind;
	int node;     /* or the place of the server */
	int64_t life; /* of the agent, machine or server it is for */
	int64_t id;   /* the number of a run, a request, or of what was asked */
	int server;   /* TO_SERVER: its place */
	void *data;
	size_t size;
};

/* How moving GPU memory ended. */
enum move_end { MOVE_DONE, MOVE_REFUSED, MOVE_LOST };

/* Something that a node really runs, or ran. `alive`: it has processes. */
struct run {
	int64_t reservation_id, job_id, task;
	int64_t number, boots; /* of all runs; of its node when it started */
	int node;
	bool slot;
	char model[24];
	int64_t used_mib[CHAOS_GPUS], reserved_mib[CHAOS_GPUS];
	bool begun, alive, exited, holds_memory;
	bool told;     /* to end, or killed: whatever comes is not its own end */
	bool stubborn; /* it ignores notices */
	bool over;     /* it used more than it reserved */
	bool stuck;    /* its memory does not come back */
	bool given_up; /* an administrator was wrong about its node */
	int64_t exit_code, exited_ms, started_ms, max_runtime_ms; /* exited_ms: by its node's clock
	                                                           */
	bool lease_stop;
	bool lease_lost; /* lease_stop: its node's lease expired before it ended */
	int64_t grace_ms;
	bool traced; /* the node can still say how it ended */
	/* Its GPU memory, if it is suspended: `away`, it is in host memory, and the task is frozen.
	 */
	int64_t host_bytes, copy_bytes, copied_mib[CHAOS_GPUS];
	int64_t times; /* that it was suspended */
	bool moving, back, away;
	bool lingers; /* away: its memory is still on the GPU for a while */
	bool due;     /* it would have ended by itself while it was frozen */
	bool untold;  /* how moving it ended: its agent hung */
	enum move_end move;
};

struct chaos_gpu {
	char uuid[24], parent[24];
	int64_t capacity_mib, overhead_mib;
	int64_t standing_mib; /* memory that no process ever explains */
	int64_t stranger_mib;
	bool mig_mode; /* a parent: it has no memory to give */
	bool hot, ill;
	int64_t absent_until_ms, seen_ms; /* seen: by the last measurement that showed it */
	/* Until then measurements add so much that is not there, or miss what is. */
	int64_t wrong_until_ms, wrong_mib;
	bool hides;
	bool doubtful; /* was measured wrong, or not for long: which release memory belongs to is
	                  not certain */
	int64_t nvlink_group;
};

struct chaos_row {
	int64_t key;
	void *data;
	size_t size;
};

struct chaos_node {
	struct local_node *agent; /* NULL: it is down */
	char name[24], boot[40], rack[32];
	const char *gpu_model, *labels;
	int64_t boots, life, lease_until_ms, tick_ms, tick, clock_ms, host_bytes;
	struct chaos_gpu gpus[CHAOS_GPUS];
	int gpu_count;
	bool off, hangs;
	bool mistaken;         /* declared dead, while it lives, and not known again since */
	int server;            /* the place of the one that it talks to */
	int64_t arrives_ms[2]; /* when the last message to it, and from it, comes */
	int64_t hello;         /* the number of its last connection */
	int64_t seen_term;     /* the highest that it was welcomed with, and kept */
	struct map allowed;    /* reservations that an order of no older term told it to start */
	struct chaos_row *rows;
	size_t row_count, row_capacity;
};

/* A job that somebody wants, until it is known to be taken in. */
struct chaos_wish {
	struct submit_command submit;
	char key[32], name[40];
	int64_t depends[4], uneven[4];
	bool sent; /* and not answered yet */
};

/* What one command led to, not told yet, and the change of a node that it is from. */
struct chaos_batch {
	struct effects effects;
	int node;
	int64_t connection, change; /* change 0: there is nothing to acknowledge */
	struct error refusal;       /* of a report */
	struct chaos_wish *wish;
};

/* A scheduler. The one at place 0 is the active one; the one at place 1 was, and
 * does not know yet that it is not. */
struct chaos_server {
	struct sched *sched; /* NULL: it is down */
	int64_t life, term, clock_ms, active_ms;
	struct session *sessions[CHAOS_NODES];
	struct session *liar;         /* NULL: it is not connected */
	struct chaos_batch **batches; /* in their order; the first `stored` are durable */
	size_t batch_count, batch_capacity, stored;
	bool committing, telling; /* such an event is on its way */
	bool wants_pass;
	int64_t next_pass_ms;
};

/* A job as those who submitted it, and those who watch the machines, know it. */
struct chaos_job {
	bool known;               /* its record was stored */
	bool acknowledged;        /* and its owner told */
	bool cancelled;           /* somebody asked for that */
	bool keeps;               /* stays where it is when its node is lost */
	bool single;              /* has one task, which is not part of a split */
	bool ended_itself;        /* single: and nobody had wanted it to stop */
	bool failed;              /* a task of it really ended with an error */
	int64_t foreign_requeues; /* as its record said when it started again because of one */
	int64_t tasks, min_available;
	uint64_t ended;  /* bits: tasks that really ended with success */
	int64_t half_ms; /* since when fewer of it run than must run together; 0: not so */
};

struct chaos_request {
	int64_t id, model_id, slot_id; /* slot_id 0: it waits */
};

struct chaos {
	bool mixed; /* tenants may share the compute of a GPU */
	uint64_t random, dice[CHAOS_CLASSES];
	int rate[CHAOS_CLASSES]; /* percent of the usual */
	int64_t now_ms, wall_ms, last_event, steps;
	bool faults, verbose;
	int64_t quiet_ms; /* when the faults stopped; 0: not yet */
	bool reserving;   /* models keep slots that nobody else can have */
	bool quotas;      /* some tenants have one, which binds jobs that cannot be preempted */
	bool exact;       /* memory is charged to whom it belongs, so a release is never early */
	struct chaos_result *result;
	struct chaos_event **events; /* a heap by (at_ms, number) */
	size_t event_count, event_capacity;
	struct chaos_node nodes[CHAOS_NODES];
	int node_count;
	struct node_policy node_policy;
	struct session_policy session_policy;
	struct chaos_server servers[2];
	struct world store;
	struct run **runs;
	size_t run_count, run_capacity;
	int64_t last_run;
	struct chaos_job *jobs; /* by id */
	size_t job_capacity;
	int64_t last_job_id; /* the highest that was stored */
	struct map stopped;  /* reservations that somebody decided to stop */
	struct chaos_wish **wishes;
	size_t wish_count, wish_capacity;
	int64_t last_key, last_request;
	struct chaos_request *requests;
	size_t request_count, request_capacity;
	int64_t tenant_ids[CHAOS_TENANTS], model_ids[CHAOS_MODELS];
	int tenant_count, model_count;
	struct {
		int64_t connection, number; /* its last one, and of its last change */
	} liar;
};

/* Choices; both ends of `between` included. */
static inline int64_t between(uint64_t *random, int64_t low, int64_t high)
{
	return low + (int64_t)random_below(random, (uint64_t)(high - low + 1));
}
static inline bool chance(uint64_t *random, int percent)
{
	return (int)random_below(random, 100) < percent;
}
#define ONE_OF(random, array) ((array)[random_below((random), sizeof(array) / sizeof((array)[0]))])

/* chaos.c: time, the network, and what breaks. */
void chaos_later(struct chaos *chaos, int64_t wait_ms, struct chaos_event event);
/* True in `in_thousand` of 1,000 cases, while there are such faults. */
bool chaos_fails(struct chaos *chaos, enum chaos_class class, int in_thousand);
void chaos_send(struct chaos *chaos, enum chaos_event_kind to, int node, int server,
                const void *data, size_t size);
/* Remembers, for whoever looks at a failure. */
void chaos_note(struct chaos *chaos, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An invariant does not hold: the first that does not ends the run after this step. */
void chaos_broken(struct chaos *chaos, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool chaos_is_broken(const struct chaos *chaos)
{
	return chaos->result->invariant[0] != 0;
}

/* chaos_cluster.c: what there is. */
void cluster_init(struct chaos *chaos);
void cluster_policies(struct chaos *chaos);
struct config_record cluster_config(struct chaos *chaos);

/* chaos_machine.c: nodes as they really are, and their agents. */
void machine_free(struct chaos_node *node);
void machine_event(struct chaos *chaos, const struct chaos_event *event);
/* Tells the agent, if it listens, and does what it says. */
void machine_apply(struct chaos *chaos, int at, struct input input);
void machine_crash(struct chaos *chaos, int at);
void machine_hang(struct chaos *chaos, int at);
void machine_lose_power(struct chaos *chaos, int at);
void machine_mend(struct chaos *chaos, int at);
/* By the clock of its present boot. */
static inline int64_t machine_now(const struct chaos *chaos, int at)
{
	return chaos->now_ms + chaos->nodes[at].clock_ms;
}

/* chaos_measure.c: what an agent sees of its GPUs. */
void measure_machine(struct chaos *chaos, int at, int64_t number);
void measure_fault(struct chaos *chaos, int at);

/* chaos_run.c: what really runs. */
struct run *run_of(const struct chaos *chaos, int at, int64_t reservation_id);
int64_t run_in_use_mib(const struct chaos *chaos, int at, int gpu);
int run_gpu(const struct chaos_node *node, const char *uuid); /* -1: it has no such GPU */
void run_start(struct chaos *chaos, int at, const struct node_order *order);
/* Notice, or kill. */
void run_tell(struct chaos *chaos, int at, int64_t reservation_id, bool kill);
void run_event(struct chaos *chaos, const struct chaos_event *event);
/* When the next run must not outlive a lease any more; INT64_MAX: none does. */
int64_t run_guard_ms(const struct chaos *chaos);
/* Kills what must not, whoever lives. */
void run_guard(struct chaos *chaos);
/* All that ran is gone, and so is its memory; what ended before can still be told. */
void run_lose_all(struct chaos *chaos, int at);
/* Memory that was stuck is back. */
void run_mend(struct chaos *chaos);
/* Forgets those that nobody can ask about any more. */
void run_tidy(struct chaos *chaos);

/* chaos_suspend.c: GPU memory that goes to host memory and comes back. */
void run_move(struct chaos *chaos, int at, const struct node_order *order, bool back);
void run_moved(struct chaos *chaos, struct run *run);
void run_left(struct run *run);
void run_tell_move(struct chaos *chaos, struct run *run);
/* What is suspended has its host memory, and nothing starts without its own. */
void check_host(struct chaos *chaos, int at, int64_t reservation_id, int64_t bytes);

/* chaos_server.c: schedulers, what they decide, and sessions. */
void server_init(struct chaos *chaos);
void server_free(struct chaos *chaos);
void server_event(struct chaos *chaos, const struct chaos_event *event);
/* Stored, and told later, together with what else is decided until then. NULL: it is down. */
struct chaos_batch *server_decide(struct chaos *chaos, int place, struct command *command);
/* Stored and told at once; its reply. */
int64_t server_must(struct chaos *chaos, struct command command);
void server_crash(struct chaos *chaos, int place);
void server_take_over(struct chaos *chaos);
void server_give_up(struct chaos *chaos, int at);

/* chaos_liar.c: a node that nothing runs on, for it is always drained, claims what is on
 * others. */
#define LIAR "liar"
void liar_speak(struct chaos *chaos);

/* chaos_client.c: who wants what. */
void client_init(struct chaos *chaos);
void client_event(struct chaos *chaos);
void client_free(struct chaos *chaos);
/* A submission was stored; told; or will never be answered. */
void client_stored(struct chaos *chaos, const struct chaos_batch *batch);
void client_told(struct chaos *chaos, struct chaos_wish *wish, const struct effects *effects);
void client_unanswered(struct chaos_wish *wish);
struct chaos_job *client_job(const struct chaos *chaos, int64_t id); /* NULL: none is stored */

/* chaos_request.c: who asks models something. */
void request_send(struct chaos *chaos);
void request_event(struct chaos *chaos, const struct chaos_event *event);
void request_routed(struct chaos *chaos, const struct route_effect *route);
void request_forget_all(struct chaos *chaos);

/* chaos_check.c: what must always hold. */
/* Nothing starts that does not fit by what is really there, twice, or too early. */
void check_start(struct chaos *chaos, int at, const struct node_order *order);
/* All parts of the order fit by what is really there. */
void check_fit(struct chaos *chaos, int at, const struct node_order *order);
/* What is stored about jobs agrees with what really happened. */
void check_stored(struct chaos *chaos, const struct effects *effects);
/* A release is told only when nothing of it is left. */
void check_released(struct chaos *chaos, int at, int64_t reservation_id);
/* What is told as suspended has left its GPUs. */
void check_suspended(struct chaos *chaos, int at, int64_t reservation_id);
/* Once nothing fails, no order is refused because something is there that the
 * scheduler does not know of. */
void check_refused(struct chaos *chaos, int at, const struct change *change);
/* A result is forgotten only when it is stored. */
void check_forgotten(struct chaos *chaos, int at, int64_t reservation_id);
/* Notes what runs on a node whose lease has expired, before it is renewed or the work ends. */
void check_lease(struct chaos *chaos, int at);
/* After each step. */
void check_after_step(struct chaos *chaos);
/* True if everyone was served: false with what is missing, in words. */
bool check_done(struct chaos *chaos, struct buffer *missing);

#endif
