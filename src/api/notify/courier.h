/* courier.h - threads that deliver notifications, again and again until they arrive */
#ifndef API_NOTIFY_COURIER_H
#define API_NOTIFY_COURIER_H

#include <stdint.h>

#include "base/error.h"
#include "fetch/fetch.h"
#include "wire/loop.h"

/* One notification for one receiver. All texts are its own; those that do not belong to its
 * kind are NULL. */
struct parcel {
	int64_t number, unix_ms, tenant_id; /* tenant_id 0: the operator */
	char *webhook, *secret;             /* by webhook */
	char *email, *subject;              /* or by e-mail */
	char *event, *body;
	bool only_public;
	int64_t tries;
	const fetch_end_ms *end_ms; /* the courier's: the deadline of a try */
	struct parcel *next;        /* the courier's */
};
void parcel_free(struct parcel *parcel);

/* Settings, given to the threads with each try of a parcel. Texts are copied. */
struct courier_settings {
	struct loop *loop;
	int64_t tries_max, retry_ms, retry_ms_max, timeout_ms;
	/* Tries it once; false with a reason. ERROR_NOT_FOUND: it will never work. In any of
	 * the courier's threads. */
	bool (*deliver)(void *context, const struct parcel *parcel, struct error *error);
	/* The parcel is done, and the callee frees it: delivered, or given up (`error`).
	 * In the loop's thread. */
	void (*over)(void *context, struct parcel *parcel, const struct error *error);
	void *context;
};

/* To one receiver parcels go in the order in which they were given, one at a time; a
 * receiver that does not answer holds up nobody else for longer than the timeout. */
struct courier;
struct courier *courier_start(const struct courier_settings *settings);
/* Takes the parcel over. */
void courier_put(struct courier *courier, struct parcel *parcel);
int64_t courier_waiting(struct courier *courier);
/* Tries that are under way have so long to succeed when it stops. */
enum { COURIER_GRACE_MS = 1000 };
/* Waits for tries under way, for the grace and a little; what was not delivered is freed. What
 * does not come back by then (a name that is looked up for long) is left behind, with what it
 * needs, for a process that ends. */
void courier_stop(struct courier *courier);

#endif
