/* signin.c - who asks: tokens that the scheduler told, and verdicts on those that it did not */
#include "gateway/state/signin.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

enum { VERDICT_MS = 30000, REFUSAL_MS = 5000, VERDICTS_MAX = 20000 };

static void hash_bytes_text(const unsigned char *digest, char hex[65])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < 32; i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[64] = '\0';
}

static void hash_token(struct text token, char hex[65])
{
	unsigned char digest[32];

	SHA256((const unsigned char *)token.data, token.size, digest);
	hash_bytes_text(digest, hex);
}

void signin_hold(struct gateway_asker *asker)
{
	asker->holders++;
}

void signin_drop(struct gateway_asker *asker)
{
	if (--asker->holders == 0 && asker->is_gone)
		free(asker);
}

static void asker_remove(struct signin *signin, struct gateway_asker *asker)
{
	text_map_remove(&signin->by_hash, asker->hash);
	signin->verdicts -= asker->is_verdict;
	asker->is_gone = true;
	if (asker->holders == 0)
		free(asker);
}

void signin_free(struct signin *signin)
{
	for (size_t i = 0; i < signin->by_hash.capacity; i++)
		free(signin->by_hash.entries[i].value);
	text_map_free(&signin->by_hash);
}

static struct gateway_asker *asker_made(struct signin *signin, const char *hash)
{
	struct gateway_asker *asker = text_map_get(&signin->by_hash, hash);

	if (!asker) {
		asker = NEW(struct gateway_asker);
		snprintf(asker->hash, sizeof(asker->hash), "%s", hash);
		text_map_put(&signin->by_hash, hash, asker);
	}
	return asker;
}

static void asker_fill(struct gateway_asker *asker, const Gateway__Token *token, int64_t now_ms)
{
	snprintf(asker->key, sizeof(asker->key), "%s", token->id);
	asker->tenant_id = token->administrator ? 0 : token->tenant_id;
	asker->expires_ms = token->expires_ms;
	asker->is_exhausted = token->exhausted;
	limits_set(&asker->limits, token->limits, now_ms);
}

/* Collects before it removes: a map does not like to be changed while it is read. */
static void forget(struct signin *signin, bool (*is_old)(const struct gateway_asker *, int64_t),
                   int64_t time)
{
	struct gateway_asker **old = NULL;
	size_t count = 0, capacity = 0;

	for (size_t i = 0; i < signin->by_hash.capacity; i++) {
		struct gateway_asker *asker = signin->by_hash.entries[i].value;
		if (!asker || !is_old(asker, time))
			continue;
		array_reserve(old, capacity, count + 1);
		old[count++] = asker;
	}
	for (size_t i = 0; i < count; i++)
		asker_remove(signin, old[i]);
	free(old);
}

static bool is_unsaid(const struct gateway_asker *asker, int64_t time)
{
	(void)time;
	return asker->checked_ms < 0;
}

/* When tokens change, so may the verdicts on others. */
void signin_take(struct signin *signin, Gateway__Tokens *tokens, int64_t now_ms)
{
	char hash[65];

	for (size_t i = 0; i < signin->by_hash.capacity; i++)
		if (signin->by_hash.entries[i].value)
			((struct gateway_asker *)signin->by_hash.entries[i].value)->checked_ms = -1;
	for (size_t i = 0; i < tokens->n_tokens; i++) {
		const Gateway__Token *token = tokens->tokens[i];
		if (token->sha256.len != 32)
			continue;
		hash_bytes_text(token->sha256.data, hash);
		struct gateway_asker *asker = asker_made(signin, hash);
		signin->verdicts -= asker->is_verdict;
		asker->is_verdict = asker->is_refused = false;
		asker->checked_ms = 0;
		asker_fill(asker, token, now_ms);
	}
	forget(signin, is_unsaid, 0);
	signin->open = tokens->open;
	signin->known = true;
	signin->version = tokens->version;
	gateway__tokens__free_unpacked(tokens, NULL);
}

static bool is_stale(const struct gateway_asker *asker, int64_t unix_ms)
{
	return asker->is_verdict && asker->checked_ms + VERDICT_MS < unix_ms;
}

static bool is_verdict(const struct gateway_asker *asker, int64_t unix_ms)
{
	(void)unix_ms;
	return asker->is_verdict;
}

void signin_verdict(struct signin *signin, struct text token, const Gateway__Verdict *verdict,
                    int64_t now_ms, int64_t unix_ms)
{
	char hash[65];

	if (signin->verdicts >= VERDICTS_MAX)
		forget(signin, is_stale, unix_ms);
	if (signin->verdicts >= VERDICTS_MAX)
		forget(signin, is_verdict, unix_ms);
	hash_token(token, hash);
	struct gateway_asker *asker = asker_made(signin, hash);
	signin->verdicts += !asker->is_verdict;
	asker->is_verdict = true;
	asker->is_refused = !verdict->admitted || !verdict->token;
	asker->checked_ms = unix_ms;
	if (!asker->is_refused)
		asker_fill(asker, verdict->token, now_ms);
}

enum signin_result signin_find(struct signin *signin, struct text token, int64_t unix_ms,
                               struct gateway_asker **asker, const char **reason)
{
	char hash[65];

	*asker = NULL;
	*reason = "this token is not known";
	if (!signin->known)
		return SIGNIN_EARLY;
	/* Clients insist on a key where none is needed. */
	if (signin->open) {
		*asker = &signin->anyone;
		return SIGNIN_YES;
	}
	if (token.size == 0) {
		*reason = "sign-in is required: send a token as 'Authorization: Bearer', "
			  "'x-api-key' or 'api-key'";
		return SIGNIN_NO;
	}
	if (token.size > SIGNIN_TOKEN_MAX)
		return SIGNIN_NO;
	hash_token(token, hash);
	struct gateway_asker *found = text_map_get(&signin->by_hash, hash);
	if (!found)
		return SIGNIN_ASK;
	if (found->is_verdict &&
	    found->checked_ms + (found->is_refused ? REFUSAL_MS : VERDICT_MS) < unix_ms)
		return SIGNIN_ASK;
	if (found->is_refused)
		return SIGNIN_NO;
	if (found->expires_ms > 0 && found->expires_ms <= unix_ms) {
		*reason = "this token has expired";
		return SIGNIN_NO;
	}
	*asker = found;
	return SIGNIN_YES;
}
