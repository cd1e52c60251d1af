/* gateway.h - which request goes where and when: the state machine of a gateway, without I/O */
#ifndef GATEWAY_STATE_GATEWAY_H
#define GATEWAY_STATE_GATEWAY_H

#include "base/error.h"
#include "gateway/state/names.h"
#include "gateway/state/signin.h"

enum {
	GATEWAY_BLOCK_TOKENS = 64, /* of a block of a prompt, about */
	GATEWAY_TRIES_MAX = 3,     /* the first and two more */
	GATEWAY_MESSAGE_MAX = 320,
};

/* Why a request is refused, for all dialects. */
struct refusal {
	int status;
	const char *type, *code; /* as OpenAI names them */
	char text[GATEWAY_MESSAGE_MAX];
	int64_t retry_after_s; /* 0: not said */
};

/* A request, from when its body was read to its end. The first part is filled in by the caller. */
struct gateway_call {
	struct gateway_asker *asker;
	const char *model_name; /* as it was asked for */
	enum fair_class class;
	bool is_stream, is_ollama;
	int64_t prompt_tokens, answer_tokens; /* expected */
	int64_t wait_ms;                      /* that the client allows; 0: not said */
	const uint64_t *blocks; /* of its prompt, for prefixes; the caller's, until its end */
	int block_count;

	/* The state machine's. */
	enum gateway_phase {
		CALL_NEW,
		CALL_WAITING,
		CALL_SENT, /* it has a place in `slot` */
		CALL_OVER,
	} phase;
	struct gateway_model *model;
	struct gateway_tenant *tenant;
	struct gateway_slot *slot;
	char adapter[128];
	int64_t began_ms, until_ms; /* until: it is told no */
	int64_t sent_ms;
	int64_t charged;                    /* virtual tokens, as expected */
	int64_t prompt_ahead, answer_ahead; /* its part of the slot's tokens ahead */
	int matched_blocks;                 /* that its slot had */
	int64_t reserved;                   /* tokens in the limits */
	int tries;
	int64_t tried[GATEWAY_TRIES_MAX]; /* slots that failed */
	struct fair_item item;
};

struct gateway_counters {
	int64_t requests, refused, waiting, sent, retried, cancelled, failed;
	int64_t prefix_blocks, prefix_hits; /* asked for; found at the slot that was chosen */
};

struct gateway_settings {
	int64_t queue_ms;     /* how long a request waits at most, if nobody says otherwise */
	int64_t block_tokens; /* 0: GATEWAY_BLOCK_TOKENS */
	int slot_blocks;      /* that a slot is expected to have cached; 0: 8192 */
	/* A call has got a place: it is to be sent to call->slot. Called by gateway_serve alone. */
	void (*send)(void *context, struct gateway_call *call);
	void *context;
};

struct gateway {
	struct gateway_settings settings;
	struct names names;
	struct signin signin;
	struct gateway_counters counters;
	int64_t waiting, in_flight;
	int64_t tenants_waiting;      /* that have something in a queue */
	struct gateway_model *hungry; /* models whose queues are not empty, or were not */
	int64_t shares_version;
	bool news; /* something that the scheduler is to know at once has changed */
};

struct gateway *gateway_new(const struct gateway_settings *settings);
/* No call may be left. */
void gateway_free(struct gateway *gateway);

/* What the scheduler says. Whoever calls these calls gateway_serve afterwards. */
void gateway_routes(struct gateway *gateway, Gateway__Routes *routes, int64_t now_ms);
void gateway_shares(struct gateway *gateway, const Gateway__Shares *shares);
void gateway_served(struct gateway *gateway, const Gateway__Served *served);

/* A request comes. True: it waits or goes, which gateway_serve decides, and it must be ended by
 * gateway_finish. False: it is refused, and has left nothing behind. */
bool gateway_ask(struct gateway *gateway, struct gateway_call *call, int64_t now_ms,
                 struct refusal *refusal);
/* Gives places to those who are next. */
void gateway_serve(struct gateway *gateway, int64_t now_ms);
/* The first part of its answer has come: its prompt delays nobody any more. */
void gateway_begun(struct gateway_call *call);
/* Nothing came from its slot: it waits again, before others, unless it was tried often enough.
 * False: it is still sent, and to be ended. `refused`: nobody listens there. */
bool gateway_retry(struct gateway *gateway, struct gateway_call *call, bool refused,
                   int64_t now_ms);
/* It has ended, whatever came of it, and took that many tokens; negative: not known. */
void gateway_finish(struct gateway *gateway, struct gateway_call *call, int64_t prompt,
                    int64_t completion, int64_t now_ms);

/* Why the call waits, as a sentence, and for how long it is expected to; 0: not known. */
int64_t gateway_explain(const struct gateway *gateway, const struct gateway_call *call,
                        int64_t now_ms, char text[GATEWAY_MESSAGE_MAX]);
/* What is to be answered when it has waited too long. */
void gateway_late(const struct gateway *gateway, const struct gateway_call *call, int64_t now_ms,
                  struct refusal *refusal);

/* What the scheduler is to know, absolute. To be freed with gateway__load__free_unpacked. */
Gateway__Load *gateway_load(const struct gateway *gateway, int64_t now_ms);

/* For limits in headers. */
struct gateway_budget {
	int64_t limit, left, full_ms; /* limit 0: there is none */
};
void gateway_budgets(const struct gateway_call *call, int64_t now_ms,
                     struct gateway_budget *requests, struct gateway_budget *tokens);

void refusal_set(struct refusal *refusal, int status, const char *type, const char *code,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
