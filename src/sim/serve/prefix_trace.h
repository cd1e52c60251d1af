/* prefix_trace.h - requests whose prompts begin alike */
#ifndef SIM_SERVE_PREFIX_TRACE_H
#define SIM_SERVE_PREFIX_TRACE_H

#include "sim/world/csv.h"

enum { PREFIX_BLOCK_TOKENS = 512 };

struct prefix_request {
	int64_t at_us, input; /* tokens of the prompt */
	size_t first;         /* of its blocks */
	int blocks;
};

/* The blocks are as in Mooncake's traces: equal numbers are equal text up to the end of the block.
 */
struct prefix_trace {
	struct prefix_request *requests; /* by time */
	size_t count, capacity;
	uint64_t *blocks;
	size_t block_count, block_capacity;
};

/* Reads time_ms, input_tokens and blocks ('0 14-27'). Requests of one time are spread over the
 * clock's grain, the greatest common divisor of all times. False with a reason. To be freed in any
 * case. */
bool prefix_trace_read(struct prefix_trace *trace, const char *path, struct error *error);
bool prefix_trace_read_rows(struct prefix_trace *trace, struct csv *csv, struct error *error);
void prefix_trace_free(struct prefix_trace *trace);

#endif
