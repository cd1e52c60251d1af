/* serve_trace.h - requests to many models, and what the models take */
#ifndef SIM_SERVE_SERVE_TRACE_H
#define SIM_SERVE_SERVE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { SERVE_KINDS_MAX = 16, SERVE_MODELS_MAX = 4096 };

/* A kind of model: what it takes of a GPU, and how long its steps are. */
struct serve_kind {
	char name[64];
	double weights_gb, overhead_gb, kv_gb, kv_bytes; /* kv_bytes: of a token */
	int64_t longest;                                 /* tokens of a sequence */
	double prefill_ms, prefill_token_ms;
	double decode_ms, decode_context_ms, decode_request_ms;
};

struct serve_request {
	int64_t at_us;
	int model;
	int64_t input, output; /* tokens; at least 1 */
};

struct serve_trace {
	struct serve_kind kinds[SERVE_KINDS_MAX];
	int kind_count;
	struct serve_request *requests; /* by time */
	size_t count, capacity;
	int models;
	double mean_output;
};

/* Reads the kinds, then the requests for the first `first_models` models (0: for all). Of the ten
 * models of each ten the first six are of the first kind, two of the second and two of the third,
 * where there are three kinds; otherwise kinds follow each other. False with a reason. To be freed
 * in any case. */
bool serve_trace_read(struct serve_trace *trace, const char *models_path, const char *trace_path,
                      int64_t first_models, struct error *error);
/* Reads the kinds alone. */
bool serve_trace_read_kinds(struct serve_trace *trace, const char *models_path,
                            struct error *error);
void serve_trace_free(struct serve_trace *trace);

/* Which kind a model is of. */
const struct serve_kind *serve_kind_of(const struct serve_trace *trace, int model);

#endif
