/* provider_client.c - the requests to a provider of OpenID Connect */
#include <stdio.h>
#include <stdlib.h>

#include "api/login/provider_local.h"
#include "api/text/base64.h"
#include "base/clock.h"
#include "base/memory.h"

enum { TIMEOUT_MS = 10000, FRESH_MS = 3600000, KEYS_AGAIN_MS = 1000 };
enum { STATUS_OK = 200, STATUS_SERVER_ERROR = 500 };

static char *copy_or_null(const char *text)
{
	return text && text[0] ? memory_text(text) : NULL;
}

void provider_client_begin(struct provider_client *client, const struct provider_settings *settings)
{
	client->issuer = memory_text(settings->issuer);
	client->client_id = memory_text(settings->client_id);
	client->client_secret = copy_or_null(settings->client_secret);
	client->scopes = memory_text(settings->scopes);
	client->redirect_url = copy_or_null(settings->redirect_url);
	client->user_claim = memory_text(settings->user_claim);
	client->groups_claim = memory_text(settings->groups_claim);
	client->ca_path = copy_or_null(settings->ca_path);
	client->fetcher = fetcher_new();
}

void provider_client_end(struct provider_client *client)
{
	if (client->client_secret)
		explicit_bzero(client->client_secret, strlen(client->client_secret));
	free(client->issuer);
	free(client->client_id);
	free(client->client_secret);
	free(client->scopes);
	free(client->redirect_url);
	free(client->user_claim);
	free(client->groups_claim);
	free(client->ca_path);
	metadata_free(&client->metadata);
	jwk_set_free(&client->keys);
	fetcher_free(client->fetcher);
}

void provider_client_stop(struct provider_client *client)
{
	atomic_store(&client->end_ms, clock_steady_ms());
}

/* Asks for a URL; with a form it is a POST. False with a reason if no answer came. */
static bool fetch(struct provider_client *client, const char *url, const struct buffer *form,
                  const char *authorization, struct fetch_answer *answer, struct error *error)
{
	const char *headers[] = { "Accept: application/json",
		                  form ? "Content-Type: application/x-www-form-urlencoded" : NULL,
		                  form ? authorization : NULL, NULL };
	const struct fetch_request request = {
		.method = form ? "POST" : "GET",
		.url = url,
		.server = "the provider of single sign-on",
		.headers = headers,
		.body = form ? form->data : NULL,
		.body_size = form ? form->size : 0,
		.user_agent = "gpu-scheduler",
		.ca_file = client->ca_path,
		.connect_ms = TIMEOUT_MS,
		.total_ms = TIMEOUT_MS,
		.answer_bytes = METADATA_BYTES_MAX,
		.end_ms = &client->end_ms,
	};

	return fetcher_ask(client->fetcher, &request, answer, error);
}

static struct text body_of(const struct fetch_answer *answer)
{
	return (struct text){ answer->body.data ? answer->body.data : "", answer->body.size };
}

/* A document that is published. */
static bool fetch_document(struct provider_client *client, const char *url,
                           struct fetch_answer *answer, struct error *error)
{
	if (!fetch(client, url, NULL, NULL, answer, error))
		return false;
	if (answer->status == STATUS_OK)
		return true;
	return error_set(error, ERROR_UNAVAILABLE, "the provider answered %d for %.200s",
	                 answer->status, url);
}

static bool find_metadata(struct provider_client *client, struct error *error)
{
	struct fetch_answer answer = { 0 };
	struct buffer url = { 0 };
	struct metadata metadata;
	size_t size = strlen(client->issuer);

	if (clock_steady_ms() < client->metadata_until_ms)
		return true;
	buffer_bytes(&url, client->issuer,
	             size > 0 && client->issuer[size - 1] == '/' ? size - 1 : size);
	buffer_text(&url, "/.well-known/openid-configuration");
	bool ok = fetch_document(client, url.data, &answer, error) &&
	          metadata_read(body_of(&answer), client->issuer, &metadata, error);
	if (ok) {
		metadata_free(&client->metadata);
		client->metadata = metadata;
		client->metadata_until_ms = clock_steady_ms() + FRESH_MS;
	}
	fetch_answer_free(&answer);
	buffer_free(&url);
	return ok;
}

static bool find_keys(struct provider_client *client, struct error *error)
{
	struct fetch_answer answer = { 0 };
	struct jwk_set keys;

	if (clock_steady_ms() < client->keys_until_ms)
		return true;
	bool ok = fetch_document(client, client->metadata.keys_url, &answer, error) &&
	          jwk_set_read(body_of(&answer), &keys, error);
	if (ok) {
		jwk_set_free(&client->keys);
		client->keys = keys;
		client->keys_ms = clock_steady_ms();
		client->keys_until_ms = client->keys_ms + FRESH_MS;
	}
	fetch_answer_free(&answer);
	return ok;
}

static bool check_token(struct provider_client *client, const char *id_token, const char *nonce,
                        struct id_token *token, struct error *error)
{
	const struct id_token_wanted wanted = { .issuer = client->issuer,
		                                .client_id = client->client_id,
		                                .nonce = nonce,
		                                .user_claim = client->user_claim,
		                                .groups_claim = client->groups_claim,
		                                .now_ms = clock_unix_ms() };

	if (!find_keys(client, error))
		return false;
	if (id_token_read(text_of(id_token), &client->keys, &wanted, token, error))
		return true;
	/* The provider may have changed its keys since they were fetched. */
	if (clock_steady_ms() - client->keys_ms < KEYS_AGAIN_MS)
		return false;
	client->keys_until_ms = 0;
	error_clear(error);
	return find_keys(client, error) &&
	       id_token_read(text_of(id_token), &client->keys, &wanted, token, error);
}

