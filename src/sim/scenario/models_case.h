/* models_case.h - a case of models.json: nodes with GPUs, and steps that run in order */
#ifndef SIM_SCENARIO_MODELS_CASE_H
#define SIM_SCENARIO_MODELS_CASE_H

#include <jansson.h>

#include "base/memory.h"
#include "core/record/types.h"
#include "sim/world/reading.h"

enum step_kind {
	STEP_REQUEST,  /* someone asks for a model */
	STEP_BUSY,     /* a request in flight in each of its slots */
	STEP_FINISH,   /* none any more */
	STEP_IDLE,     /* idle beyond its time to live */
	STEP_DISPATCH, /* one inference request */
	STEP_RELEASE,  /* a held request ends */
	STEP_PREWARM,
	STEP_FOREIGN, /* memory of processes that nobody scheduled */
	STEP_ORPHAN,  /* a slot that the runner has and nobody knows */
	STEP_CONFIRM, /* memory is back that was not confirmed */
	STEP_RESTART,
	STEP_SETTLE,
	STEP_CHECK,
	/* The steps from here on are additions to the form of the shared cases. */
	STEP_MODEL,  /* settings of a model */
	STEP_REMOVE, /* of a model */
	STEP_TENANT,
	STEP_SUBMIT,      /* a job */
	STEP_END,         /* of a job */
	STEP_WAIT,        /* time passes */
	STEP_LOADS,       /* how runners answer orders to load a model from now on */
	STEP_READY,       /* what was left starting is ready */
	STEP_DIE,         /* a slot ends by itself */
	STEP_VANISH,      /* a slot is missing from the runner's next report */
	STEP_CLIENT_GONE, /* of the oldest dispatch that waits or is held */
	STEP_SILENT,      /* a runner */
	STEP_RETURN,      /* of a runner */
	STEP_KINDS,
};

enum expectation {
	EXPECT_NOTHING, /* not said: see models_request.c */
	EXPECT_PLACED,
	EXPECT_WAITING,
	EXPECT_UNSCHEDULABLE,
	EXPECT_SERVED,
	EXPECT_QUEUED,
	EXPECT_SERVED_OR_QUEUED,
	EXPECT_FAILED,
	EXPECT_RUNNING, /* of a job */
};

/* What a runner does with an order to load. */
enum load_answer { ANSWER_READY, ANSWER_STARTING, ANSWER_FAIL };

/* A step; numbers that were not given are -1, texts NULL. What only one kind of
 * step has is read from `json` when that is done, and was found right before. */
struct model_step {
	enum step_kind kind;
	const json_t *json;
	const char *model, *runner, *job, *tenant;
	enum expectation expect;
	int64_t memory_mib, concurrency, gpus, gpu, gpu_count, per_gpu_mib, evicted, preempted;
	bool replica, hold, fail, withhold; /* withhold: what is unloaded is not confirmed */
	enum load_answer answer;
	int64_t idle_ms, wait_ms, lease_ms;
};

struct case_runner {
	const char *name;
	int64_t gpu_mib[GPUS_PER_NODE_MAX];
	int gpu_count;
};

/* Texts belong to the JSON, lists to the arena. */
struct models_case {
	const char *name;
	enum slot_policy policy;
	struct case_runner *runners;
	struct model_step *steps;
	int64_t runner_count, step_count;
	struct arena arena;
};

/* The word for a step, as cases write it. */
const char *step_word(enum step_kind kind);
/* The word for what is expected; "anything" for EXPECT_NOTHING. */
const char *expectation_word(enum expectation expectation);

/* Checks end in this where the model's name comes before. */
#define ALONE_SUFFIX "_alone_on_its_gpu"
/* The name of the model in such a key, copied to `name`; false: it is not one. */
bool alone_model(const char *key, char *name, size_t size);

/* Reads it; the JSON must live as long. False with a sentence that names the
 * field that is wrong. To be freed in any case. */
bool models_case_read(struct models_case *models_case, const json_t *json, struct error *error);
void models_case_free(struct models_case *models_case);

#endif
