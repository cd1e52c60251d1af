/* kubernetes_webhook.c - pods are judged before the API server takes them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "api/text/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "kube/pod_review.h"
#include "server/kubernetes/kubernetes_local.h"
#include "server/kubernetes/webhook_certificate.h"
#include "wire/loop_state.h"
#include "json/member.h"

#define CONFIGURATIONS "/apis/admissionregistration.k8s.io/v1/"
#define CONFIGURATION_NAME "gpu-scheduler"
enum { REVIEW_BYTES_MAX = 8 << 20, SECRET_BYTES = 24, KEEP_MS = 10000, RENEW_MS = 3600000 };

/* A pod that the core is asked about. */
struct review {
	struct review *next; /* of all that were ever made */
	struct webhook *webhook;
	struct engine_request engine;
	struct exchange *exchange; /* NULL: it is spare */
	char *uid;
	const char *class;
	struct submit_forecast forecast;
};

/* An object of the API server that names the webhook, kept as it should be. */
struct kept_object {
	struct webhook *webhook;
	const char *path;
	struct client_call *call;
	char reason[ERROR_TEXT_MAX]; /* the last complaint; each is told once */
};

struct webhook {
	struct kubernetes *kubernetes;
	struct tls *tls;
	struct handler handler;
	struct review *reviews;
	struct kept_object kept[2];
	char *certificate_path, *key_path;
	struct buffer pem, bundle;         /* the certificate, and in base64 */
	char secret[SECRET_BYTES * 2 + 1]; /* the first part of the path: who knows it may ask */
	int64_t keep_ms, renew_ms;
};

static void answer_review(struct exchange *exchange, const char *uid, const char *refusal,
                          const char *patch)
{
	struct buffer answer = { 0 };

	pod_review_answer(uid, refusal, patch, &answer);
	exchange_respond(exchange, &(struct response){ .content_type = "application/json",
	                                               .body = { answer.data, answer.size } });
	buffer_free(&answer);
}

/* With its end. */
static void write_base64(struct buffer *text, const char *data, size_t size)
{
	base64_write(text, data, size);
	buffer_text(text, "");
}

static void answer_patch(struct exchange *exchange, const struct pod_review *asked)
{
	json_t *patch = pod_review_patch(asked->pod);
	char *text = patch ? json_dumps(patch, JSON_COMPACT) : NULL;
	struct buffer encoded = { 0 };

	if (text)
		write_base64(&encoded, text, strlen(text));
	answer_review(exchange, asked->uid, NULL, text ? encoded.data : NULL);
	buffer_free(&encoded);
	free(text);
	json_decref(patch);
}

static bool review_look(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct review *review = engine->context;

	buffer_clear(&engine->text);
	return sched_forecast(sched, &engine->command.submit, clock_unix_ms(),
	                      engine->command.submit.job.tenant_id, &review->forecast,
	                      &engine->text, error);
}

static void review_done(struct engine_request *engine)
{
	struct review *review = engine->context;
	struct kubernetes *kubernetes = review->webhook->kubernetes;
	const char *reasons = engine->text.data ? engine->text.data : "";
	struct buffer refusal = { 0 };

	/* What the core cannot tell now is no reason to refuse. */
	if (!engine->ok && engine->error.code != ERROR_UNAVAILABLE)
		buffer_text(&refusal, engine->error.text);
	else if (engine->ok && review->forecast.kind == FORECAST_NEVER)
		buffer_print(&refusal, "It would never start: %.*s", (int)strcspn(reasons, "\n"),
		             reasons);
	answer_review(review->exchange, review->uid, refusal.size > 0 ? refusal.data : NULL, NULL);
	buffer_free(&refusal);
	if (!kubernetes->stopped)
		pods_reviewed(kubernetes->pods, review->class);
	free(review->uid);
	review->uid = NULL;
	review->exchange = NULL;
}

static struct review *review_take(struct webhook *webhook)
{
	struct review *review = webhook->reviews;

	while (review && review->exchange)
		review = review->next;
	if (review) {
		engine_request_reset(&review->engine);
		return review;
	}
	review = NEW(struct review);
	review->webhook = webhook;
	review->next = webhook->reviews;
	webhook->reviews = review;
	return review;
}

static void judge_review(struct webhook *webhook, struct exchange *exchange,
                         const struct pod_review *asked)
{
	struct kubernetes *kubernetes = webhook->kubernetes;
	struct review *review = review_take(webhook);
	struct error error = { 0 };

	switch (pods_review(kubernetes->pods, asked->pod, &review->engine.arena,
	                    &review->engine.command.submit, &review->class, &error)) {
	case PODS_REVIEW_FINE:
		answer_review(exchange, asked->uid, NULL, NULL);
		return;
	case PODS_REVIEW_REFUSED:
		answer_review(exchange, asked->uid, error.text, NULL);
		return;
	case PODS_REVIEW_ASK:
		break;
	}
	review->exchange = exchange;
	review->uid = memory_text(asked->uid);
	review->engine.context = review;
	review->engine.look = review_look;
	review->engine.done = review_done;
	engine_port_send(kubernetes->port, &review->engine);
}

