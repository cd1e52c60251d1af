/* login.h - sign-in by a provider of OpenID Connect: with a browser, and with a device code */
#ifndef API_LOGIN_LOGIN_H
#define API_LOGIN_LOGIN_H

#include "api/login/provider.h"
#include "api/request/request.h"
#include "api/service/service.h"

/* Whoever signs in gets a session: an API token with the user's name and an end. A browser keeps it
 * in a cookie that scripts cannot read; others send it as any token. The provider's own tokens are
 * not kept. */
struct login;

/* NULL with a reason. */
struct login *login_new(struct service *service, const struct login_settings *settings,
                        struct error *error);
/* Before the requests are freed. */
void login_free(struct login *login);

/* GET /api/v1/login: whether people can sign in, and how. */
void login_about(struct request *request);
/* GET /api/v1/login/start: sends a browser to the provider. */
void login_start(struct request *request);
/* GET /api/v1/login/callback: where the provider sends it back to. */
void login_callback(struct request *request);
/* POST /api/v1/login/device: a code for the user to enter at the provider. */
void login_device(struct request *request);
/* POST /api/v1/login/device/token: the session, once the user has done so. */
void login_device_token(struct request *request);
/* POST /api/v1/logout: ends the session that asks. */
void login_out(struct request *request);

#endif
