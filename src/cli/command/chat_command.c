/* chat_command.c - gpu-cli ask and chat: talks to a model through the gateway */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/text/text_width.h"
#include "json/member.h"

enum { GATEWAY_PORT = 8000, LOOK_MS = 1000, LINE_BYTES_MAX = 1 << 20 };

static const struct option options[] = {
	OPTION("--gateway", NULL, "URL",
	       "where the gateway is (default: port 8000 of the service's host)"),
	OPTION("--system", NULL, "TEXT", "instructions that go before the first message"),
	OPTION("--max-tokens", NULL, "N", "tokens of an answer at most"),
	{ 0 },
};

/* An answer that is being read. */
struct reply {
	struct buffer line; /* of the stream, not complete yet */
	struct buffer text; /* of the answer, as far as it came */
	struct error error;
	bool failed, has_waited;
};

static void reply_free(struct reply *reply)
{
	buffer_free(&reply->line);
	buffer_free(&reply->text);
}

/* With nothing in it that commands a terminal. Lines stay lines. */
static void print_clean(const char *text)
{
	struct buffer clean = { 0 };

	while (*text) {
		size_t size = strcspn(text, "\n\t");
		char *part = memory_alloc(size + 1);
		memcpy(part, text, size);
		part[size] = '\0';
		text_clean(&clean, part);
		free(part);
		if (text[size])
			buffer_bytes(&clean, &text[size], 1);
		text += size + (text[size] != '\0');
	}
	if (clean.size > 0)
		fwrite(clean.data, 1, clean.size, stdout);
	fflush(stdout);
	buffer_free(&clean);
}

static void reply_fail(struct reply *reply, const json_t *error)
{
	const char *message = json_string_value(json_object_get(error, "message"));

	reply->failed = true;
	error_set(&reply->error, ERROR_CONFLICT, "%s", message ? message : "the answer failed");
}

static void take_event(struct reply *reply, const char *data)
{
	json_t *event = json_loads(data, 0, NULL);
	const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
	const char *content =
	    json_string_value(json_object_get(json_object_get(choice, "delta"), "content"));

	if (json_object_get(event, "error"))
		reply_fail(reply, json_object_get(event, "error"));
	if (content) {
		buffer_text(&reply->text, content);
		print_clean(content);
	}
	json_decref(event);
}

/* Why it waits is for people, and not a part of the answer. */
static void take_reply_line(struct reply *reply, const char *line)
{
	if (strncmp(line, "data: ", 6) == 0) {
		take_event(reply, line + 6);
	} else if (strncmp(line, ": ", 2) == 0 && !reply->has_waited) {
		struct buffer clean = { 0 };
		text_clean(&clean, line + 2);
		fprintf(stderr, "%s\n", clean.data);
		buffer_free(&clean);
		reply->has_waited = true;
	}
}

static void take_part(void *context, const char *data, size_t size)
{
	struct reply *reply = context;

	for (size_t i = 0; i < size && reply->line.size < LINE_BYTES_MAX; i++) {
		if (data[i] != '\n') {
			buffer_bytes(&reply->line, &data[i], 1);
			continue;
		}
		buffer_bytes(&reply->line, "", 1);
		take_reply_line(reply, reply->line.data);
		buffer_clear(&reply->line);
	}
}

/* What a refusal says: the body came as lines that no event was. */
static bool fail_refused(const struct fetch_answer *answer, struct reply *reply)
{
	json_t *document =
	    json_loadb(reply->line.data ? reply->line.data : "", reply->line.size, 0, NULL);
	const char *message =
	    json_string_value(json_object_get(json_object_get(document, "error"), "message"));

	if (message)
		error_set(&reply->error, ERROR_CONFLICT, "%s", message);
	else
		error_set(&reply->error, ERROR_CONFLICT, "the gateway answered with status %d",
		          answer->status);
	json_decref(document);
	return false;
}

static bool read_all(struct fetch_stream *stream, const struct fetch_answer *answer,
                     struct reply *reply)
{
	enum fetch_state state;

	while ((state = fetch_advance(stream, &reply->error)) == FETCH_RUNS)
		fetch_wait(stream, LOOK_MS);
	if (state == FETCH_FAILED)
		return false;
	return answer->status == 200 ? !reply->failed : fail_refused(answer, reply);
}

static json_t *chat_body(const struct arguments *arguments, json_t *messages)
{
	const char *most = arguments_value(arguments, "--max-tokens");
	json_t *body = json_pack("{s:s, s:b, s:O}", "model", arguments->operands[0], "stream", 1,
	                         "messages", messages);

	if (most)
		json_object_set_new(body, "max_tokens", json_integer(atoll(most)));
	return body;
}

