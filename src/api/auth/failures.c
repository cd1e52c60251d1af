/* failures.c - sign-ins that failed: counted, logged in moderation, and summed up */
#include "api/auth/failures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/text/metric.h"
#include "base/log.h"
#include "base/memory.h"

/* Lines in the log for single failures, per period. */
enum { LINES_MAX = 10, LINES_MS = 10000 };

static const char *const method_names[] = { "none", "token", "jwt" };
static const char *const fault_names[] = { "missing",   "malformed", "unknown", "expired", "key",
	                                   "signature", "claims",    "tenant",  "limited" };

struct failures {
	int64_t counts[SIGN_IN_METHODS][SIGN_IN_FAULTS];
	struct failure_summary summaries[FAILURE_SUMMARIES_MAX];
	size_t summary_count;
	int64_t period_ms, lines; /* when the period began, and what was logged in it */
};

struct failures *failures_new(void)
{
	return NEW(struct failures);
}

void failures_free(struct failures *failures)
{
	free(failures);
}

static struct failure_summary *summary_of(struct failures *failures, struct text address)
{
	size_t last = FAILURE_SUMMARIES_MAX - 1;

	for (size_t i = 0; i < failures->summary_count; i++)
		if (text_is(address, failures->summaries[i].address))
			return &failures->summaries[i];
	if (failures->summary_count <= last) {
		struct failure_summary *summary = &failures->summaries[failures->summary_count++];
		*summary = (struct failure_summary){ 0 };
		if (failures->summary_count > last)
			address = TEXT("others");
		snprintf(summary->address, sizeof(summary->address), "%.*s", (int)address.size,
		         address.data ? address.data : "");
		return summary;
	}
	return &failures->summaries[last];
}

static void log_one(struct failures *failures, const struct sign_in_failure *failure)
{
	char address[FAILURE_ADDRESS_MAX];

	if (failure->now_ms - failures->period_ms >= LINES_MS) {
		failures->period_ms = failure->now_ms;
		failures->lines = 0;
	}
	if (failures->lines++ >= LINES_MAX)
		return;
	snprintf(address, sizeof(address), "%.*s", (int)failure->address.size,
	         failure->address.data ? failure->address.data : "");
	log_at(LOG_WARNING, "sign-in refused", LOG_TEXT("method", method_names[failure->method]),
	       LOG_TEXT("reason", fault_names[failure->fault]), LOG_TEXT("address", address),
	       LOG_TEXT("account", failure->account ? failure->account : ""));
}

void failures_add(struct failures *failures, const struct sign_in_failure *failure)
{
	failures->counts[failure->method][failure->fault]++;
	if (failure->fault == FAULT_MISSING)
		return;
	struct failure_summary *summary = summary_of(failures, failure->address);
	summary->count++;
	summary->by[failure->method][failure->fault]++;
	log_one(failures, failure);
}

bool failures_are_pending(const struct failures *failures)
{
	return failures->summary_count > 0;
}

void failure_summary_print(const struct failure_summary *summary, struct buffer *text)
{
	const char *separator = ": ";

	buffer_print(text, "%" PRId64 " failed", summary->count);
	for (int method = 0; method < SIGN_IN_METHODS; method++)
		for (int fault = 0; fault < SIGN_IN_FAULTS; fault++) {
			if (summary->by[method][fault] == 0)
				continue;
			buffer_print(text, "%s%s %s %" PRId64, separator, method_names[method],
			             fault_names[fault], summary->by[method][fault]);
			separator = ", ";
		}
}

size_t failures_take(struct failures *failures, struct failure_summary *summaries)
{
	size_t count = failures->summary_count;
	struct buffer text = { 0 };

	failures->summary_count = 0;
	for (size_t i = 0; i < count; i++) {
		summaries[i] = failures->summaries[i];
		buffer_clear(&text);
		failure_summary_print(&summaries[i], &text);
		log_at(LOG_WARNING, "sign-ins failed", LOG_TEXT("address", summaries[i].address),
		       LOG_NUMBER("count", summaries[i].count), LOG_TEXT("detail", text.data));
	}
	buffer_free(&text);
	return count;
}

void failures_print(const struct failures *failures, struct buffer *text)
{
	metric_head(text, METRIC_SIGN_IN_FAILURES_TOTAL);
	for (int method = 0; method < SIGN_IN_METHODS; method++)
		for (int fault = 0; fault < SIGN_IN_FAULTS; fault++)
			if (failures->counts[method][fault] > 0 ||
			    (method == SIGN_IN_NONE) == (fault == FAULT_MISSING))
				buffer_print(text, "%s{method=\"%s\",reason=\"%s\"} %" PRId64 "\n",
				             metric_name(METRIC_SIGN_IN_FAILURES_TOTAL),
				             method_names[method], fault_names[fault],
				             failures->counts[method][fault]);
}
