/* failure_audit.c - failed sign-ins in the audit log: a summary for each address */
#include "api/auth/failure_audit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

/* After the first failure more are waited for; then there is a pause. */
enum { GATHER_MS = 2000, PAUSE_MS = 60000 };

struct failure_audit {
	struct engine_port *port; /* gone before this is freed */
	struct loop *loop;
	struct failures *failures;
	struct audit *audit;
	struct timer timer;
	bool is_set, is_asked;
	int64_t next_ms;              /* no summary before */
	struct engine_request engine; /* one at a time */
};

static void failure_audit_on_kept(struct engine_request *engine)
{
	struct failure_audit *failure_audit = engine->context;

	audit_settle(failure_audit->audit, engine);
	failure_audit->is_asked = false;
	failure_audit_wake(failure_audit);
}

static void failure_audit_keep(struct failure_audit *failure_audit)
{
	static const struct identity nobody = { .role = ROLE_VIEWER, .name = "nobody" };
	struct failure_summary summaries[FAILURE_SUMMARIES_MAX];
	size_t count = failures_take(failure_audit->failures, summaries);
	struct engine_request *engine = &failure_audit->engine;
	struct buffer detail = { 0 };

	if (count == 0)
		return;
	engine_request_reset(engine);
	for (size_t i = 0; i < count; i++) {
		buffer_clear(&detail);
		failure_summary_print(&summaries[i], &detail);
		audit_note(failure_audit->audit, engine,
		           &(struct audit_entry){ .action = "sign-in failed",
		                                  .object = summaries[i].address,
		                                  .detail = detail.data,
		                                  .identity = &nobody,
		                                  .unix_ms = clock_unix_ms() });
	}
	buffer_free(&detail);
	engine->done = failure_audit_on_kept;
	engine->context = failure_audit;
	failure_audit->is_asked = true;
	engine_port_send(failure_audit->port, engine);
}

static void failure_audit_on_timer(struct timer *timer)
{
	struct failure_audit *failure_audit =
	    (struct failure_audit *)(void *)((char *)timer - offsetof(struct failure_audit, timer));

	failure_audit->is_set = false;
	failure_audit->next_ms = loop_now_ms(failure_audit->loop) + PAUSE_MS;
	failure_audit_keep(failure_audit);
}

struct failure_audit *failure_audit_new(struct engine_port *port, struct failures *failures,
                                        struct audit *audit)
{
	struct failure_audit *failure_audit = NEW(struct failure_audit);

	failure_audit->port = port;
	failure_audit->loop = port->loop;
	failure_audit->failures = failures;
	failure_audit->audit = audit;
	failure_audit->timer = TIMER(failure_audit_on_timer);
	return failure_audit;
}

void failure_audit_free(struct failure_audit *failure_audit)
{
	if (!failure_audit)
		return;
	loop_timer_clear(failure_audit->loop, &failure_audit->timer);
	engine_request_free(&failure_audit->engine);
	free(failure_audit);
}

void failure_audit_wake(struct failure_audit *failure_audit)
{
	int64_t now_ms = loop_now_ms(failure_audit->loop);

	if (failure_audit->is_set || failure_audit->is_asked ||
	    !failures_are_pending(failure_audit->failures))
		return;
	failure_audit->is_set = true;
	loop_timer_set(failure_audit->loop, &failure_audit->timer,
	               max64(GATHER_MS, failure_audit->next_ms - now_ms));
}
