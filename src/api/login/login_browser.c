/* login_browser.c - sign-in with a browser: authorization code, PKCE, state, nonce; signing out */
#include <stdio.h>
#include <stdlib.h>

#include "api/auth/streams.h"
#include "api/login/login_local.h"
#include "api/service/service_state.h"
#include "api/text/base64.h"
#include "api/text/digest.h"
#include "base/log.h"
#include "base/memory.h"

enum { SIGN_IN_S = 600 };

static struct provider_task *new_task(enum provider_question question)
{
	struct provider_task *task = NEW(struct provider_task);

	task->question = question;
	return task;
}

static struct text keep_text(struct request *request, const struct buffer *text)
{
	return (struct text){ arena_copy(&request->engine.arena, text->data, text->size),
		              text->size };
}

static void escape(struct buffer *page, const char *text)
{
	for (; *text; text++) {
		if (strchr("<>&\"'", *text))
			buffer_print(page, "&#%d;", *text);
		else
			buffer_bytes(page, text, 1);
	}
}

/* For a person: a page without scripts. */
static void answer_page(struct request *request, int status, const struct error *error)
{
	log_at(LOG_WARNING, "single sign-on failed", LOG_TEXT("reason", error->text),
	       LOG_TEXT("request_id", request->request_id));
	buffer_clear(&request->body);
	buffer_text(&request->body, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
	                            "<title>Sign-in failed</title><h1>Sign-in failed</h1><p>");
	escape(&request->body, error->text);
	buffer_text(&request->body, "</p><p><a href=\"/\">Back to the dashboard</a></p></html>");
	request_header(request, "content-security-policy", TEXT("default-src 'none'"));
	request_header(request, "cache-control", TEXT("no-store"));
	request_answer(request, status, "text/html; charset=utf-8");
}

static void fail_page(struct request *request, int status, const char *sentence)
{
	struct error error = { 0 };

	error_set(&error, ERROR_FORBIDDEN, "%s", sentence);
	answer_page(request, status, &error);
}

static void challenge_of(const char *verifier, char challenge[LOGIN_PROOF_MAX])
{
	unsigned char digest[DIGEST_SIZE];
	struct buffer text = { 0 };

	digest_sha256(text_of(verifier), digest);
	base64url_write(&text, digest, sizeof(digest));
	snprintf(challenge, LOGIN_PROOF_MAX, "%.*s", (int)text.size, text.data);
	buffer_free(&text);
}

/* Where the browser is sent. */
static struct text provider_url(const struct login *login, struct request *request,
                                const char *authorization_url, struct text cookie)
{
	char state[LOGIN_PROOF_MAX], nonce[LOGIN_PROOF_MAX], verifier[LOGIN_PROOF_MAX],
	    challenge[LOGIN_PROOF_MAX];
	struct buffer form = { 0 }, url = { 0 };

	login_derive(login, cookie, "state", state);
	login_derive(login, cookie, "nonce", nonce);
	login_derive(login, cookie, "verifier", verifier);
	challenge_of(verifier, challenge);
	form_add(&form, "response_type", "code");
	form_add(&form, "client_id", login->client_id);
	form_add(&form, "redirect_uri", login->redirect_url);
	form_add(&form, "scope", login->scopes);
	form_add(&form, "state", state);
	form_add(&form, "nonce", nonce);
	form_add(&form, "code_challenge", challenge);
	form_add(&form, "code_challenge_method", "S256");
	buffer_print(&url, "%s%c%s", authorization_url, strchr(authorization_url, '?') ? '&' : '?',
	             form.data);
	struct text kept = keep_text(request, &url);
	buffer_free(&form);
	buffer_free(&url);
	return kept;
}

static void on_found(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct login *login = request->service->login;
	struct provider_task *task = request->state;
	char cookie[LOGIN_PROOF_MAX];
	struct error error = task->error;

	if (task->outcome != PROVIDER_ANSWERED || !login_new_cookie(cookie, &error)) {
		answer_page(request, 502, &error);
	} else {
		request_header(
		    request, "location",
		    provider_url(login, request, task->authorization_url, text_of(cookie)));
		request_header(request, "set-cookie",
		               login_set_cookie(login, request, login_cookie_name(login, false),
		                                cookie, false, SIGN_IN_S));
		request_header(request, "cache-control", TEXT("no-store"));
		request_answer(request, 303, NULL);
	}
	provider_task_free(task);
}

void login_start(struct request *request)
{
	struct login *login = login_of(request);

	if (!login)
		return;
	if (!login->redirect_url)
		request_refuse(request, 404, "not_found",
		               "sign-in with a browser is not set up here (oidc.redirect_url)");
	else
		login_ask(login, request, new_task(PROVIDER_FIND), on_found);
}

/* The dashboard, with a session. */
static void on_begun(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct login *login = request->service->login;
	const struct login_session *session = request->state;

	if (!engine->ok) {
		answer_page(request, 503, &engine->error);
		return;
	}
	login_session_begin(login, session);
	request_header(request, "location", text_of(login->home_url));
	request_header(request, "set-cookie",
	               login_set_cookie(login, request, login_cookie_name(login, true),
	                                session->text, true, login->session_ms / 1000));
	request_header(
	    request, "set-cookie",
	    login_set_cookie(login, request, login_cookie_name(login, false), "", false, 0));
	request_header(request, "cache-control", TEXT("no-store"));
	request_answer(request, 303, NULL);
}

