/* notify_local.h - what the files of notify share */
#ifndef API_NOTIFY_NOTIFY_LOCAL_H
#define API_NOTIFY_NOTIFY_LOCAL_H

#include <pthread.h>

#include "api/engine/engine_pool.h"
#include "api/notify/courier.h"
#include "api/notify/notify.h"
#include "base/map.h"

enum notify_kind {
	NOTIFY_STARTED,
	NOTIFY_COMPLETED,
	NOTIFY_FAILED,
	NOTIFY_CANCELLED,
	NOTIFY_PREEMPTED,
	NOTIFY_BUDGET,
	NOTIFY_KINDS,
};

/* What a tenant wants to be told, and where; texts may be NULL. */
struct notify_tenant {
	char *webhook, *email, *secret, *name;
	unsigned on; /* a bit for each kind */
};

/* Copies of struct notify_settings that threads of the courier read: under the lock. */
struct notify_means {
	char *webhook, *secret, *email, *billing_webhook, *billing_secret;
	char *smtp_host, *smtp_user, *smtp_password, *smtp_from, *ca_path, *service_url;
	struct notify_settings settings; /* numbers and flags alone */
};

struct notify {
	struct engine_port *port; /* gone before this is freed */
	struct loop *loop;
	pthread_mutex_t lock; /* of `means` */
	struct notify_means means;
	struct courier *courier;
	int64_t last_number;
	bool begun;
	struct map tenants;          /* of struct notify_tenant, by id: read when they are needed */
	struct text_map conditions;  /* that hold, and were told: keys to any pointer */
	struct parcel *loaded;       /* until it has begun */
	struct engine_pool requests; /* of struct notify_request */
	struct timer timer;
	int64_t delivered, failed, dropped;
};

/* A message, for all receivers of a tenant or for the operator. */
struct notify_message {
	const char *event;              /* "job.failed" */
	const char *about;              /* what the details are of: "job", "node", ... */
	const struct buffer *details;   /* a JSON object; may be NULL */
	const char *subject, *sentence; /* for mail */
	int64_t unix_ms;
};

/* What the tenant wants; valid until it changes. */
const struct notify_tenant *notify_tenant(struct notify *notify, int64_t tenant_id);
void notify_forget_tenant(struct notify *notify, int64_t tenant_id);
void notify_tell_tenant(struct notify *notify, int64_t tenant_id, enum notify_kind kind,
                        const struct notify_message *message);
/* One that a job names: a URL or a mail address. */
void notify_tell_recipient(struct notify *notify, int64_t tenant_id, enum notify_kind kind,
                           const char *recipient, const struct notify_message *message);
void notify_tell_operator(struct notify *notify, const struct notify_message *message);

/* notify_conditions.c: looks for what an operator cares about. */
void notify_look(struct notify *notify);
void notify_conditions_free(struct notify *notify);

/* notify_parcel.c: as they are kept, and back. NULL: not readable. */
void notify_parcel_write(const struct parcel *parcel, struct buffer *json);
struct parcel *notify_parcel_read(const char *json, int64_t number);

#endif
