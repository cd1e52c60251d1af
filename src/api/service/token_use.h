/* token_use.h - tokens of models that were used, by day, tenant, key, model and adapter */
#ifndef API_SERVICE_TOKEN_USE_H
#define API_SERVICE_TOKEN_USE_H

#include <stdint.h>

#include "base/memory.h"
#include "store/schema.h"

#define TOKEN_USE_KIND "token_usage"

struct token_use {
	int64_t requests, prompt, cached, completion, errors, cut;
	int64_t cost; /* millionths of the currency, that the tenant was charged */
};
void token_use_add(struct token_use *to, const struct token_use *more);

/* In the loop's thread alone. What is added is kept by the caller, in the transaction that
 * charges for it. */
struct token_uses;

struct token_uses *token_uses_new(void);
void token_uses_free(struct token_uses *uses);
/* A row that was kept, at the start. */
void token_uses_load(struct token_uses *uses, const struct kept *keep);

/* Adds to the row of that name: DAY/tenant/key/model/adapter. Returns what is to be kept.
 * `owner_id` is the tenant that the cost is credited to. */
struct kept token_uses_add(struct token_uses *uses, const char *name, int64_t owner_id,
                           const struct token_use *use, struct arena *arena);

struct token_line {
	int64_t day_ms, tenant_id, model_id, owner_id;
	const char *key, *adapter;
	const struct token_use *use;
};
/* Calls `each` for every row of a day that has a part in the period. */
void token_uses_each(const struct token_uses *uses, int64_t from_ms, int64_t until_ms,
                     void (*each)(void *context, const struct token_line *line), void *context);
/* Totals of all time, by tenant and model; keys and adapters are empty. */
void token_uses_each_total(const struct token_uses *uses,
                           void (*each)(void *context, const struct token_line *line),
                           void *context);
/* What was charged this month for what was asked with this API token. */
int64_t token_uses_of_key(const struct token_uses *uses, const char *key);

#endif
