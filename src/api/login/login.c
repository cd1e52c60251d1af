/* login.c - sign-in by a provider: what all ways have in common, and sessions */
#include "api/login/login.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "api/login/login_local.h"
#include "api/service/service_state.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

/* Each sign-in has the service ask the provider. */
enum { ADDRESS_PER_S = 2, ADDRESS_BURST = 60, ADDRESSES_MAX = 1024 };
enum { USER_SESSIONS_MAX = 32, DROPPED_MAX = 64 };

static bool read_redirect(struct login *login, const char *url, struct error *error)
{
	size_t size = strlen(url), path = sizeof(LOGIN_CALLBACK_PATH) - 1;

	if (!metadata_url_is_safe(url) || size <= path ||
	    strcmp(url + size - path, LOGIN_CALLBACK_PATH) != 0)
		return error_set(error, ERROR_INVALID,
		                 "oidc.redirect_url is not https://HOST" LOGIN_CALLBACK_PATH
		                 " (http:// is for this machine alone)");
	struct buffer home = { 0 };
	buffer_bytes(&home, url, size - path);
	buffer_text(&home, "/");
	login->redirect_url = memory_text(url);
	login->home_url = home.data;
	login->is_secure = strncmp(url, "https://", 8) == 0;
	return true;
}

static bool login_prepare(struct login *login, const struct login_settings *settings,
                          struct error *error)
{
	if (!metadata_url_is_safe(settings->issuer))
		return error_set(error, ERROR_INVALID,
		                 "oidc.issuer is not an https:// URL (http:// is for this machine "
		                 "alone)");
	if (getrandom(login->secret, sizeof(login->secret), 0) != (ssize_t)sizeof(login->secret))
		return error_set(error, ERROR_UNAVAILABLE, "the system gives no random bytes");
	if (settings->redirect_url && !read_redirect(login, settings->redirect_url, error))
		return false;
	struct error reason = { 0 };
	return group_rules_read(settings->groups, &login->rules, &reason) ||
	       error_set(error, ERROR_INVALID, "oidc.groups: %s", reason.text);
}

struct login *login_new(struct service *service, const struct login_settings *settings,
                        struct error *error)
{
	struct login *login = NEW(struct login);

	login->service = service;
	login->name = memory_text(settings->name);
	login->issuer = memory_text(settings->issuer);
	login->client_id = memory_text(settings->client_id);
	login->scopes = memory_text(settings->scopes);
	login->session_ms = settings->session_ms;
	uint64_t number = hash_combine(hash_text(settings->issuer), hash_text(settings->client_id));
	login->number = (int64_t)(number >> 2 | 1);
	login->by_address = rates_new(ADDRESS_PER_S, ADDRESS_BURST, ADDRESSES_MAX);
	if (!login_prepare(login, settings, error)) {
		login_free(login);
		return NULL;
	}
	login->provider =
	    provider_start(service->port->loop,
	                   &(struct provider_settings){ .issuer = settings->issuer,
	                                                .client_id = settings->client_id,
	                                                .client_secret = settings->client_secret,
	                                                .scopes = settings->scopes,
	                                                .redirect_url = settings->redirect_url,
	                                                .user_claim = settings->user_claim,
	                                                .groups_claim = settings->groups_claim,
	                                                .ca_path = settings->ca_path });
	gate_use_sessions(service->gate, login->number, login_cookie_name(login, true));
	return login;
}

void login_free(struct login *login)
{
	if (!login)
		return;
	provider_stop(login->provider);
	group_rules_free(&login->rules);
	rates_free(login->by_address);
	explicit_bzero(login->secret, sizeof(login->secret));
	free(login->name);
	free(login->issuer);
	free(login->client_id);
	free(login->scopes);
	free(login->redirect_url);
	free(login->home_url);
	free(login);
}

struct login *login_of(struct request *request)
{
	struct login *login = request->service->login;
	const struct exchange *exchange = request->exchange;
	int64_t wait_ms = 0;

	if (!login) {
		request_refuse(request, 404, "not_found",
		               "single sign-on is not set up here (oidc.issuer)");
		return NULL;
	}
	if (!request->service->leading) {
		request_refuse(request, 503, "unavailable",
		               "this scheduler is not the active one: it is starting, or another "
		               "one is");
		return NULL;
	}
	uint64_t address = hash_bytes(exchange->peer_address.data, exchange->peer_address.size);
	if (!rates_take(login->by_address, address, exchange->received_ms, &wait_ms)) {
		request_refuse(request, 429, "too_many_requests",
		               "too many sign-ins from this address: try again in %lld s",
		               (long long)max64(1, (wait_ms + 999) / 1000));
		return NULL;
	}
	return login;
}