static void webhook_request(struct exchange *exchange)
{
	struct webhook *webhook = exchange->handler->context;
	const struct text way = exchange->segments.of[1];
	struct pod_review asked;
	struct error error = { 0 };

	if (!pod_review_read(exchange->body, &asked, &error)) {
		exchange_refuse(exchange, 400, "invalid", "%s", error.text);
		return;
	}
	if (!asked.creates || webhook->kubernetes->stopped ||
	    !pods_review_is_ours(webhook->kubernetes->pods, asked.pod))
		answer_review(exchange, asked.uid, NULL, NULL);
	else if (text_is(way, "mutate"))
		answer_patch(exchange, &asked);
	else
		judge_review(webhook, exchange, &asked);
	json_decref(asked.document);
}

static void webhook_head(struct exchange *exchange)
{
	struct webhook *webhook = exchange->handler->context;
	const struct url_segments *at = &exchange->segments;

	/* Nobody but the API server was told the path. */
	if (exchange->method != METHOD_POST || at->count != 2 ||
	    at->of[0].size != strlen(webhook->secret) ||
	    CRYPTO_memcmp(at->of[0].data, webhook->secret, at->of[0].size) != 0 ||
	    (!text_is(at->of[1], "mutate") && !text_is(at->of[1], "validate"))) {
		exchange_refuse(exchange, 404, "not_found", "there is nothing here");
		return;
	}
	exchange_trust(exchange);
	exchange->body_limit = REVIEW_BYTES_MAX;
}

/* Sets a text member; true if it was another. */
static bool set_member(json_t *object, const char *name, const char *value)
{
	if (strcmp(member_text(object, name), value) == 0)
		return false;
	json_object_set_new(object, name, json_string(value));
	return true;
}

/* Only where it is on the network is an administrator's: the rest of the address is ours. */
static bool set_client(const struct webhook *webhook, json_t *client, const char *way)
{
	json_t *service = json_object_get(client, "service");
	const char *url = member_text(client, "url"), *host = strstr(url, "://");
	struct buffer text = { 0 };
	bool changed;

	if (json_is_object(service)) {
		buffer_print(&text, "/%s/%s", webhook->secret, way);
		changed = set_member(service, "path", text.data);
	} else {
		size_t size = host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/") : 0;
		buffer_print(&text, "%.*s/%s/%s", (int)size, url, webhook->secret, way);
		changed = size > 0 && set_member(client, "url", text.data);
	}
	buffer_free(&text);
	return set_member(client, "caBundle", webhook->bundle.data) || changed;
}

static void kept_complain(struct kept_object *kept, int status, const char *reason)
{
	struct buffer text = { 0 };

	buffer_print(&text, "%d %.200s", status, reason);
	if (strcmp(kept->reason, text.data) != 0)
		log_at(LOG_WARNING, "the webhook's configuration could not be kept up to date",
		       LOG_TEXT("path", kept->path), LOG_NUMBER("status", status),
		       LOG_TEXT("reason", reason));
	snprintf(kept->reason, sizeof(kept->reason), "%s", text.data);
	buffer_free(&text);
}

static void kept_written(void *context, int status, int64_t retry_after_s,
                         const struct buffer *body, const char *reason)
{
	struct kept_object *kept = context;

	(void)retry_after_s, (void)body;
	kept->call = NULL;
	if (status == 200)
		kept->reason[0] = '\0';
	else
		kept_complain(kept, status, reason ? reason : "");
}

static void kept_read(void *context, int status, int64_t retry_after_s, const struct buffer *body,
                      const char *reason)
{
	struct kept_object *kept = context;
	struct kubernetes *kubernetes = kept->webhook->kubernetes;
	const char *way = strstr(kept->path, "mutating") ? "mutate" : "validate";
	json_t *webhook, *object = NULL;
	bool changed = false;
	size_t i;

	(void)retry_after_s;
	kept->call = NULL;
	if (status == 200)
		object = json_loadb(body->data, body->size, 0, NULL);
	if (status != 200 && status != 404) /* 404: nobody asked for it */
		kept_complain(kept, status, reason ? reason : "");
	json_array_foreach(json_object_get(object, "webhooks"), i, webhook)
	{
		changed |= set_client(kept->webhook, json_object_get(webhook, "clientConfig"), way);
	}
	if (changed && !kubernetes->stopped) {
		char *text = json_dumps(object, JSON_COMPACT);
		kept->call =
		    client_start(kubernetes->writes,
		                 &(struct client_request){ .method = "PUT",
		                                           .path = kept->path,
		                                           .content_type = "application/json",
		                                           .body = text,
		                                           .done = kept_written,
		                                           .context = kept });
		free(text);
		kubernetes->dirty = true;
	}
	json_decref(object);
}

