/* model_files.h - finds and reads the files of a model */
#ifndef ESTIMATE_MODEL_FILES_H
#define ESTIMATE_MODEL_FILES_H

#include "estimate/blueprint.h"

enum { MODEL_FILES_MAX = 10000 };

/* Reads what a model is made of, from a path: a GGUF file (any one of those that
 * it is split into stands for all), a safetensors file with its config.json
 * beside it, or a directory that has one model in one of these forms. Only
 * headers are read. Errors name the file. Free the blueprint in both cases. */
bool model_files_read(struct blueprint *blueprint, const char *path, struct error *error);

/* For a name such as x-00002-of-00003.gguf: whether it is one, and then the
 * length of the name before the numbers, and how many files there are. */
bool model_files_is_split(const char *path, size_t *stem, int *count);

#endif
