/* options.c - what a subcommand is asked with */
#include "sim/world/options.h"

#include <stdio.h>
#include <string.h>

bool options_read(const struct option *table, int argc, char **argv, void *target)
{
	struct error error = { 0 };

	if (options_store(table, argc - 1, argv + 1, target, &error))
		return true;
	fprintf(stderr, "gpu-sim: %s\nusage: gpu-sim %s [OPTION...]\n\n", error.text, argv[0]);
	options_print(stderr, table);
	return false;
}

static bool refuse_policy(const char *name, const char *const *all, size_t count)
{
	fprintf(stderr, "gpu-sim: there is no policy '%s'; there are", name);
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, " %s", all[i]);
	fputc('\n', stderr);
	return false;
}

bool options_policies(const char *text, const char *const *all, size_t count,
                      bool (*add)(void *context, const char *name), void *context)
{
	char names[256], *rest, *name;
	int added = 0;

	for (size_t i = 0; i < count && !text; i++)
		add(context, all[i]);
	if (!text)
		return true;
	snprintf(names, sizeof(names), "%s", text);
	for (name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest), added++)
		if (!add(context, name))
			return refuse_policy(name, all, count);
	return added > 0 || refuse_policy("", all, count);
}
