/* models_fixture.h - models in slots, on nodes that load and unload at once */
#ifndef CORE_BENCH_MODELS_FIXTURE_H
#define CORE_BENCH_MODELS_FIXTURE_H

#include "core/bench/fixture.h"

enum { GPUS_OF_NODE = 8 };

/* An order to a node that is not answered yet. */
struct slot_order {
	int64_t id;
	bool load; /* otherwise: stop */
};

/* Zero-initialised, it has no core: take one from models_begin. Requests have
 * the number of their model, plus 1, as long as only one is there of each. */
struct models_fixture {
	struct fixture world;
	int64_t tenant_id;
	int gpus, model_count;
	int64_t *models; /* ids */
	bool *loaded;    /* by the place of the model: it has a slot that is not stopping */
	struct slot_order *orders;
	size_t order_count, order_capacity;
	int64_t stopped; /* slots told to stop, since it was last set to 0 */
	int64_t requests;
};

/* A cluster of `gpus` GPUs of 80 GiB, and models with these sizes in turn. */
void models_begin(struct models_fixture *fixture, int gpus, int model_count,
                  const int64_t *sizes_mib, int size_count);
void models_end(struct models_fixture *fixture);

/* Asks for the model at this place. Returns the request's number. */
int64_t models_request(struct models_fixture *fixture, int place);
void models_done(struct models_fixture *fixture, int64_t request_id, enum request_end end);
/* Passes until nothing is left to decide, and remembers what is ordered. */
void models_pass(struct models_fixture *fixture);
/* Answers all orders, passes, and so on until there are none. */
void models_answer(struct models_fixture *fixture);

#endif