static bool keep_certificate(struct webhook *webhook, struct error *error)
{
	const struct config *config = webhook->kubernetes->config;

	buffer_clear(&webhook->pem);
	if (!webhook_certificate_keep(webhook->certificate_path, webhook->key_path,
	                              config->kubernetes.webhook_host, clock_unix_ms() / 1000,
	                              &webhook->pem, error))
		return false;
	buffer_clear(&webhook->bundle);
	write_base64(&webhook->bundle, webhook->pem.data, webhook->pem.size);
	return true;
}

void webhook_tick(struct webhook *webhook)
{
	struct kubernetes *kubernetes = webhook->kubernetes;
	int64_t now_ms = (int64_t)uv_now(kubernetes->loop);
	struct error error = { 0 };

	if (webhook->renew_ms <= now_ms) {
		webhook->renew_ms = now_ms + RENEW_MS;
		if (!keep_certificate(webhook, &error))
			log_at(LOG_ERROR, "the certificate of the webhook could not be renewed",
			       LOG_TEXT("reason", error.text));
	}
	if (webhook->keep_ms > now_ms)
		return;
	webhook->keep_ms = now_ms + KEEP_MS;
	for (size_t i = 0; i < 2; i++) {
		struct kept_object *kept = &webhook->kept[i];
		if (!kept->call)
			kept->call = client_start(kubernetes->writes,
			                          &(struct client_request){ .method = "GET",
			                                                    .path = kept->path,
			                                                    .done = kept_read,
			                                                    .context = kept });
	}
	kubernetes->dirty = true;
}

static bool make_secret(struct webhook *webhook)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[SECRET_BYTES];

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		webhook->secret[2 * i] = digits[bytes[i] >> 4];
		webhook->secret[2 * i + 1] = digits[bytes[i] & 15];
	}
	return true;
}

static bool webhook_open(struct webhook *webhook, struct error *error)
{
	const struct config *config = webhook->kubernetes->config;
	struct loop *loop = webhook->kubernetes->port->loop;

	if (!*config->kubernetes.webhook_host)
		return error_set(error, ERROR_INVALID,
		                 "kubernetes.webhook_port needs kubernetes.webhook_host: the name "
		                 "by which the API server reaches this scheduler");
	if (!make_secret(webhook))
		return error_set(error, ERROR_UNAVAILABLE, "there is no randomness");
	if (!keep_certificate(webhook, error))
		return false;
	webhook->tls = tls_new(loop,
	                       &(struct tls_options){ .certificate_path = webhook->certificate_path,
	                                              .key_path = webhook->key_path },
	                       error);
	return webhook->tls && listener_open(loop,
	                                     &(struct listener_options){
						 .address = config->api.listen,
						 .port = (uint16_t)config->kubernetes.webhook_port,
						 .tls = webhook->tls,
						 .handler = &webhook->handler },
	                                     error);
}

struct webhook *webhook_new(struct kubernetes *kubernetes, struct error *error)
{
	struct webhook *webhook = NEW(struct webhook);
	const char *directory = kubernetes->config->store.data_dir;

	webhook->kubernetes = kubernetes;
	webhook->handler = (struct handler){ .context = webhook,
		                             .head = webhook_head,
		                             .request = webhook_request };
	webhook->kept[0] =
	    (struct kept_object){ .webhook = webhook,
		                  .path = CONFIGURATIONS
		                  "validatingwebhookconfigurations/" CONFIGURATION_NAME };
	webhook->kept[1] =
	    (struct kept_object){ .webhook = webhook,
		                  .path = CONFIGURATIONS
		                  "mutatingwebhookconfigurations/" CONFIGURATION_NAME };
	struct buffer path = { 0 };
	buffer_print(&path, "%s/webhook.crt", directory);
	webhook->certificate_path = memory_text(path.data);
	buffer_clear(&path);
	buffer_print(&path, "%s/webhook.key", directory);
	webhook->key_path = memory_text(path.data);
	buffer_free(&path);
	if (webhook_open(webhook, error))
		return webhook;
	webhook_free(webhook);
	return NULL;
}

void webhook_free(struct webhook *webhook)
{
	if (!webhook)
		return;
	while (webhook->reviews) {
		struct review *review = webhook->reviews;
		webhook->reviews = review->next;
		engine_request_free(&review->engine);
		free(review->uid);
		free(review);
	}
	tls_free(webhook->tls);
	buffer_free(&webhook->pem);
	buffer_free(&webhook->bundle);
	free(webhook->certificate_path);
	free(webhook->key_path);
	free(webhook);
}
