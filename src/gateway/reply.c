/* reply.c - what clients are told in the shape that they expect */
#include "gateway/reply.h"

#include "base/clock.h"
#include "wire/text/json_writer.h"

static void put_openai(struct json_writer *json, const struct refusal *refusal)
{
	json_open_object(json, NULL);
	json_open_object(json, "error");
	json_put_string(json, "message", refusal->text);
	json_put_string(json, "type", refusal->type);
	json_put_string(json, "param", NULL);
	json_put_string(json, "code", refusal->code);
	json_close(json);
	json_close(json);
}

/* Anthropic has names of its own. */
static const char *anthropic_type(const struct refusal *refusal)
{
	switch (refusal->status) {
	case 400:
		return "invalid_request_error";
	case 401:
		return "authentication_error";
	case 403:
		return "permission_error";
	case 404:
		return "not_found_error";
	case 413:
		return "request_too_large";
	case 429:
		return "rate_limit_error";
	case 503:
	case 504:
		return "overloaded_error";
	default:
		return "api_error";
	}
}

static void put_anthropic(struct json_writer *json, const struct refusal *refusal,
                          const char *request_id)
{
	json_open_object(json, NULL);
	json_put_string(json, "type", "error");
	json_open_object(json, "error");
	json_put_string(json, "type", anthropic_type(refusal));
	json_put_string(json, "message", refusal->text);
	json_close(json);
	json_put_string(json, "request_id", request_id);
	json_close(json);
}

void reply_error(struct buffer *out, enum dialect dialect, const struct refusal *refusal,
                 const char *request_id)
{
	struct json_writer json = json_writer_to(out);

	if (dialect == DIALECT_ANTHROPIC) {
		put_anthropic(&json, refusal, request_id);
	} else if (dialect == DIALECT_OLLAMA) {
		json_open_object(&json, NULL);
		json_put_string(&json, "error", refusal->text);
		json_close(&json);
	} else {
		put_openai(&json, refusal);
	}
}

void reply_error_event(struct buffer *out, enum dialect dialect, const struct refusal *refusal,
                       const char *request_id)
{
	if (dialect == DIALECT_ANTHROPIC)
		buffer_text(out, "event: error\ndata: ");
	else if (dialect == DIALECT_OPENAI)
		buffer_text(out, "data: ");
	reply_error(out, dialect, refusal, request_id);
	buffer_text(out, dialect == DIALECT_OLLAMA ? "\n" : "\n\n");
}

static void put_chunk(struct buffer *out, const char *model)
{
	struct json_writer json = json_writer_to(out);

	buffer_text(out, "data: ");
	json_open_object(&json, NULL);
	json_put_string(&json, "id", "chatcmpl-waiting");
	json_put_string(&json, "object", "chat.completion.chunk");
	json_put_integer(&json, "created", clock_unix_ms() / 1000);
	json_put_string(&json, "model", model);
	json_open_array(&json, "choices");
	json_open_object(&json, NULL);
	json_put_integer(&json, "index", 0);
	json_open_object(&json, "delta");
	json_put_string(&json, "content", "");
	json_close(&json);
	json_put_string(&json, "finish_reason", NULL);
	json_close(&json);
	json_close(&json);
	json_close(&json);
	buffer_text(out, "\n\n");
}

void reply_waiting(struct buffer *out, enum dialect dialect, const char *mode, const char *model,
                   const char *why)
{
	if (dialect == DIALECT_ANTHROPIC) {
		buffer_text(out, "event: ping\ndata: {\"type\": \"ping\"}\n\n");
	} else if (strcmp(mode, "chunk") == 0) {
		put_chunk(out, model);
	} else {
		buffer_text(out, ": waiting: ");
		for (; *why; why++)
			buffer_bytes(out, (unsigned char)*why < ' ' ? " " : why, 1);
		buffer_text(out, "\n\n");
	}
}