/* Asks, and prints the answer as it comes. It is the last of the messages then. */
static bool chat_turn(const struct arguments *arguments, const struct client *gateway,
                      json_t *messages, struct error *error)
{
	json_t *body = chat_body(arguments, messages);
	char *text = json_dumps(body, JSON_COMPACT);
	struct client_request request = { .method = "POST",
		                          .path = "/v1/chat/completions",
		                          .body = text };
	struct client_call call;
	struct fetch_answer answer = { 0 };
	struct reply reply = { 0 };

	client_call_begin(&call, gateway, &request);
	buffer_clear(&call.server);
	buffer_print(&call.server, "the gateway at %s", gateway->address.authority);
	call.request.server = call.server.data;
	call.request.part = take_part;
	call.request.context = &reply;
	struct fetch_stream *stream = fetch_open(&call.request, &answer, &reply.error);
	bool done = stream && read_all(stream, &answer, &reply);
	fetch_close(stream);
	*error = reply.error;
	if (reply.text.size > 0)
		putchar('\n');
	buffer_text(&reply.text, "");
	if (done)
		json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "assistant",
		                                          "content", reply.text.data));
	fetch_answer_free(&answer);
	client_call_end(&call);
	reply_free(&reply);
	free(text);
	json_decref(body);
	return done;
}

static void add_message(json_t *messages, const char *role, const char *text)
{
	json_array_append_new(messages, json_pack("{s:s, s:s}", "role", role, "content", text));
}

/* The lines of stdin, one after the other; what failed does not end the chat. */
static int chat_on(const struct arguments *arguments, const struct client *gateway,
                   json_t *messages)
{
	bool is_terminal = isatty(STDIN_FILENO);
	struct error error = { 0 };
	char *line = NULL;
	size_t capacity = 0;
	int status = CLI_FINE;

	while (fputs(is_terminal ? ">>> " : "", stderr), getline(&line, &capacity, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line)
			continue;
		add_message(messages, "user", line);
		status = CLI_FINE;
		if (chat_turn(arguments, gateway, messages, &error))
			continue;
		status = cli_fail(arguments->command, &error);
		json_array_remove(messages, json_array_size(messages) - 1);
	}
	if (is_terminal)
		putc('\n', stderr);
	free(line);
	return status;
}

/* The service's host, where nothing else is said. */
static bool find_gateway(const struct session *session, struct client *gateway, struct error *error)
{
	const char *url = arguments_value(session->arguments, "--gateway");
	const struct address *service = &session->client.address;
	struct buffer text = { 0 };

	if (!url)
		url = getenv("GPU_SCHEDULER_GATEWAY");
	if (url && *url)
		buffer_text(&text, url);
	else
		buffer_print(&text, strchr(service->host, ':') ? "%s://[%s]:%d" : "%s://%s:%d",
		             service->secure ? "https" : "http", service->host, GATEWAY_PORT);
	*gateway = (struct client){ .token = session->client.token,
		                    .ca_file = session->client.ca_file,
		                    .connect_ms = session->client.connect_ms };
	bool found = address_read(text.data, &gateway->address, error);
	buffer_free(&text);
	return found;
}

static int chat_run(const struct arguments *arguments, const char *question)
{
	const char *system = arguments_value(arguments, "--system");
	struct session session;
	struct client gateway;
	struct error error = { 0 };
	int status;

	if (!session_open(&session, arguments, &status))
		return status;
	json_t *messages = json_array();
	if (system)
		add_message(messages, "system", system);
	if (!find_gateway(&session, &gateway, &error)) {
		status = cli_fail(arguments->command, &error);
	} else if (question) {
		add_message(messages, "user", question);
		status = chat_turn(arguments, &gateway, messages, &error)
		             ? CLI_FINE
		             : cli_fail(arguments->command, &error);
	} else {
		status = chat_on(arguments, &gateway, messages);
	}
	json_decref(messages);
	session_close(&session);
	return status;
}

static int ask_run(const struct arguments *arguments)
{
	if (arguments->operand_count != 2)
		return cli_misused(arguments->command,
		                   "needs a model and a question: ask llama 'What is a GPU?'");
	return chat_run(arguments, arguments->operands[1]);
}

static int chat_start(const struct arguments *arguments)
{
	if (arguments->operand_count != 1)
		return cli_misused(arguments->command, "needs a model: chat llama");
	return chat_run(arguments, NULL);
}

const struct cli_command ask_command = {
	.name = "ask",
	.arguments = "MODEL TEXT [OPTION...]",
	.summary = "ask a model one question, through the gateway",
	.details =
	    "The answer is printed as it comes. What the model waits for is told on\n"
	    "standard error while it is loaded. GPU_SCHEDULER_GATEWAY names the gateway, too.\n",
	.examples = "ask llama 'What is a GPU?'\n"
		    "ask llama:poet --max-tokens 100 'Write about rain.'\n",
	.options = options,
	.asks = true,
	.run = ask_run,
};

const struct cli_command chat_command = {
	.name = "chat",
	.arguments = "MODEL [OPTION...]",
	.summary = "talk to a model, line by line, through the gateway",
	.details = "Each line of standard input is a message; the model sees all before it.\n",
	.examples = "chat llama\n"
		    "chat llama --system 'Answer in one sentence.'\n",
	.options = options,
	.asks = true,
	.run = chat_start,
};
