/* login_local.h - what the files of login share */
#ifndef API_LOGIN_LOGIN_LOCAL_H
#define API_LOGIN_LOGIN_LOCAL_H

#include "api/auth/gate_local.h"
#include "api/auth/rate.h"
#include "api/login/login.h"

#define LOGIN_CALLBACK_PATH "/api/v1/login/callback"

enum { LOGIN_SECRET_BYTES = 32 };

struct login {
	struct service *service;
	struct provider *provider;
	struct group_rules rules;
	char *name, *issuer, *client_id, *scopes;
	char *redirect_url; /* NULL: no sign-in with a browser */
	char *home_url;     /* of the dashboard; NULL where redirect_url is */
	int64_t session_ms;
	int64_t number; /* of issuer and client: sessions of others do not count */
	bool is_secure; /* browsers reach the service by TLS */
	unsigned char secret[LOGIN_SECRET_BYTES];
	struct rates *by_address;
};

/* The login, or NULL: then the request is answered, because there is none, because the service does
 * not lead, or because its address asks too often. */
struct login *login_of(struct request *request);

/* Hands the task to the provider, and the request on to `done`, with the task as its state; `done`
 * frees it. If the provider has too many, the request is answered. */
void login_ask(struct login *login, struct request *request, struct provider_task *task,
               void (*done)(struct engine_request *engine));

/* A session for a user that the provider has vouched for, in the request's arena. */
struct login_session {
	struct gate_token token;
	char text[96];
	const char **dropped; /* ids of sessions that end with this one's beginning; ends with NULL
	                       */
};
/* Keeps a new session, which is the request's state from then on. `done` calls
 * login_session_begin() if it is durable. False with a reason: the user has no role here. */
bool login_session_keep(struct login *login, struct request *request, const struct id_token *user,
                        void (*done)(struct engine_request *engine), struct error *error);
void login_session_begin(struct login *login, const struct login_session *session);

/* What is derived for one sign-in from the value of its cookie, in base64url. */
enum { LOGIN_PROOF_MAX = 64 };
void login_derive(const struct login *login, struct text cookie, const char *purpose,
                  char proof[LOGIN_PROOF_MAX]);
/* A new value for such a cookie. */
bool login_new_cookie(char cookie[LOGIN_PROOF_MAX], struct error *error);
/* True unless it is too old, or nothing that login_new_cookie() made. */
bool login_cookie_is_fresh(struct text cookie);
/* "NAME=VALUE; Path=/; ..." for Set-Cookie, in the request's arena. Seconds 0 removes it. */
struct text login_set_cookie(const struct login *login, struct request *request, const char *name,
                             const char *value, bool is_strict, int64_t seconds);
const char *login_cookie_name(const struct login *login, bool of_session);

#endif
