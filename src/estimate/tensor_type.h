/* tensor_type.h - how many bytes values take: types of tensors and of caches */
#ifndef ESTIMATE_TENSOR_TYPE_H
#define ESTIMATE_TENSOR_TYPE_H

#include <stdbool.h>
#include <stdint.h>

/* Values are stored in blocks of `block_values`, each of `block_bytes`: 1 and 2
 * for f16, 32 and 34 for q8_0 (32 bytes and one scale of two). */
struct tensor_type {
	const char *name;
	int block_values, block_bytes;
};

/* The type with this number in a GGUF file; NULL if there is none, or if it is
 * one that was withdrawn. */
const struct tensor_type *tensor_type_of_gguf(uint32_t number);

/* The type that a safetensors header names; NULL if there is none. */
const struct tensor_type *tensor_type_of_safetensors(const char *name);

/* The type that a cache of keys and values can have, by the name that runtimes
 * give it ("q8_0"); NULL if there is none. */
const struct tensor_type *tensor_type_of_cache(const char *name);
/* All of those names: "f32, f16, ...". */
const char *tensor_type_cache_names(void);

/* The bytes that a row of values takes, or -1 if it does not fill whole blocks. */
int64_t tensor_type_row_bytes(const struct tensor_type *type, int64_t values);

#endif
