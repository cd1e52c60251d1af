/* provider.h - a provider of OpenID Connect, asked in a thread of its own */
#ifndef API_LOGIN_PROVIDER_H
#define API_LOGIN_PROVIDER_H

#include "api/auth/id_token.h"
#include "api/login/metadata.h"
#include "wire/loop.h"

/* Texts are copied. */
struct provider_settings {
	const char *issuer, *client_id;
	const char *client_secret; /* NULL: a public client */
	const char *scopes;        /* "openid profile groups" */
	const char *redirect_url;  /* NULL: no sign-in with a browser */
	const char *user_claim, *groups_claim;
	const char *ca_path; /* of certificates to trust; NULL: the system's */
};

enum provider_question {
	PROVIDER_FIND,   /* only its URLs */
	PROVIDER_CODE,   /* `code`, `verifier` and `nonce` of a browser: who signed in */
	PROVIDER_DEVICE, /* begins a sign-in with a device code */
	PROVIDER_POLL,   /* `code` of a device: who signed in, if the user has finished */
};
enum provider_outcome { PROVIDER_FAILED, PROVIDER_ANSWERED, PROVIDER_PENDING, PROVIDER_SLOW_DOWN };

/* A question and its answer. Everything in it is its own; freed with provider_task_free. */
struct provider_task {
	enum provider_question question;
	char *code, *verifier, *nonce;
	/* Called once, in the loop's thread; the task is the callee's again. */
	void (*done)(struct provider_task *task);
	void *context;

	enum provider_outcome outcome;
	struct error error;                        /* PROVIDER_FAILED */
	char *authorization_url, *end_session_url; /* NULL: it has none */
	struct id_token token;
	struct device_answer device;

	struct provider_task *next; /* the provider's */
};
void provider_task_free(struct provider_task *task);

/* What it publishes is fetched when it is needed, kept for an hour, and its keys fetched again when
 * a token names one that is not among them. */
struct provider;
struct provider *provider_start(struct loop *loop, const struct provider_settings *settings);
/* False: too many tasks wait, and the task stays the caller's. */
bool provider_ask(struct provider *provider, struct provider_task *task);
/* Ends the thread. Tasks that wait are freed, and `done` is not called. */
void provider_stop(struct provider *provider);

#endif
