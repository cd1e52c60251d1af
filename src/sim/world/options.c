/* options.c - what a subcommand is asked with */
#include "sim/world/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number_text.h"

static bool refuse_unknown(const struct option_slot *slots, size_t count, const char *subcommand,
                           const char *name)
{
	fprintf(stderr, "gpu-sim: %s has no option '%s'; it has", subcommand, name);
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, " %s", slots[i].name);
	fputc('\n', stderr);
	return false;
}

bool options_read(const struct option_slot *slots, size_t count, int argc, char **argv)
{
	for (int at = 1; at < argc; at++) {
		size_t i = 0;
		while (i < count && strcmp(slots[i].name, argv[at]) != 0)
			i++;
		if (i == count)
			return refuse_unknown(slots, count, argv[0], argv[at]);
		if (slots[i].flag) {
			*slots[i].flag = true;
		} else if (at + 1 < argc) {
			*slots[i].value = argv[++at];
		} else {
			fprintf(stderr, "gpu-sim: %s needs a value\n", argv[at]);
			return false;
		}
	}
	return true;
}

bool options_number(const char *name, const char *text, int64_t least, int64_t most,
                    int64_t *number)
{
	if (!text || number_read(text_of(text), least, most, number))
		return true;
	fprintf(stderr, "gpu-sim: %s is '%s', not a number from %" PRId64 " to %" PRId64 "\n", name,
	        text, least, most);
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