/* Names the client in a form, and as a header where it has a secret that goes there. The header is
 * NULL where there is none. */
static char *sign(const struct provider_client *client, struct buffer *form)
{
	struct buffer pair = { 0 }, header = { 0 };

	if (!client->client_secret || client->metadata.posts_secret) {
		form_add(form, "client_id", client->client_id);
		if (client->client_secret)
			form_add(form, "client_secret", client->client_secret);
		return NULL;
	}
	form_encode(&pair, client->client_id);
	buffer_bytes(&pair, ":", 1);
	form_encode(&pair, client->client_secret);
	buffer_text(&header, "Authorization: Basic ");
	base64_write(&header, pair.data, pair.size);
	buffer_text(&header, "");
	explicit_bzero(pair.data, pair.size);
	buffer_free(&pair);
	return header.data;
}

static void wipe(struct buffer *buffer)
{
	if (buffer->data)
		explicit_bzero(buffer->data, buffer->size);
	buffer_free(buffer);
}

/* Posts a form as the client. */
static bool post(struct provider_client *client, const char *url, struct buffer *form,
                 struct fetch_answer *answer, struct error *error)
{
	char *authorization = sign(client, form);
	bool ok = fetch(client, url, form, authorization, answer, error);

	if (ok && answer->status >= STATUS_SERVER_ERROR)
		ok =
		    error_set(error, ERROR_UNAVAILABLE, "the provider answered %d", answer->status);
	if (authorization)
		explicit_bzero(authorization, strlen(authorization));
	free(authorization);
	wipe(form);
	return ok;
}

/* What a provider says when a device's user has not finished yet. */
static enum provider_outcome token_outcome(const struct token_answer *answer, struct error *error)
{
	if (strcmp(answer->error, "authorization_pending") == 0)
		return PROVIDER_PENDING;
	if (strcmp(answer->error, "slow_down") == 0)
		return PROVIDER_SLOW_DOWN;
	error_set(error, ERROR_FORBIDDEN, "the provider refused the sign-in: %s%s%s", answer->error,
	          answer->description[0] ? ": " : "", answer->description);
	return PROVIDER_FAILED;
}

/* Asks the token endpoint, and checks the ID token that it gives. */
static enum provider_outcome ask_token(struct provider_client *client, struct provider_task *task,
                                       struct buffer *form)
{
	struct fetch_answer answer = { 0 };
	struct token_answer token = { 0 };
	enum provider_outcome outcome = PROVIDER_FAILED;

	if (post(client, client->metadata.token_url, form, &answer, &task->error) &&
	    token_answer_read(body_of(&answer), &token, &task->error)) {
		if (!token.id_token)
			outcome = token_outcome(&token, &task->error);
		else if (check_token(client, token.id_token, task->nonce, &task->token,
		                     &task->error))
			outcome = PROVIDER_ANSWERED;
	}
	token_answer_free(&token);
	wipe(&answer.body);
	return outcome;
}

static enum provider_outcome ask_code(struct provider_client *client, struct provider_task *task)
{
	struct buffer form = { 0 };

	form_add(&form, "grant_type", "authorization_code");
	form_add(&form, "code", task->code);
	form_add(&form, "redirect_uri", client->redirect_url ? client->redirect_url : "");
	form_add(&form, "code_verifier", task->verifier);
	return ask_token(client, task, &form);
}

static enum provider_outcome ask_poll(struct provider_client *client, struct provider_task *task)
{
	struct buffer form = { 0 };

	form_add(&form, "grant_type", "urn:ietf:params:oauth:grant-type:device_code");
	form_add(&form, "device_code", task->code);
	return ask_token(client, task, &form);
}

static enum provider_outcome ask_device(struct provider_client *client, struct provider_task *task)
{
	struct fetch_answer answer = { 0 };
	struct buffer form = { 0 };

	if (!client->metadata.device_url) {
		error_set(&task->error, ERROR_NOT_FOUND,
		          "the provider has no sign-in with device codes: use an API token");
		return PROVIDER_FAILED;
	}
	form_add(&form, "scope", client->scopes);
	bool ok = post(client, client->metadata.device_url, &form, &answer, &task->error);
	if (ok && answer.status != STATUS_OK)
		ok = error_set(&task->error, ERROR_UNAVAILABLE,
		               "the provider answered %d for a device code: may the client use "
		               "them?",
		               answer.status);
	ok = ok && device_answer_read(body_of(&answer), &task->device, &task->error);
	wipe(&answer.body);
	return ok ? PROVIDER_ANSWERED : PROVIDER_FAILED;
}

void provider_client_ask(struct provider_client *client, struct provider_task *task)
{
	task->outcome = PROVIDER_FAILED;
	if (!find_metadata(client, &task->error))
		return;
	task->authorization_url = copy_or_null(client->metadata.authorization_url);
	task->end_session_url = copy_or_null(client->metadata.end_session_url);
	switch (task->question) {
	case PROVIDER_FIND:
		task->outcome = PROVIDER_ANSWERED;
		break;
	case PROVIDER_CODE:
		task->outcome = ask_code(client, task);
		break;
	case PROVIDER_DEVICE:
		task->outcome = ask_device(client, task);
		break;
	case PROVIDER_POLL:
		task->outcome = ask_poll(client, task);
		break;
	}
}
