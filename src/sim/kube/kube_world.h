/* kube_world.h - the inside of a run with an API server that fails: what its files share */
#ifndef SIM_KUBE_KUBE_WORLD_H
#define SIM_KUBE_KUBE_WORLD_H

#include "base/map.h"
#include "base/memory.h"
#include "base/number.h"
#include "core/sched.h"
#include "pods/pods.h"
#include "sim/kube/kube_chaos.h"
#include "sim/world/world.h"
#include "json/member.h"

#define KUBE_NODES 6
#define KUBE_GPUS 4
#define KUBE_OBJECTS 512
#define KUBE_WORKLOADS 48
#define KUBE_MEMBERS 4
#define KUBE_SNAPSHOTS 8

enum kube_resource { KUBE_NAMESPACES, KUBE_NODES_RESOURCE, KUBE_PODS, KUBE_RESOURCES };
extern const char *const kube_paths[KUBE_RESOURCES];

enum kube_event_kind {
	HAPPEN_WATCH,  /* a GET of a reflector arrives */
	HAPPEN_STREAM, /* bytes of its answer arrive */
	HAPPEN_WRITE,  /* a write arrives */
	HAPPEN_ANSWER, /* and its answer */
	HAPPEN_LEADER_TICK,
	HAPPEN_LEADER_UP,
	HAPPEN_LEADER_COMMIT,
	HAPPEN_LEADER_TELL,
	HAPPEN_LEADER_STOPS,
	HAPPEN_KUBELET,
	HAPPEN_CONTROLLERS,
	HAPPEN_PEOPLE,
	HAPPEN_BREAK,
};

struct kube_event {
	int64_t at_ms, number;
	enum kube_event_kind kind;
	int64_t leader; /* its id */
	int at;         /* of what is followed, or of a node */
	int64_t call;
	struct kube_request *request;
};

/* A write on its way, and then its answer. */
struct kube_request {
	struct write *write;
	char *method, *path, *body;
	int64_t leader;
	int status;
	int64_t retry_after_s;
	char *answer;
};

/* An object as it is, or was: never changed, only replaced. */
struct kube_change {
	int64_t version;
	enum kube_resource resource;
	const char *type; /* "ADDED", ... */
	json_t *object;
};

struct kube_snapshot {
	int64_t version;
	json_t *objects[KUBE_RESOURCES]; /* arrays */
};

struct kube_api {
	json_t *objects[KUBE_RESOURCES]; /* by "namespace/name" */
	struct kube_change *changes;
	size_t change_count, change_capacity;
	int64_t version, oldest; /* what can be continued from */
	int64_t last_uid, down_until_ms;
	struct kube_snapshot snapshots[KUBE_SNAPSHOTS];
	size_t snapshot_count;
	struct kube_snapshot page; /* of the last list in pages */
	bool no_watch_lists;       /* an older server */
	int64_t rolled_back_ms;    /* 0: never */
	char refused[192];         /* the pod that an admission webhook does not let bind */
	int64_t refused_until_ms;
};

/* A resource that a scheduler follows. */
struct kube_follow {
	struct kube_leader *leader;
	struct reflector reflector;
	int64_t call; /* 0: none is under way */
	int64_t retry_ms;
	bool open, streaming;
	size_t change;         /* watches: the next of the API server's changes */
	int64_t after_version; /* watches: versions up to it are not told */
	int64_t silent_until_ms;
	struct buffer bytes;
	size_t sent;
	bool ends; /* when all bytes have come */
};

struct kube_batch {
	struct effects effects;
	struct error refusal;
	int64_t ticket;
};

struct kube_leader {
	struct kube *kube;
	int64_t id, term;
	struct sched *sched;
	struct pods *pods;
	struct kube_follow follows[KUBE_RESOURCES];
	struct kube_batch **batches; /* the first `stored` are durable */
	size_t batch_count, batch_capacity, stored;
	bool committing, telling, wants_pass, leads;
	int64_t next_pass_ms;
};

/* A pod's container, as it really runs. */
struct kube_run {
	char uid[24], name[64], job[48];
	char gpus[KUBE_GPUS][24];
	int64_t mib[KUBE_GPUS];
	int gpu_count; /* named; 0: the kubelet gives `whole` of them */
	int64_t whole;
	int64_t ends_ms, kill_ms; /* kill_ms 0: nobody told it to */
	bool ended;
};

struct kube_machine {
	char name[24], uid[24];
	int gpu_count;
	int64_t memory_mib; /* of each */
	bool shared;        /* it names its GPUs, and parts of them are given */
	bool off, hangs, removed;
	int64_t back_ms, heard_ms; /* heard: when it last said that it is ready */
	struct kube_run *runs[64];
	int run_count;
};

