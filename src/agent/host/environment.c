/* environment.c - variables that a process is started with */
#include "agent/host/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **environment_find(const struct environment *environment, const char *name, size_t size)
{
	for (size_t i = 0; i < environment->count; i++)
		if (strncmp(environment->at[i], name, size) == 0 && environment->at[i][size] == '=')
			return &environment->at[i];
	return NULL;
}

void environment_add(struct environment *environment, char *variable)
{
	char **there = environment_find(environment, variable, strcspn(variable, "="));

	if (!there) {
		array_reserve(environment->at, environment->capacity, environment->count + 1);
		there = &environment->at[environment->count++];
	}
	*there = variable;
}

void environment_set(struct environment *environment, const char *name, const char *value)
{
	size_t size = strlen(name) + strlen(value) + 2;
	char *text = arena_alloc(environment->arena, size);

	snprintf(text, size, "%s=%s", name, value);
	environment_add(environment, text);
}

void environment_set_number(struct environment *environment, const char *name, int64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, number);
	environment_set(environment, name, text);
}

void environment_default(struct environment *environment, const char *name, const char *value)
{
	if (!environment_find(environment, name, strlen(name)))
		environment_set(environment, name, value);
}

const char *environment_get(const struct environment *environment, const char *name)
{
	char **there = environment_find(environment, name, strlen(name));

	return there ? *there + strlen(name) + 1 : NULL;
}

char **environment_finish(struct environment *environment)
{
	size_t size = (environment->count + 1) * sizeof(char *);
	char **list = arena_alloc(environment->arena, size);

	if (environment->count > 0)
		memcpy(list, environment->at, environment->count * sizeof(char *));
	list[environment->count] = NULL;
	free(environment->at);
	environment->at = NULL;
	environment->count = environment->capacity = 0;
	return list;
}
