/* signin.h - who asks: tokens that the scheduler told, and verdicts on those that it did not */
#ifndef GATEWAY_STATE_SIGNIN_H
#define GATEWAY_STATE_SIGNIN_H

#include "base/map.h"
#include "base/text.h"
#include "gateway/state/names.h"

enum { SIGNIN_KEY_MAX = 64, SIGNIN_TOKEN_MAX = 8192 };

/* Who signed in by one token. It stays the same while the token does. */
struct gateway_asker {
	char key[SIGNIN_KEY_MAX]; /* the token's id; empty: nobody had to sign in */
	char hash[65];
	int64_t tenant_id;              /* 0: an administrator */
	int64_t expires_ms, checked_ms; /* unix; checked: a verdict's time */
	struct gateway_limits limits;
	int64_t holders; /* requests that point to it */
	bool is_verdict, is_refused, is_gone;
	bool is_exhausted; /* its budget for this month is used up */
};

struct signin {
	bool open;
	bool known; /* the scheduler has said something */
	int64_t version;
	struct text_map by_hash; /* of askers by SHA-256 in hexadecimal */
	struct gateway_asker anyone;
	size_t verdicts;
};

enum signin_result {
	SIGNIN_YES,
	SIGNIN_NO,
	SIGNIN_ASK,   /* only the scheduler can tell */
	SIGNIN_EARLY, /* the scheduler has not said anything yet */
};

void signin_free(struct signin *signin);
/* Replaces the tokens; takes `tokens`. */
void signin_take(struct signin *signin, Gateway__Tokens *tokens, int64_t now_ms);
/* What the scheduler said about one that was asked; kept for half a minute. */
void signin_verdict(struct signin *signin, struct text token, const Gateway__Verdict *verdict,
                    int64_t now_ms, int64_t unix_ms);
/* Who asks. Where it is SIGNIN_NO, `reason` says why. */
enum signin_result signin_find(struct signin *signin, struct text token, int64_t unix_ms,
                               struct gateway_asker **asker, const char **reason);
/* A request points to it, or does so no longer. */
void signin_hold(struct gateway_asker *asker);
void signin_drop(struct gateway_asker *asker);

#endif
