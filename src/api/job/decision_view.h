/* decision_view.h - a decision with its arithmetic, as people read it */
#ifndef API_JOB_DECISION_VIEW_H
#define API_JOB_DECISION_VIEW_H

#include "api/read/catalogue.h"
#include "core/record/record.h"
#include "wire/text/json_writer.h"

/* What a reader may know: the work of other tenants is named as 'another tenant'. */
struct decision_view {
	const struct catalogue *catalogue; /* locked */
	int64_t viewer;                    /* tenant; 0: sees all */
	const char *explanation;           /* sentences, one per line; NULL: none */
};

/* In an array, or at the top. */
void decision_view_write(struct json_writer *json, const struct decision_record *decision,
                         const struct decision_view *view);

#endif
