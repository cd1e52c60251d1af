/* provider_local.h - the requests to a provider, for its thread */
#ifndef API_LOGIN_PROVIDER_LOCAL_H
#define API_LOGIN_PROVIDER_LOCAL_H

#include "api/login/provider.h"
#include "fetch/fetch.h"

/* Used by one thread, but for `end_ms`. */
struct provider_client {
	char *issuer, *client_id, *client_secret, *scopes, *redirect_url, *user_claim,
	    *groups_claim, *ca_path;
	fetch_end_ms end_ms; /* 0 until it ends */
	struct fetcher *fetcher;
	struct metadata metadata;
	struct jwk_set keys;
	int64_t metadata_until_ms, keys_until_ms, keys_ms; /* steady */
};

void provider_client_begin(struct provider_client *client,
                           const struct provider_settings *settings);
void provider_client_end(struct provider_client *client);
/* From another thread: gives up a request that is under way. */
void provider_client_stop(struct provider_client *client);
/* Answers the task, within some 20 seconds. */
void provider_client_ask(struct provider_client *client, struct provider_task *task);

#endif
