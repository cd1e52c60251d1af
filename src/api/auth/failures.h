/* failures.h - sign-ins that failed: counted, logged in moderation, and summed up */
#ifndef API_AUTH_FAILURES_H
#define API_AUTH_FAILURES_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"

enum sign_in_method { SIGN_IN_NONE, SIGN_IN_TOKEN, SIGN_IN_JWT, SIGN_IN_METHODS };
enum sign_in_fault {
	FAULT_MISSING,   /* no credential at all */
	FAULT_MALFORMED, /* not a token */
	FAULT_UNKNOWN,   /* an API token that does not exist, or was revoked */
	FAULT_EXPIRED,
	FAULT_KEY,       /* no key of that id and algorithm */
	FAULT_SIGNATURE, /* forged */
	FAULT_CLAIMS,    /* another audience or issuer, no role, and so on */
	FAULT_TENANT,    /* for a tenant that does not exist */
	FAULT_LIMITED,   /* too many failures before */
	SIGN_IN_FAULTS
};

struct sign_in_failure {
	enum sign_in_method method;
	enum sign_in_fault fault;
	struct text address;
	const char *account; /* who it claims to be; never the credential itself. May be NULL */
	int64_t now_ms;      /* monotonic */
};

/* Failures of one address since the last summary. */
enum { FAILURE_ADDRESS_MAX = 48, FAILURE_SUMMARIES_MAX = 17 };
struct failure_summary {
	char address[FAILURE_ADDRESS_MAX]; /* "others" where there were too many addresses */
	int64_t count;
	int64_t by[SIGN_IN_METHODS][SIGN_IN_FAULTS];
};

struct failures;
struct failures *failures_new(void);
void failures_free(struct failures *failures);

/* Counts it. A few are logged one by one; the summary tells of the rest. A request without
 * any credential is counted and neither logged nor summed up: browsers begin that way. */
void failures_add(struct failures *failures, const struct sign_in_failure *failure);

/* What came together since the last time; logs it. Returns how many summaries there are. */
size_t failures_take(struct failures *failures, struct failure_summary *summaries);
bool failures_are_pending(const struct failures *failures);
/* "12 failed: jwt signature 10, token unknown 2" */
void failure_summary_print(const struct failure_summary *summary, struct buffer *text);

/* For metrics. */
void failures_print(const struct failures *failures, struct buffer *text);

#endif
