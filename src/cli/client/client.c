/* client.c - asks the service */
#include "cli/client/client.h"

#include <string.h>
#include <time.h>

enum { ANSWER_BYTES = 256 << 20, READ_BYTES = 64 << 10 };

void client_close(struct client *client)
{
	connection_close(client->connection);
	client->connection = NULL;
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

void client_write_head(const struct client *client, const struct client_request *request,
                       const char *extra, struct buffer *to)
{
	buffer_print(to, "%s %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: gpu-cli/%s\r\n",
	             request->method, client->address.prefix, request->path,
	             client->address.authority, GPU_SCHEDULER_VERSION);
	if (client->token)
		buffer_print(to, "Authorization: Bearer %s\r\n", client->token);
	if (request->idempotency_key)
		buffer_print(to, "Idempotency-Key: %s\r\n", request->idempotency_key);
	if (request->body)
		buffer_print(to, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
		             strlen(request->body));
	else if (strcmp(request->method, "GET") != 0)
		buffer_text(to, "Content-Length: 0\r\n");
	buffer_print(to, "%s\r\n", extra);
}

static bool send_request(struct connection *connection, const struct client *client,
                         const struct client_request *request, struct error *error)
{
	struct buffer bytes = { 0 };
	client_write_head(client, request, "", &bytes);
	if (request->body)
		buffer_text(&bytes, request->body);
	bool sent = connection_write(connection, bytes.data, bytes.size, client->most_ms, error);
	/* There is a token in it. */
	explicit_bzero(bytes.data, bytes.size);
	buffer_free(&bytes);
	return sent;
}

struct connection *client_start(const struct client *client, const struct client_request *request,
                                struct error *error)
{
	struct connection *connection =
	    connection_open(&client->address, client->ca_file, client->connect_ms, error);
	if (connection && !send_request(connection, client, request, error)) {
		connection_close(connection);
		connection = NULL;
	}
	return connection;
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads until the answer is there. A signal does not end the wait. */
static bool receive(struct connection *connection, struct http_answer *answer, int64_t most_ms,
                    struct error *error)
{
	static char data[READ_BYTES];
	int64_t deadline_ms = now_ms() + most_ms;
	while (!answer->complete) {
		int64_t left_ms = deadline_ms - now_ms();
		if (left_ms <= 0)
			return error_set(error, ERROR_UNAVAILABLE,
			                 "the service did not answer within %lld s",
			                 (long long)(most_ms / 1000));
		long got = connection_read(connection, data, sizeof(data), left_ms, error);
		if (got == CONNECTION_FAILED)
			return false;
		if (got == CONNECTION_ENDED)
			return http_answer_end(answer, error);
		if (got > 0 && !http_answer_take(answer, data, (size_t)got, error))
			return false;
	}
	return true;
}

/* Asks on the connection that is left from before, if there is one, and otherwise, or where
 * that was closed meanwhile, on a new one. */
static bool exchange(struct client *client, const struct client_request *request,
                     struct http_answer *answer, struct error *error)
{
	int64_t most_ms = request->most_ms > 0 ? request->most_ms : client->most_ms;
	bool was_open = client->connection != NULL;
	for (;;) {
		http_answer_begin(answer);
		answer->most_bytes = ANSWER_BYTES;
		if (!client->connection)
			client->connection = connection_open(&client->address, client->ca_file,
			                                     client->connect_ms, error);
		if (!client->connection)
			return false;
		bool good = send_request(client->connection, client, request, error) &&
		            receive(client->connection, answer, most_ms, error);
		bool again = !good && was_open && !answer->has_headers;
		if (!good || !answer->keeps_alive)
			client_close(client);
		if (!again)
			return good;
		http_answer_free(answer);
		error_clear(error);
		was_open = false;
	}
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

void client_refusal(const struct http_answer *answer, const struct client *client,
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

json_t *client_ask(struct client *client, const struct client_request *request, struct error *error)
{
	struct http_answer answer = { 0 };
	json_t *document = NULL;
	if (!exchange(client, request, &answer, error)) {
		http_answer_free(&answer);
		return NULL;
	}
	if (answer.status >= 400 || answer.status < 200) {
		client_refusal(&answer, client, error);
	} else if (answer.body.size == 0) {
		document = json_object();
	} else {
		json_error_t reason;
		document = json_loadb(answer.body.data, answer.body.size, 0, &reason);
		if (!document)
			error_set(error, ERROR_UNAVAILABLE,
			          "there is no gpu-scheduler at %s%s: its answer is not JSON",
			          client->address.authority, client->address.prefix);
	}
	http_answer_free(&answer);
	return document;
}
