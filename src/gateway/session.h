/* session.h - the gateway's side of its session with the scheduler */
#ifndef GATEWAY_SESSION_H
#define GATEWAY_SESSION_H

#include "gateway/program.h"
#include "uplink/uplink.h"

/* Begins to connect. `link` is filled in by the caller but for the loop and the callbacks. NULL
 * with a reason. */
struct session *session_new(struct program *program, const struct uplink_settings *link,
                            struct error *error);
/* Its handles are closed; it is freed when the loop has done that. */
void session_close(struct session *session);

#endif
