/* limits.h - limits of GPU memory as text: "GPU-8f6e...=20480M,GPU-17ab...=8G,others=0" */
#ifndef GUARD_BUDGET_LIMITS_H
#define GUARD_BUDGET_LIMITS_H

#include "guard/budget/segment.h"

/* Lists the GPUs with their limits in a segment that nobody else has. An entry that
 * makes no sense is passed over: its GPU is then one that nobody listed, and gives
 * nothing unless `others` does. */
void limits_read(const char *text, struct segment *segment);

#endif
