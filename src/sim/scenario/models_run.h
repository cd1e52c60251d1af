/* models_run.h - a case of models on its way: the core, and simulated runners and routers */
#ifndef SIM_SCENARIO_MODELS_RUN_H
#define SIM_SCENARIO_MODELS_RUN_H

#include "sim/scenario/models_case.h"
#include "sim/world/driver.h"

#define SPLITS_MAX PARTS_MAX
#define USERS_MAX 16

/* A model of the case, and how it was last put. */
struct sim_model {
	const char *name;
	struct model_record record; /* id 0: not put yet */
	int64_t splits[SPLITS_MAX * MODEL_SPLIT_WIDTH], users[USERS_MAX];
	char labels[256], gpu_models[1024]; /* where it is pinned to */
	enum load_answer answer;            /* to orders to load it */
	bool left;       /* the last request left it starting: it never gets ready */
	int64_t idle_ms; /* how long it is to have been idle; 0: it is not */
	int64_t wanted;  /* its minimum, until it has that many slots; 0 */
	int64_t own_min; /* the minimum that the case gives it */
};

struct sim_tenant {
	const char *name;
	int64_t id;
};

struct sim_job {
	const char *name;
	int64_t id;
};

/* What a runner has: a loaded model, or a task. */
enum instance_state { INSTANCE_STARTING, INSTANCE_READY, INSTANCE_STOPPED };
struct instance {
	int64_t id;         /* of its reservation */
	int64_t model_id;   /* 0: a task, or an orphan */
	const char *orphan; /* the model that it says it is; NULL: the core ordered it */
	int64_t job_id;
	int runner;
	enum instance_state state; /* STOPPED: its memory is not confirmed as back */
	int part_count, gpus[PARTS_MAX];
	int64_t mib[PARTS_MAX];
};

/* What a router knows of a request. */
enum request_use { USE_ASK, USE_HOLD, USE_FAIL };
enum request_state { REQUEST_WAITING, REQUEST_FLYING, REQUEST_OVER };
struct sim_request {
	int64_t id, model_id;
	enum request_use use; /* what is done when it is granted */
	enum request_state state;
	enum route_outcome outcome; /* the last that was told */
	bool told;                  /* something was */
	int64_t slot_id, lease_ms, tenant_id;
	char reason[256]; /* why it was refused, or ended */
};

/* Something that is to be told to the core next. */
enum pending_kind { PENDING_LOAD, PENDING_RELEASED, PENDING_STARTED, PENDING_DONE, PENDING_REPORT };
struct pending {
	enum pending_kind kind;
	int64_t id; /* of the reservation, the request, or the place of the runner */
};

struct models_run {
	const struct models_case *models_case;
	struct driver driver;
	struct buffer *reason; /* what is wrong, if anything is */
	struct sim_model *models;
	size_t model_count, model_capacity;
	struct sim_tenant *tenants;
	size_t tenant_count, tenant_capacity;
	struct sim_job *jobs;
	size_t job_count, job_capacity;
	struct instance *instances;
	size_t instance_count, instance_capacity;
	struct sim_request *requests;
	size_t request_count, request_capacity;
	struct pending *pending;
	size_t pending_count, pending_capacity;
	bool *silent;               /* runners that neither hear nor tell */
	int64_t *foreign_mib;       /* per GPU of all runners, in their order */
	int64_t *before_mib;        /* the ledger before the last restart */
	bool restarted, withhold;   /* withhold: unloads of this step are not confirmed */
	int64_t evicted, preempted; /* slots and tasks told to stop in this step */
	int64_t last_request, orphans;
};

/* models_run.c */
bool run_begin(struct models_run *run);
void run_free(struct models_run *run);
/* Sends a command and notes what follows from it. False, with the reason, if the
 * core refuses or does what it may not. */
bool run_send(struct models_run *run, struct command command);
/* Lets the core decide, and runners and routers answer, until nothing changes. */
bool run_settle(struct models_run *run);
/* Says why the case fails; always false, to be returned. */
bool run_fail(struct models_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void run_later(struct models_run *run, enum pending_kind kind, int64_t id);
struct sim_model *run_model(struct models_run *run, const char *name);
struct sim_model *run_model_by_id(struct models_run *run, int64_t id);
/* Like run_model(), and adds the model if there is none. */
struct sim_model *run_add_model(struct models_run *run, const char *name);
int64_t run_tenant(struct models_run *run, const char *name);
struct sim_job *run_job(struct models_run *run, const char *name);
/* Tells the core what the model is to be like. */
bool run_put_model(struct models_run *run, struct sim_model *model);

/* models_runner.c: nodes that do what they are told */
int runner_named(const struct models_run *run, const char *name);
int runner_of_node(const struct models_run *run, int64_t node_id);
/* The place of a GPU among all of the case. */
int runner_gpu_place(const struct models_run *run, int runner, int gpu);
int runner_gpu_count(const struct models_run *run);
bool runner_report(struct models_run *run, int runner, bool snapshot);
bool runner_ordered(struct models_run *run, const struct effect *effect);
/* Does what is pending about a reservation. */
bool runner_answer(struct models_run *run, struct pending pending);
struct instance *runner_find(struct models_run *run, int64_t id);
void runner_forget(struct models_run *run, int64_t id);
/* What is really on a GPU, as the runner would measure it. */
int64_t runner_used_mib(const struct models_run *run, int runner, int gpu);

/* models_router.c: requests, as routers see them */
struct sim_request *router_ask(struct models_run *run, struct sim_model *model,
                               enum request_use use, int64_t lease_ms, int64_t tenant_id);
bool router_send(struct models_run *run, int64_t request_id);
bool router_told(struct models_run *run, const struct route_effect *route);
bool router_done(struct models_run *run, int64_t request_id, enum request_end end);
struct sim_request *router_find(struct models_run *run, int64_t request_id);
/* The oldest of the model in this state that is held, or NULL. */
struct sim_request *router_oldest(struct models_run *run, const struct sim_model *model,
                                  enum request_state state);
/* After a restart: ends requests in flight, and repeats those that wait. */
bool router_again(struct models_run *run);

/* models_books.c: what the records say */
const struct slot_record *books_slot(const struct models_run *run, int64_t id);
/* Slots that have memory and are not told to stop; `any`: all but claims. */
int64_t books_slots(const struct models_run *run, const struct sim_model *model, bool any);
/* The newest slot of the model that has memory and is not told to stop, or NULL. */
const struct slot_record *books_newest(const struct models_run *run, const struct sim_model *model);
const struct reservation_record *books_reservation(const struct models_run *run, int64_t id);
/* Per GPU of the case: what reservations count for, or what is used in all. */
int64_t books_reserved_mib(const struct models_run *run, int place);
int64_t books_used_mib(const struct models_run *run, int place);
int64_t books_capacity_mib(const struct models_run *run, int place);
/* The place of a GPU by its id; -1: not one of the case. */
int books_gpu_place(const struct models_run *run, int64_t gpu_id);
/* Walks the kept records of a kind. */
struct rank_cursor books_all(const struct models_run *run, enum record_kind kind);

/* models_step.c, models_request.c: steps. False with the reason. */
bool step_run(struct models_run *run, const struct model_step *step);
bool step_request(struct models_run *run, const struct model_step *step);
bool step_dispatch(struct models_run *run, const struct model_step *step);
bool step_idle(struct models_run *run, const struct model_step *step);
bool step_busy(struct models_run *run, const struct model_step *step);

/* models_check.c: what must be true after a step */
bool check_step(struct models_run *run, const struct model_step *step);

#endif
