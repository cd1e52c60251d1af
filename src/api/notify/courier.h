/* courier.h - threads that deliver notifications, again and again until they arrive */
#ifndef API_NOTIFY_COURIER_H
#define API_NOTIFY_COURIER_H

#include <stdbool.h>
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
	bool is_billing;  /* signed with its time, by a secret of its own; never given up */
	bool is_unsigned; /* its receiver was named by a job: the tenant's secret is not for it */
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

/* Delivers the parcels of one receiver in order, one at a time. A receiver that does not answer
 * delays others by at most the timeout. */
struct courier;
struct courier *courier_start(const struct courier_settings *settings);
/* Takes the parcel over. */
void courier_put(struct courier *courier, struct parcel *parcel);
int64_t courier_waiting(struct courier *courier);
/* The time that attempts under way have when the courier stops. */
enum { COURIER_GRACE_MS = 1000 };
/* Waits for attempts under way, a little longer than the grace period, and frees undelivered
 * parcels. A thread that still hangs then, in a name lookup for example, is abandoned with its
 * memory: the process is about to end. False if there is such a thread: what `deliver` uses must
 * stay then. */
bool courier_stop(struct courier *courier);

#endif
