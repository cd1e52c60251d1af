/* options.c - what a subcommand is asked with */
#include "sim/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	char *end;

	if (!text)
		return true;
	*number = strtoll(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && *number >= least && *number <= most)
		return true;
	fprintf(stderr, "gpu-sim: %s is '%s', not a number from %" PRId64 " to %" PRId64 "\n", name,
	        text, least, most);
	return false;
}
