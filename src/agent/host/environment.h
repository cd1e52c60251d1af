/* environment.h - variables that a process is started with */
#ifndef AGENT_HOST_ENVIRONMENT_H
#define AGENT_HOST_ENVIRONMENT_H

#include <stdint.h>

#include "base/memory.h"

/* NAME=value texts in an arena, ended by NULL; each name is there once, the last one set
 * counts. */
struct environment {
	struct arena *arena;
	char **at;
	size_t count, capacity;
};

void environment_set(struct environment *environment, const char *name, const char *value);
/* `variable` is NAME=value; it must live as long as the arena does. */
void environment_add(struct environment *environment, char *variable);
void environment_set_number(struct environment *environment, const char *name, int64_t number);
/* Only where it is not there yet. */
void environment_default(struct environment *environment, const char *name, const char *value);
/* The value, or NULL. */
const char *environment_get(const struct environment *environment, const char *name);
/* The list, in the arena; the environment is empty afterwards. */
char **environment_finish(struct environment *environment);

#endif
