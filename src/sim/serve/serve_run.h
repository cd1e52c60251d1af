/* serve_run.h - what the files of a simulated service share */
#ifndef SIM_SERVE_SERVE_RUN_H
#define SIM_SERVE_SERVE_RUN_H

#include "sim/serve/serve.h"
#include "sim/serve/serve_gateway.h"
#include "sim/serve/serve_server.h"
#include "sim/world/driver.h"

#define SERVE_BEGAN_MS INT64_C(1000000000000)

/* A slot, with its server once it is loaded. */
struct serve_slot {
	int64_t id;
	int model, gpu;
	enum serve_slot_state state;
	enum { SERVE_AWAKE, SERVE_FALLS_ASLEEP, SERVE_SLEEPS, SERVE_WAKES } sleep;
	int64_t load_ends_us, used_us;
	int64_t share; /* places that the gateway has there */
	struct server server;
	int64_t *places; /* requests of the core that hold them */
	size_t place_count, place_capacity;
};

struct serve_gpu {
	int64_t step_ends_us; /* INT64_MAX: none is under way */
	int64_t step_slot;    /* the slot whose step it is, or was last */
	int64_t loads_end_us; /* of the baseline: loads follow each other */
	double free_gb;       /* of the baseline */
	int64_t busy_us;
};

/* An order of the core, to be carried out once its effects have been read. */
struct serve_order {
	enum {
		ORDER_LOAD,
		ORDER_SLEEP,
		ORDER_WAKE,
		ORDER_STOP,
		ORDER_GRANT,
		ORDER_REFUSE,
		ORDER_CLOSE,
		ORDER_OPEN
	} kind;
	int64_t id, model_id, slot_id, gpu;
};

struct serve_run {
	const struct serve_trace *trace;
	const struct serve_setup *setup;
	enum serve_policy policy;
	struct driver driver;
	struct serve_gateway *gateway;
	struct serve_slot **slots; /* by id */
	size_t slot_count, slot_capacity;
	struct serve_gpu *gpus;
	struct served *served; /* by request */
	bool *refused;
	int64_t *model_ids; /* of the core, by model */
	bool *cached;       /* by model: its weights are in host memory, for any GPU */
	struct serve_order *orders;
	size_t order_count, order_capacity, order_next;
	size_t *line; /* of the baseline: requests whose model may have no slot, by arrival */
	size_t line_first, line_count;
	int64_t now_us, loading_us, last_slot_id;
	size_t arrived, open; /* requests: so far, and not answered */
	int64_t loads, wakes, closed;
	bool routes_changed;
	struct error *error;
	bool failed;
};

double serve_need_gb(const struct serve_run *run, int model);
double serve_kv_gb(const struct serve_run *run, int model);
double serve_usable_gb(const struct serve_run *run);
struct serve_slot *serve_find_slot(struct serve_run *run, int64_t id);
struct serve_slot *serve_add_slot(struct serve_run *run, int64_t id, int model, int gpu,
                                  int64_t load_ends_us);
void serve_drop_slot(struct serve_run *run, struct serve_slot *slot);
int64_t serve_load_us(const struct serve_run *run, int model);
/* Moving the weights between a GPU and host memory; and waking, which takes a little more. */
int64_t serve_sleep_us(const struct serve_run *run, int model);
int64_t serve_wake_us(const struct serve_run *run, int model);

/* serve_core.c: the core places models and gives places to requests. */
bool serve_core_begin(struct serve_run *run);
void serve_core_arrived(struct serve_run *run, size_t request);
void serve_core_loaded(struct serve_run *run, struct serve_slot *slot);
/* It has gone to sleep, or woken. */
void serve_core_moved(struct serve_run *run, struct serve_slot *slot);
void serve_core_ended(struct serve_run *run, struct serve_slot *slot);
/* Lets the core decide about waiting requests; called when simulated time has advanced. */
void serve_core_pass(struct serve_run *run);

/* serve_lru.c: the baselines do. All models stay loaded where the least is asked of their GPUs. */
void serve_oracle_begin(struct serve_run *run);
void serve_lru_begin(struct serve_run *run);
void serve_lru_arrived(struct serve_run *run, size_t request);
void serve_lru_pass(struct serve_run *run);

#endif
