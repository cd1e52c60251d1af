/* gguf.h - the header of a GGUF file: what it says of itself, and its tensors */
#ifndef ESTIMATE_GGUF_H
#define ESTIMATE_GGUF_H

#include <stdint.h>

#include "base/map.h"
#include "base/memory.h"
#include "estimate/blueprint.h"
#include "estimate/reader.h"
#include "estimate/tensor_type.h"

/* The kinds of values, by their number in the file. */
enum gguf_kind {
	GGUF_U8,
	GGUF_I8,
	GGUF_U16,
	GGUF_I16,
	GGUF_U32,
	GGUF_I32,
	GGUF_F32,
	GGUF_BOOL,
	GGUF_TEXT,
	GGUF_ARRAY,
	GGUF_U64,
	GGUF_I64,
	GGUF_F64,
	GGUF_KINDS
};

/* A value as far as it is of use: whole numbers and truth values as `number`
 * (what is above INT64_MAX as INT64_MAX), short texts, of an array its length
 * and, if it is not longer than there can be layers, its whole numbers. */
struct gguf_value {
	enum gguf_kind kind, item_kind;
	int64_t number;
	const char *text; /* NULL for long ones and for other kinds */
	int64_t count;
	const int64_t *numbers; /* NULL, or `count` */
};

struct gguf_tensor {
	const char *name;
	const struct tensor_type *type;
	int dimensions;
	int64_t length[4]; /* 1 for dimensions that it does not have */
	int64_t values, bytes;
	int64_t offset; /* from the start of the data */
};

/* Limits far above what is found in real files, so that a header costs no more
 * time and memory than its own size explains. */
enum {
	GGUF_HEADER_BYTES_MAX = 1 << 29,
	GGUF_VALUES_MAX = 1 << 16,
	GGUF_TENSORS_MAX = 1 << 20,
	GGUF_NESTING_MAX = 4,
	GGUF_NAME_BYTES_MAX = 65535,
};

/* The header of one file. All texts live in the arena. */
struct gguf {
	uint32_t version;
	struct text_map values; /* by their key: struct gguf_value */
	struct gguf_tensor *tensors;
	size_t tensor_count, tensor_capacity;
	int64_t data_start; /* where the header ends and the tensors begin */
	struct arena arena;
};

/* Reads a header, of version 2 or 3, and nothing behind it. Refuses with a
 * sentence what is malformed, and a file that is too short for its tensors.
 * What it has read is to be freed in both cases. */
bool gguf_read(struct gguf *gguf, const struct reader *reader, struct error *error);
void gguf_free(struct gguf *gguf);

const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key);

/* What the model is made of, from the headers of all the files that it is split
 * into, in order; the first one describes it. Free the blueprint in both cases. */
bool gguf_blueprint(struct blueprint *blueprint, const struct gguf *files, size_t count,
                    struct error *error);

#endif
