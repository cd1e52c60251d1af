/* standin.h - a engine for tests: a real core that answers when it is told to */
#ifndef API_TEST_STANDIN_H
#define API_TEST_STANDIN_H

#include "api/engine/engine_port.h"

/* What is asked waits until standin_settle; then it is applied to the core, becomes visible in
 * the catalogue at once, and is answered, one ask after the other. There is no store: reads
 * are answered ERROR_NOT_FOUND. */
struct standin {
	struct engine_port port; /* first: one pointer is the other */
	struct schema schema;
	struct sched *sched;
	struct effects effects;
	struct batch *batch;
	struct engine_request *first, *last;
	int64_t now_ms;
	bool healthy;
};

struct standin *standin_new(struct loop *loop);
void standin_free(struct standin *standin);
/* A command of the test's own, which must be accepted; what it gave out. */
int64_t standin_apply(struct standin *standin, struct command command);
/* A tenant without limits. */
int64_t standin_tenant(struct standin *standin, const char *name);
/* Answers all that waits, and what is asked meanwhile, then schedules. */
void standin_settle(struct standin *standin);

#endif
