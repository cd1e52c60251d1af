/* exposition.h - metrics in the text format of Prometheus, as exporters give them */
#ifndef AGENT_GPU_EXPOSITION_H
#define AGENT_GPU_EXPOSITION_H

#include <stdbool.h>

#include "base/text.h"

/* One sample. Texts are those of the page; `labels` is what is between the braces. */
struct exposed {
	struct text name, labels;
	double value;
};

/* The next sample of the page, which `rest` moves behind. Comments, empty lines and lines that
 * are no samples are passed over. False at the end. */
bool exposition_next(struct text *rest, struct exposed *sample);
/* The value of a label, as it is written; false where there is no such label. */
bool exposition_label(const struct exposed *sample, const char *name, struct text *value);

#endif
