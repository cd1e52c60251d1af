/* parameters.c - the query parameters that routes accept */
#include "api/request/parameters.h"

#include <stdio.h>

#include "base/spelling.h"

enum { NAME_MAX_BYTES = 63, LIST_MAX_BYTES = 256 };

/* The next of the names between spaces; false at the end. */
static bool parameter_next(struct text *names, char name[NAME_MAX_BYTES + 1])
{
	struct text item;
	while (text_next(names, ' ', &item)) {
		if (item.size == 0)
			continue;
		INVARIANT(item.size <= NAME_MAX_BYTES);
		memcpy(name, item.data, item.size);
		name[item.size] = '\0';
		return true;
	}
	return false;
}

static bool parameter_is_known(const struct route *route, struct text wanted)
{
	struct text names = text_of(route->parameters);
	char name[NAME_MAX_BYTES + 1];
	while (parameter_next(&names, name))
		if (text_is(wanted, name))
			return true;
	return false;
}

/* Fills `nearest` with the name most like the one given, if any is like it at all: about one
 * letter in three may be wrong. */
static bool parameter_nearest(const struct route *route, const char *given,
                              char nearest[NAME_MAX_BYTES + 1])
{
	struct text names = text_of(route->parameters);
	int least = (int)(strlen(given) / 3) + 2;
	char name[NAME_MAX_BYTES + 1];
	bool found = false;
	while (parameter_next(&names, name)) {
		int distance = spelling_distance(given, name);
		if (distance >= least)
			continue;
		least = distance;
		memcpy(nearest, name, sizeof(name));
		found = true;
	}
	return found;
}

/* "limit, offset and after" */
static void parameters_list(const struct route *route, char list[LIST_MAX_BYTES])
{
	struct text names = text_of(route->parameters);
	char name[NAME_MAX_BYTES + 1], next[NAME_MAX_BYTES + 1];
	bool more = parameter_next(&names, name);
	size_t size = 0;
	list[0] = '\0';
	while (more) {
		more = parameter_next(&names, next);
		int added = snprintf(list + size, LIST_MAX_BYTES - size, "%s%s",
		                     size == 0 ? "" : (more ? ", " : " and "), name);
		INVARIANT(added > 0 && size + (size_t)added < LIST_MAX_BYTES);
		size += (size_t)added;
		memcpy(name, next, sizeof(name));
	}
}

static bool parameter_refuse(const struct route *route, const char *given, struct error *error)
{
	char nearest[NAME_MAX_BYTES + 1], list[LIST_MAX_BYTES];
	const char *method = method_text(route->method);
	if (!*route->parameters)
		return error_set(error, ERROR_INVALID,
		                 "unknown query parameter '%.64s': %s %s has none", given, method,
		                 route->path);
	if (parameter_nearest(route, given, nearest))
		return error_set(error, ERROR_INVALID,
		                 "unknown query parameter '%.64s': did you mean %s?", given,
		                 nearest);
	parameters_list(route, list);
	return error_set(error, ERROR_INVALID, "unknown query parameter '%.64s': %s %s has %s",
	                 given, method, route->path, list);
}

bool parameters_check(const struct route *route, const struct query *query, struct error *error)
{
	INVARIANT(route->path);
	if (strcmp(route->parameters, PARAMETERS_ANY) == 0)
		return true;
	for (size_t i = 0; i < query->count; i++)
		if (!parameter_is_known(route, query->of[i].name))
			return parameter_refuse(route, query->of[i].name.data, error);
	return true;
}