static void on_answered(struct provider_task *task)
{
	struct request *request = task->context;

	if (request->phase == REQUEST_OVER)
		provider_task_free(task);
	else
		request->state = task;
	request_return(request);
}

void login_ask(struct login *login, struct request *request, struct provider_task *task,
               void (*done)(struct engine_request *engine))
{
	task->done = on_answered;
	task->context = request;
	if (provider_ask(login->provider, task)) {
		request_lend(request, done);
		return;
	}
	provider_task_free(task);
	request_refuse(request, 503, "unavailable",
	               "too many sign-ins wait for the provider: try again in a moment");
}

static bool find_role(struct login *login, const struct id_token *user, struct identity *identity,
                      struct error *error)
{
	const struct group_rule *rule = group_rules_find(&login->rules, user->groups);

	if (!rule)
		return error_set(
		    error, ERROR_FORBIDDEN,
		    "%s is in no group that may sign in here: an administrator can add "
		    "one to oidc.groups",
		    user->user);
	*identity = (struct identity){ .role = rule->role };
	if (!gate_find_tenant(login->service->gate, rule->tenant, &identity->tenant_id))
		return error_set(error, ERROR_FORBIDDEN,
		                 "the tenant '%.60s' of the group '%.80s' does not exist",
		                 rule->tenant, rule->group);
	return true;
}

/* Sessions that have ended, and the user's oldest where there are too many. */
static const char **find_dropped(const struct login *login, struct request *request,
                                 const struct gate_token *fresh)
{
	const struct gate_token *const *list;
	size_t count = gate_tokens(login->service->gate, &list), found = 0, own = 0;
	const char **ids = arena_alloc(&request->engine.arena, (DROPPED_MAX + 1) * sizeof(*ids));

	for (size_t i = count; i-- > 0 && found < DROPPED_MAX;) {
		const struct gate_token *token = list[i];
		if (!token->user[0])
			continue;
		bool is_own = strcmp(token->user, fresh->user) == 0;
		if (token->expires_ms <= fresh->created_ms || token->provider != login->number ||
		    (is_own && ++own >= USER_SESSIONS_MAX))
			ids[found++] = arena_string(&request->engine.arena, token->id);
	}
	ids[found] = NULL;
	return ids;
}

static const char *write_token(struct request *request, const struct gate_token *token)
{
	struct buffer json = { 0 };

	gate_token_write(token, &json);
	const char *value = arena_string(&request->engine.arena, json.data);
	buffer_free(&json);
	return value;
}

bool login_session_keep(struct login *login, struct request *request, const struct id_token *user,
                        void (*done)(struct engine_request *engine), struct error *error)
{
	struct arena *arena = &request->engine.arena;
	struct login_session *session = arena_alloc(arena, sizeof(*session));
	struct gate_token *token = &session->token;
	size_t count = 0;

	*session = (struct login_session){ .text = "" };
	if (!find_role(login, user, &token->identity, error) ||
	    !gate_make_token(token, session->text, error))
		return false;
	token->created_ms = clock_unix_ms();
	token->expires_ms = token->created_ms + login->session_ms;
	token->provider = login->number;
	snprintf(token->user, sizeof(token->user), "%s", user->user);
	snprintf(token->identity.name, sizeof(token->identity.name), "user %s", user->user);
	session->dropped = find_dropped(login, request, token);
	while (session->dropped[count])
		count++;
	struct kept *keeps = arena_alloc(arena, (count + 1) * sizeof(*keeps));
	keeps[0] = (struct kept){ "token", token->id, write_token(request, token) };
	for (size_t i = 0; i < count; i++)
		keeps[i + 1] = (struct kept){ "token", session->dropped[i], NULL };
	request->identity = token->identity;
	request->state = session;
	request_keep_all(request, keeps, count + 1, "sign in", gate_role_name(token->identity.role),
	                 done);
	return true;
}

void login_session_begin(struct login *login, const struct login_session *session)
{
	for (size_t i = 0; session->dropped[i]; i++)
		gate_remove_token(login->service->gate, session->dropped[i]);
	gate_put_token(login->service->gate, &session->token);
}

void login_about(struct request *request)
{
	const struct login *login = request->service->login;
	struct json_writer *json = request_object(request);

	json_put_string(json, "provider", login ? login->name : NULL);
	json_put_flag(json, "browser", login && login->redirect_url);
	json_close(json);
	request_answer_json(request, 200);
}
