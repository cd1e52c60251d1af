/* safetensors.h - models as directories of safetensors files and a config.json */
#ifndef ESTIMATE_SAFETENSORS_H
#define ESTIMATE_SAFETENSORS_H

#include <jansson.h>

#include "base/map.h"
#include "estimate/blueprint.h"
#include "estimate/reader.h"

enum {
	SAFETENSORS_HEADER_BYTES_MAX = 100000000, /* the format's own limit */
	SAFETENSORS_CONFIG_BYTES_MAX = 16 << 20,
	SAFETENSORS_DIMENSIONS_MAX = 16,
};

/* The JSON object in the `size` bytes at `offset`; NULL with the reason. json_read() says what it
 * refuses. The caller releases it with json_decref(). */
json_t *safetensors_object_read(const struct reader *reader, int64_t offset, int64_t size,
                                struct error *error);

/* What config.json says of a model: everything of the blueprint but its tensors.
 * Unknown settings are refused with a reason. `nextn_layers` is the
 * number of trailing layers that only serve speculative decoding and are not loaded. */
struct safetensors_config {
	int64_t nextn_layers;
};
bool safetensors_config_read(struct blueprint *blueprint, struct safetensors_config *config,
                             const struct reader *reader, struct error *error);

/* Adds the tensors in the header of one file to the blueprint, by what tensor
 * parallelism does with them. `seen` has the names of those from other files. A
 * file that is too short for its tensors is refused. */
bool safetensors_add(struct blueprint *blueprint, const struct safetensors_config *config,
                     const struct reader *reader, struct text_map *seen, struct error *error);

/* The names of the files that model.safetensors.index.json lists, each once, as
 * a JSON array that the caller gives back; NULL with the reason. A name that
 * leads out of the directory is refused. */
json_t *safetensors_index_read(const struct reader *reader, struct error *error);

#endif
