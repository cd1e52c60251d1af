/* estimate.h - the GPU memory that a model takes, before anything is started */
#ifndef ESTIMATE_ESTIMATE_H
#define ESTIMATE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "estimate/blueprint.h"
#include "estimate/tensor_type.h"

enum estimate_runtime { RUNTIME_LLAMA_CPP, RUNTIME_OLLAMA, RUNTIME_VLLM, ESTIMATE_RUNTIMES };

const char *estimate_runtime_name(enum estimate_runtime runtime);
bool estimate_runtime_find(const char *name, enum estimate_runtime *runtime);

enum {
	ESTIMATE_GPUS_MAX = 16,
	ESTIMATE_CONTEXT_MAX = 1 << 30,
	ESTIMATE_PARALLEL_MAX = 1 << 16,
	ESTIMATE_SHARE_MAX = 1000000,
	ESTIMATE_TEXT_MAX = 448,
};

/* How the model is to be launched. The estimate is a function of this and of the
 * blueprint, and of nothing else. */
struct estimate_request {
	enum estimate_runtime runtime;
	int64_t context_tokens;                          /* of each request */
	int64_t parallel;                                /* requests at a time */
	const struct tensor_type *key_type, *value_type; /* of the cache */
	int64_t batch_tokens; /* computed at once; 0: what the runtime does by itself */
	bool plain_attention; /* not the flash kind: llama.cpp and ollama can do without */
	int gpus;
	/* How many parts of the whole each GPU gets; all 0 for equal parts. Only
	 * layers can be dealt out unevenly. */
	int64_t share[ESTIMATE_GPUS_MAX];
};

/* What a model gets if nothing is said: the context that it was made for, one
 * request at a time, a cache of f16, one GPU, the runtime for its format. */
struct estimate_request estimate_defaults(const struct blueprint *blueprint);

enum estimate_part {
	ESTIMATE_WEIGHTS,
	ESTIMATE_CACHE,    /* keys, values and states of requests */
	ESTIMATE_GRAPH,    /* what is computed with, on the way through the layers */
	ESTIMATE_OVERHEAD, /* what the runtime and the driver take in any case */
	ESTIMATE_PARTS
};
const char *estimate_part_name(enum estimate_part part);

/* One part on one GPU: MiB, rounded up, and the arithmetic in words. */
struct estimate_line {
	int64_t mib;
	char text[ESTIMATE_TEXT_MAX];
};

/* `total_mib` is the sum of the lines. Where layers are dealt out, the GPU has
 * `layers` of them from `first_layer` on, and the last one the output. */
struct estimate_gpu {
	int64_t first_layer, layers;
	bool has_output;
	struct estimate_line line[ESTIMATE_PARTS];
	int64_t total_mib;
};

struct estimate {
	int gpus;
	struct estimate_gpu gpu[ESTIMATE_GPUS_MAX];
	int64_t total_mib;   /* over all GPUs */
	int64_t largest_mib; /* on one GPU */
	int64_t host_mib;    /* weights that stay in the host's memory */
};

/* Makes the estimate, or says why the model cannot be launched like this. */
bool estimate_make(struct estimate *estimate, const struct blueprint *blueprint,
                   const struct estimate_request *request, struct error *error);

#endif
