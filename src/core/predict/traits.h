/* traits.h - what a job is known by when its duration is predicted */
#ifndef CORE_PREDICT_TRAITS_H
#define CORE_PREDICT_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

/* Hashes and numbers that jobs share; 0: it has none. */
struct traits {
	uint64_t user, tenant;
	uint64_t name, pattern; /* as it is, and with its numbers cut out */
	int64_t size;           /* thousandths of GPUs, of all tasks */
	int64_t limit_ms;
};

/* The keys that experts are kept by, from narrow to wide. */
enum expert_kind {
	BY_USER_NAME_SIZE,
	BY_USER_NAME,
	BY_USER_PATTERN,
	BY_NAME,
	BY_PATTERN,
	BY_USER_LIMIT_SIZE,
	BY_USER_LIMIT,
	BY_LIMIT_SIZE,
	BY_USER_SIZE,
	BY_USER,
	BY_TENANT,
	BY_SIZE,
	BY_NOTHING,
	EXPERT_KINDS
};

/* "user and name", ...: for people. */
const char *expert_kind_name(enum expert_kind kind);
/* True if jobs of many users share the key, so that it changes slowly. */
bool expert_kind_is_wide(enum expert_kind kind);

/* The id of the expert of this kind for a job, which is positive; 0 if the job
 * has no such key. Two keys with one id would learn as one, which spoils a
 * prediction and nothing else. */
int64_t traits_key(const struct traits *traits, enum expert_kind kind);

/* The name with digits, hashes and dates cut out, so that 'train-17' and
 * 'train-18' are of one kind: 'train-#'. Appended to `buffer`. */
void predict_pattern(struct buffer *buffer, const char *name);
/* Writes the pattern to `out`, which has room for PATTERN_BYTES_MAX + 1 bytes; returns its
 * size. Longer names are cut off. */
#define PATTERN_BYTES_MAX 128
size_t pattern_write(char *out, const char *name);
/* Sets the name and the pattern; an empty name is none. */
void traits_set_name(struct traits *traits, const char *name);

#endif
