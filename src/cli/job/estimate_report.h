/* estimate_report.h - estimates for several splits of a model, for people and programs */
#ifndef CLI_JOB_ESTIMATE_REPORT_H
#define CLI_JOB_ESTIMATE_REPORT_H

#include "estimate/estimate.h"

/* One way to split the model; `reason` says why it is not possible, if it is not. */
struct estimate_split {
	struct estimate_request request;
	struct estimate estimate;
	struct error reason;
};

struct estimate_report {
	const struct blueprint *blueprint;
	struct estimate_split *splits; /* at least one */
	int count;
	bool explain; /* with the arithmetic */
};

/* Print to stdout: an aligned table, or one JSON object. */
void estimate_report_table(const struct estimate_report *report);
void estimate_report_json(const struct estimate_report *report);

#endif