static void on_user(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct login *login = request->service->login;
	struct provider_task *task = request->state;
	struct error error = task->error;

	if (task->outcome != PROVIDER_ANSWERED) {
		if (error.code == ERROR_NONE)
			error_set(&error, ERROR_FORBIDDEN, "the provider did not finish it");
		answer_page(request, error.code == ERROR_FORBIDDEN ? 403 : 502, &error);
	} else if (!login_session_keep(login, request, &task->token, on_begun, &error)) {
		answer_page(request, 403, &error);
	}
	provider_task_free(task);
}

/* True if it is the answer to the question that this browser asked. */
static bool is_own(const struct login *login, struct text cookie, struct text state)
{
	char expected[LOGIN_PROOF_MAX];

	if (!login_cookie_is_fresh(cookie))
		return false;
	login_derive(login, cookie, "state", expected);
	return state.size == strlen(expected) && digest_equal(state.data, expected, state.size);
}

static void show_refusal(struct request *request, struct text code, struct text description)
{
	struct error error = { 0 };
	bool has_reason = description.size > 0;

	error_set(&error, ERROR_FORBIDDEN, "the provider refused the sign-in: %.*s%s%.*s",
	          (int)min64((int64_t)code.size, 60), code.data, has_reason ? ": " : "",
	          has_reason ? (int)min64((int64_t)description.size, 160) : 0,
	          has_reason ? description.data : "");
	answer_page(request, 403, &error);
}

void login_callback(struct request *request)
{
	struct login *login = login_of(request);
	if (!login)
		return;
	const struct query *query = &request->exchange->query;
	struct text cookie = gate_cookie(request->exchange, login_cookie_name(login, false));
	struct text code = query_get(query, "code"), failure = query_get(query, "error");
	struct text issuer = query_get(query, "iss");
	char proof[LOGIN_PROOF_MAX];

	if (!login->redirect_url || !is_own(login, cookie, query_get(query, "state"))) {
		fail_page(request, 403,
		          "this browser did not begin the sign-in, or did so more than ten minutes "
		          "ago: sign in again");
		return;
	}
	if (failure.size > 0 || code.size == 0) {
		show_refusal(request, failure.size > 0 ? failure : TEXT("no code"),
		             query_get(query, "error_description"));
		return;
	}
	if (issuer.data && !text_is(issuer, login->issuer)) {
		fail_page(request, 403, "the answer is of another provider ('iss')");
		return;
	}
	struct provider_task *task = new_task(PROVIDER_CODE);
	task->code = memory_text(code.data);
	login_derive(login, cookie, "verifier", proof);
	task->verifier = memory_text(proof);
	login_derive(login, cookie, "nonce", proof);
	task->nonce = memory_text(proof);
	login_ask(login, request, task, on_user);
}

/* Where the user can sign out of the provider too. */
static const char *sign_out_url(const struct login *login, struct request *request,
                                const struct provider_task *task)
{
	struct buffer form = { 0 }, url = { 0 };

	if (task->outcome != PROVIDER_ANSWERED || !task->end_session_url)
		return NULL;
	form_add(&form, "client_id", login->client_id);
	if (login->home_url)
		form_add(&form, "post_logout_redirect_uri", login->home_url);
	buffer_print(&url, "%s%c%s", task->end_session_url,
	             strchr(task->end_session_url, '?') ? '&' : '?', form.data);
	const char *kept = arena_string(&request->engine.arena, url.data);
	buffer_free(&form);
	buffer_free(&url);
	return kept;
}

static void on_signed_out(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct login *login = request->service->login;
	struct provider_task *task = request->state;
	const char *url = sign_out_url(login, request, task);
	struct json_writer *json = request_object(request);

	provider_task_free(task);
	json_put_string(json, "message", "Signed out");
	json_put_string(json, "provider_url", url);
	json_close(json);
	request_header(
	    request, "set-cookie",
	    login_set_cookie(login, request, login_cookie_name(login, true), "", true, 0));
	request_answer_json(request, 200);
}

static void on_ended(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct service *service = request->service;

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	gate_remove_token(service->gate, request->identity.credential.text);
	streams_check(service->streams);
	login_ask(service->login, request, new_task(PROVIDER_FIND), on_signed_out);
}

void login_out(struct request *request)
{
	const struct credential *credential = &request->identity.credential;
	const struct gate_token *token =
	    credential->kind == CREDENTIAL_TOKEN
		? gate_find_token(request->service->gate, credential->text)
		: NULL;

	if (!request->service->login || !token || !token->user[0]) {
		request_refuse(request, 409, "conflict",
		               "this is not a session of single sign-on: revoke the token instead");
		return;
	}
	struct kept *keep = arena_alloc(&request->engine.arena, sizeof(*keep));
	*keep = (struct kept){ "token", arena_string(&request->engine.arena, token->id), NULL };
	request_keep(request, keep, "sign out", gate_role_name(request->identity.role), on_ended);
}
