/* session_links.h - interactive sessions of tasks: from the scheduler's connection to the keepers
 */
#ifndef AGENT_WORKLOAD_SESSION_LINKS_H
#define AGENT_WORKLOAD_SESSION_LINKS_H

#include <uv.h>

#include "agent/uplink/envelope.h"
#include "agent/workload/works.h"

/* In the loop's thread alone. Keepers hold the sessions; here are the links to them, one for each
 * channel that the scheduler opened. Frames pass in both directions as they are. What a keeper says
 * is read while there is room in the scheduler's connection. */
struct session_links;

struct session_links_settings {
	uv_loop_t *loop;
	const struct works *works;
	bool (*has_room)(void *context);
	void (*send)(void *context, const struct envelope *envelope);
	/* Somebody types in a session of this work: at most once a second. */
	void (*typed)(void *context, int64_t reservation_id);
	void *context;
};
struct session_links *session_links_new(const struct session_links_settings *settings);
void session_links_free(struct session_links *links);

void session_links_open(struct session_links *links, const struct session_open *open);
void session_links_data(struct session_links *links, int64_t channel, struct text frame);
void session_links_close(struct session_links *links, int64_t channel);
/* The scheduler's connection is gone: sessions wait for another client. */
void session_links_clear(struct session_links *links);

#endif
