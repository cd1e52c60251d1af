/* policy.c - the placement policies: one table, from which everything else follows */
#include "core/record/policy.h"

#include <string.h>

/* NOLINTBEGIN(bugprone-macro-parentheses): `cached` is an initializer */
#define POLICY_ROW(symbol, word, other, function, cached, what, line)                              \
	[POLICY_##symbol] = { .name = (word),                                                      \
		              .alias = (other),                                                    \
		              .help = (line),                                                      \
		              .score = (function),                                                 \
		              .cache = cached,                                                     \
		              .traits = (what) },
/* NOLINTEND(bugprone-macro-parentheses) */
const struct placement_policy placement_policies[] = { PLACEMENT_POLICIES(POLICY_ROW) };

int policy_find(const char *name)
{
	INVARIANT(name != NULL);
	if (*name == '\0')
		return -1;
	for (int i = 0; i < POLICY_COUNT; i++)
		if (strcmp(policy_row(i)->name, name) == 0 ||
		    strcmp(policy_row(i)->alias, name) == 0)
			return i;
	return -1;
}