/* Pods that a controller makes again until each has succeeded. */
struct kube_workload {
	char name[40], uid[24];
	int members;
	bool gang, same_names, removed;
	bool done[KUBE_MEMBERS];
	int made[KUBE_MEMBERS];
	int64_t gpus, mib, fraction; /* gpus 0: CPU alone */
	int64_t cpu_milli, takes_ms, half_ms;
};

struct kube {
	uint64_t random, dice[KUBE_CLASSES];
	int rate[KUBE_CLASSES];
	int64_t now_ms, last_event, steps, last_call, last_leader;
	bool faults, verbose;
	int64_t quiet_ms;
	struct chaos_result *result;
	struct kube_event **events;
	size_t event_count, event_capacity;
	struct kube_api api;
	struct kube_machine machines[KUBE_NODES];
	int machine_count;
	struct world store;
	struct kube_leader *leaders[2]; /* the second has been taken over from */
	struct kube_workload workloads[KUBE_WORKLOADS];
	int workload_count, workload_max;
	int64_t others;           /* pods of another scheduler that were ever made */
	struct text_map doubtful; /* uids that a set-back of the store left in disorder */
	struct text_map forced;   /* uids of pods that were deleted by force */
	bool enough;              /* people want nothing more */
};

static inline int64_t kube_between(uint64_t *random, int64_t low, int64_t high)
{
	return low + (int64_t)random_below(random, (uint64_t)(high - low + 1));
}
static inline bool kube_chance(uint64_t *random, int percent)
{
	return (int)random_below(random, 100) < percent;
}

/* kube_chaos.c: time, and what breaks. */
void kube_later(struct kube *kube, int64_t wait_ms, struct kube_event event);
/* True in `in_thousand` of 1,000 cases, while there are such faults. */
bool kube_fails(struct kube *kube, enum kube_class class, int in_thousand);
void kube_note(struct kube *kube, const char *format, ...) __attribute__((format(printf, 2, 3)));
void kube_broken(struct kube *kube, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* kube_api.c: the API server. */
void api_init(struct kube *kube);
void api_free(struct kube *kube);
bool api_is_down(const struct kube *kube);
/* NULL: there is none. */
json_t *api_get(const struct kube *kube, enum kube_resource resource, const char *key);
/* Takes the object over, in place of the one of its name. */
void api_put(struct kube *kube, enum kube_resource resource, json_t *object);
void api_delete(struct kube *kube, enum kube_resource resource, const char *key);
/* As people and kubelets do: with a grace for what runs, or by force. */
void api_delete_pod(struct kube *kube, const char *key, bool by_force);
char *api_new_uid(struct kube *kube, char *uid, size_t size);
void api_restart(struct kube *kube, int64_t down_ms);
void api_roll_back(struct kube *kube);
/* It may be set back to how it is now. */
void api_snapshot(struct kube *kube);
void api_forget(struct kube *kube);
/* The status of the answer; its first bytes are those of the follow. */
int api_watch(struct kube *kube, struct kube_follow *follow, const char *path);
/* More for a watch that is open. */
void api_feed(struct kube *kube, struct kube_follow *follow);
/* Does the write, or does not, and fills in the answer. */
void api_write(struct kube *kube, struct kube_request *request);
char *pod_key(const json_t *pod, char *key, size_t size);

/* kube_leader.c: schedulers. */
void leader_init(struct kube *kube);
void leader_event(struct kube *kube, const struct kube_event *event);
void leader_crash(struct kube *kube, int place);
void leader_take_over(struct kube *kube);
void leader_command(struct kube *kube, struct command command);
void leader_free_all(struct kube *kube);
void request_free(struct kube_request *request);
/* All its connections end. */
void leader_cut(struct kube *kube, struct kube_leader *leader, int64_t wait_ms);

/* kube_machine.c: nodes and kubelets. */
void machines_init(struct kube *kube);
void machines_free(struct kube *kube);
void machine_kubelet(struct kube *kube, int at);
void machine_power(struct kube *kube, int at);
void machine_hangs(struct kube *kube, int at);
void machine_watch_over(struct kube *kube);
void machines_mend(struct kube *kube);

/* kube_people.c: workloads, their controllers, another scheduler. */
void people_init(struct kube *kube);
void people_want(struct kube *kube);
void people_controllers(struct kube *kube);
bool people_have_all(const struct kube *kube, struct buffer *missing);

/* kube_check.c: what must always hold. */
void kube_check_binding(struct kube *kube, const json_t *pod);
void kube_check(struct kube *kube);
bool kube_check_done(struct kube *kube, struct buffer *missing);

#endif
