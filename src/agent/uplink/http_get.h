/* http_get.h - one page from a server on this machine */
#ifndef AGENT_UPLINK_HTTP_GET_H
#define AGENT_UPLINK_HTTP_GET_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

/* Asks localhost, over IPv4 or IPv6, for a page and calls `done` once: with the status and the
 * body, or with 0 and "" if nobody answers in time or properly. `key` is the slot's; NULL: none.
 * Redirects are not followed. Never from within the call. */
struct http_get;
struct http_get *http_get_start(uv_loop_t *loop, int64_t port, const char *path, const char *key,
                                int64_t most_ms,
                                void (*done)(void *context, int status, const char *body),
                                void *context);
/* `done` is not called. */
void http_get_cancel(struct http_get *get);

#endif
