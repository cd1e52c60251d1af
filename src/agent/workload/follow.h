/* follow.h - those who read the output of tasks, through the scheduler */
#ifndef AGENT_WORKLOAD_FOLLOW_H
#define AGENT_WORKLOAD_FOLLOW_H

#include <uv.h>

#include "agent/uplink/envelope.h"
#include "agent/workload/works.h"

/* In the loop's thread alone. Each reader gets pieces, never more ahead of what was passed on
 * than its window; one that follows gets more until the task is gone. */
struct follows;

struct follows_settings {
	uv_loop_t *loop;
	const char *state_directory;
	const struct works *works;
	/* Whether there is room for more on the way. */
	bool (*has_room)(void *context);
	void (*send)(void *context, const struct envelope *envelope);
	void *context;
};

struct follows *follows_new(const struct follows_settings *settings);
void follows_free(struct follows *follows);

void follows_request(struct follows *follows, const struct output_request *request);
void follows_taken(struct follows *follows, int64_t request_id, int64_t offset);
void follows_stop(struct follows *follows, int64_t request_id);
/* The connection that they came by is gone. */
void follows_clear(struct follows *follows);

#endif
