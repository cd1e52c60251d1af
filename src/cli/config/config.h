/* config.h - the contexts of a user: which clusters there are, and how to sign in to each */
#ifndef CLI_CONFIG_CONFIG_H
#define CLI_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"

/* NULL where nothing is said. */
struct context {
	const char *name, *server, *token, *token_file, *ca, *tenant;
};

/* Texts are in the arena. Zero-initialised is empty; freed with config_free. */
struct config {
	const char *current; /* NULL: none */
	struct context *contexts;
	size_t count, capacity;
	struct arena arena;
};

/* Reads YAML; `name` is that of the file, for reasons: 'FILE:3:5: ...'. */
bool config_parse(struct config *config, const char *name, const char *text, size_t size,
                  struct error *error);
/* Writes the configuration as YAML. */
void config_print(const struct config *config, struct buffer *to);
void config_free(struct config *config);

/* NULL: there is none of that name. */
struct context *config_find(const struct config *config, const char *name);
/* The one of that name, made if there is none. */
struct context *config_make(struct config *config, const char *name);
void config_remove(struct config *config, struct context *context);

/* Where the file is: $GPU_SCHEDULER_CONFIG, or config.yaml in gpu-scheduler of
 * $XDG_CONFIG_HOME or ~/.config. False: there is no home. */
bool config_path(struct buffer *path, struct error *error);
/* Reads the file. A missing file is empty. */
bool config_load(struct config *config, const char *path, struct error *error);
/* Replaces the file atomically. Only its owner can read it. */
bool config_save(const struct config *config, const char *path, struct error *error);

/* The token in a file, which only its owner may be able to read; in `arena`. */
const char *config_read_token(const char *path, struct arena *arena, struct error *error);
/* Writes a file that only its owner can read, and the directories that lead to it. */
bool config_write_private(const char *path, const char *data, size_t size, struct error *error);

#endif
