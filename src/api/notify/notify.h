/* notify.h - what people asked to be told: by webhook and by e-mail */
#ifndef API_NOTIFY_NOTIFY_H
#define API_NOTIFY_NOTIFY_H

#include "api/engine/engine_port.h"
#include "api/notify/smtp.h"

/* Who is told what:
 * - a tenant, about its jobs, by its payload: "notify_webhook" (a URL), "notify_email" (an
 *   address; "email" where "notify_email" is true), "notify_on" (a list of "started",
 *   "completed", "failed", "preempted", "cancelled"; all but "started" where left out),
 *   "notify_secret" (signs the webhooks; the operator's secret where left out);
 * - the operator, by these settings, about nodes that are lost, GPUs that are hot or fail,
 *   a queue that grows, and tenants over their budget.
 * A delivery is tried again with growing pauses, in the order of events for each receiver,
 * and survives a restart (kept under the kind "notify"). A thread of its own delivers. */
struct notify;

/* Texts are copied; what is NULL or 0 is left out. */
struct notify_settings {
	const char *webhook, *secret;                 /* the operator's: a URL, and what signs */
	const char *email;                            /* the operator's */
	const char *billing_webhook, *billing_secret; /* gets the billing export of each day */
	const char *smtp_host;                        /* NULL: no e-mail */
	int64_t smtp_port; /* 0: 587 with STARTTLS, 465 with TLS, else 25 */
	const char *smtp_user, *smtp_password, *smtp_from;
	enum smtp_security smtp_security;
	const char *ca_path;         /* of certificates to trust; NULL: the system's */
	int64_t queue_threshold;     /* waiting jobs from which the operator is told; 0: never */
	int64_t tries_max, retry_ms; /* 0: 12 tries, from 2 s on, doubling up to 10 min */
	int64_t waiting_max;         /* deliveries that wait at the most; 0: 10,000 */
	bool allow_private;          /* webhooks of tenants may go to private addresses */
	const char *service_url;     /* put before links; may be NULL */
};

struct notify *notify_new(struct engine_port *port, const struct notify_settings *settings,
                          struct error *error);
/* Other settings from now on; false with a reason: nothing has changed. */
bool notify_reload(struct notify *notify, const struct notify_settings *settings,
                   struct error *error);
/* Ends the threads within about COURIER_GRACE_MS. Undelivered notifications stay in the store. */
void notify_free(struct notify *notify);
/* At the start: restores a stored notification; then the engine leads. */
void notify_load(struct notify *notify, const char *key, const char *value);
void notify_begin(struct notify *notify);
/* From the engine's listener: an event that is durable. */
void notify_event(struct notify *notify, const struct event *event);

/* Whether somebody is to get the billing export. */
bool notify_has_billing(const struct notify *notify);
/* Posts the export of that day, until it has arrived, and keeps the day as the last one under the
 * kind "billing". False: nobody is to get it. */
bool notify_tell_billing(struct notify *notify, int64_t day, const char *body);

/* For metrics. */
struct notify_counters {
	int64_t delivered, failed, dropped, waiting;
};
struct notify_counters notify_counters(const struct notify *notify);

#endif
