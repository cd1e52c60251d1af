/* parts.h - what the estimates for the runtimes share */
#ifndef ESTIMATE_PARTS_H
#define ESTIMATE_PARTS_H

#include "estimate/estimate.h"

/* Sets a line of an estimate from bytes, with its arithmetic. */
void estimate_line_set(struct estimate_line *line, int64_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The bytes of one token's keys and values in a layer, `heads` of them. The
 * types of the cache must fit: see estimate_make. */
int64_t estimate_token_bytes(const struct blueprint_layer *layer, int64_t heads,
                             const struct estimate_request *request);

/* llama.cpp and ollama deal the layers out. */
bool estimate_layers(struct estimate *estimate, const struct blueprint *blueprint,
                     const struct estimate_request *request, struct error *error);
/* vLLM divides every layer. */
bool estimate_tensors(struct estimate *estimate, const struct blueprint *blueprint,
                      const struct estimate_request *request, struct error *error);

#endif
