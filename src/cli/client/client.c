/* client.c - requests to the service */
#include "cli/client/client.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { ANSWER_BYTES = 256 << 20 };

void client_close(struct client *client)
{
	fetcher_free(client->fetcher);
	client->fetcher = NULL;
}

void client_escape(struct buffer *to, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_.~:";
	for (; *text; text++) {
		if (strchr(plain, *text))
			buffer_bytes(to, text, 1);
		else
			buffer_print(to, "%%%02X", (unsigned)(unsigned char)*text);
	}
	buffer_text(to, "");
}

void client_call_begin(struct client_call *call, const struct client *client,
                       const struct client_request *request)
{
	const struct address *address = &client->address;
	const char *scheme = address->secure ? "https" : "http";
	size_t count = 0;

	*call = (struct client_call){ 0 };
	buffer_print(&call->url, "%s://%s%s%s", scheme, address->authority, address->prefix,
	             request->path);
	buffer_print(&call->server, "the service at %s://%s", scheme, address->authority);
	if (client->token) {
		buffer_print(&call->authorization, "Authorization: Bearer %s", client->token);
		call->headers[count++] = call->authorization.data;
	}
	if (request->idempotency_key) {
		buffer_print(&call->key, "Idempotency-Key: %s", request->idempotency_key);
		call->headers[count++] = call->key.data;
	}
	bool is_text = request->body && request->body_size == 0;
	if (request->body)
		call->headers[count++] = is_text ? "Content-Type: application/json"
		                                 : "Content-Type: application/octet-stream";
	call->request = (struct fetch_request){
		.method = request->method,
		.url = call->url.data,
		.server = call->server.data,
		.headers = call->headers,
		.body = request->body,
		.body_size = is_text ? strlen(request->body) : request->body_size,
		.user_agent = "gpu-cli/" GPU_SCHEDULER_VERSION,
		.ca_file = client->ca_file,
		.connect_ms = client->connect_ms,
	};
}

void client_call_end(struct client_call *call)
{
	if (call->authorization.data)
		explicit_bzero(call->authorization.data, call->authorization.size);
	buffer_free(&call->url);
	buffer_free(&call->server);
	buffer_free(&call->authorization);
	buffer_free(&call->key);
}

/* Hands out the body of the output, and keeps that of a refusal. */
static void client_take_part(void *context, const char *data, size_t size)
{
	struct client_stream *stream = context;

	if (stream->answer.status == 200)
		stream->part(stream->context, data, size);
	else
		buffer_bytes(&stream->answer.body, data, size);
}

bool client_stream_open(struct client_stream *stream, const struct client *client, const char *path,
                        struct error *error)
{
	return client_stream_send(stream, client,
	                          &(struct client_request){ .method = "GET", .path = path }, error);
}

bool client_stream_send(struct client_stream *stream, const struct client *client,
                        const struct client_request *request, struct error *error)
{
	stream->call = NEW(struct client_call);
	client_call_begin(stream->call, client, request);
	stream->call->request.part = client_take_part;
	stream->call->request.context = stream;
	stream->fetch = fetch_open(&stream->call->request, &stream->answer, error);
	if (!stream->fetch)
		client_stream_close(stream);
	return stream->fetch != NULL;
}

void client_stream_close(struct client_stream *stream)
{
	fetch_close(stream->fetch);
	stream->fetch = NULL;
	fetch_answer_free(&stream->answer);
	if (stream->call)
		client_call_end(stream->call);
	free(stream->call);
	stream->call = NULL;
}

static enum error_code code_of(int status)
{
	switch (status) {
	case 400:
	case 413:
		return ERROR_INVALID;
	case 401:
	case 403:
		return ERROR_FORBIDDEN;
	case 404:
		return ERROR_NOT_FOUND;
	case 422:
		return ERROR_IMPOSSIBLE;
	case 429:
	case 503:
		return ERROR_FULL;
	default:
		return ERROR_CONFLICT;
	}
}

void client_refusal(const struct fetch_answer *answer, const struct client *client,
                    struct error *error)
{
	json_t *document =
	    json_loadb(answer->body.data ? answer->body.data : "", answer->body.size, 0, NULL);
	const char *sentence = json_string_value(json_object_get(document, "error"));
	if (sentence)
		error_set(error, code_of(answer->status), "%s", sentence);
	else if (answer->status == 404)
		error_set(error, ERROR_UNAVAILABLE,
		          "there is no gpu-scheduler at %s%s (it answers with 404)",
		          client->address.authority, client->address.prefix);
	else if (answer->status >= 300 && answer->status < 400)
		error_set(error, ERROR_UNAVAILABLE,
		          "there is no gpu-scheduler at %s%s: it redirects elsewhere (%d)",
		          client->address.authority, client->address.prefix, answer->status);
	else
		error_set(error, code_of(answer->status), "the service answers with %d",
		          answer->status);
	if (answer->status == 401)
		error_set(error, ERROR_FORBIDDEN, "%s%s", sentence ? sentence : "not signed in",
		          client->token ? " (the token that was given is not good: ask an "
		                          "administrator for another)"
		                        : " (sign in with 'gpu-cli login', --token-file FILE or "
		                          "GPU_SCHEDULER_TOKEN)");
	json_decref(document);
}

/* The document in an answer. NULL: it is a refusal, or not JSON. */
static json_t *read_document(const struct client *client, const struct fetch_answer *answer,
                             struct error *error)
{
	if (answer->status >= 300 || answer->status < 200) {
		client_refusal(answer, client, error);
		return NULL;
	}
	if (answer->body.size == 0)
		return json_object();
	json_t *document = json_loadb(answer->body.data, answer->body.size, 0, NULL);
	if (!document)
		error_set(error, ERROR_UNAVAILABLE,
		          "there is no gpu-scheduler at %s%s: its answer is not JSON",
		          client->address.authority, client->address.prefix);
	return document;
}

json_t *client_ask(struct client *client, const struct client_request *request, struct error *error)
{
	struct fetch_answer answer = { 0 };
	struct client_call call;
	json_t *document = NULL;

	if (!client->fetcher)
		client->fetcher = fetcher_new();
	client_call_begin(&call, client, request);
	call.request.total_ms = request->most_ms > 0 ? request->most_ms : client->most_ms;
	call.request.answer_bytes = ANSWER_BYTES;
	if (fetcher_ask(client->fetcher, &call.request, &answer, error))
		document = read_document(client, &answer, error);
	client_call_end(&call);
	fetch_answer_free(&answer);
	return document;
}
