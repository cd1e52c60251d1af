/* endpoint.c - the paths that clients of models know, and what each of them means */
#include "gateway/text/endpoint.h"

#define PASS(its_path, ...)                                                                        \
	{                                                                                          \
		.path = (its_path), .kind = ENDPOINT_PASS, .is_post = true, __VA_ARGS__            \
	}

static const struct endpoint table[] = {
	PASS("/v1/chat/completions", .takes_usage = true),
	PASS("/v1/completions", .takes_usage = true),
	PASS("/v1/embeddings", .dialect = DIALECT_OPENAI),
	PASS("/v1/messages", .dialect = DIALECT_ANTHROPIC),
	PASS("/v1/messages/count_tokens", .dialect = DIALECT_ANTHROPIC),
	PASS("/v1/responses", .dialect = DIALECT_OPENAI),
	PASS("/v1/rerank", .dialect = DIALECT_OPENAI),
	PASS("/v1/audio/", .is_prefix = true, .takes_form = true),
	PASS("/v1/images/", .is_prefix = true, .takes_form = true),
	PASS("/tokenize", .dialect = DIALECT_OPENAI),
	PASS("/api/chat", .dialect = DIALECT_OLLAMA, .streams = true, .is_ollama = true),
	PASS("/api/generate", .dialect = DIALECT_OLLAMA, .streams = true, .is_ollama = true),
	PASS("/api/embed", .dialect = DIALECT_OLLAMA, .is_ollama = true),
	{ .path = "/v1/models", .kind = ENDPOINT_MODELS },
	{ .path = "/v1/models/", .kind = ENDPOINT_MODEL, .is_prefix = true },
	{ .path = "/api/tags", .kind = ENDPOINT_TAGS, .dialect = DIALECT_OLLAMA },
	{ .path = "/api/ps", .kind = ENDPOINT_PS, .dialect = DIALECT_OLLAMA },
	{ .path = "/api/show", .kind = ENDPOINT_SHOW, .dialect = DIALECT_OLLAMA, .is_post = true },
	{ .path = "/api/version", .kind = ENDPOINT_VERSION, .dialect = DIALECT_OLLAMA },
	{ .path = "/health", .kind = ENDPOINT_HEALTH },
	{ .path = "/metrics", .kind = ENDPOINT_METRICS },
	{ .path = NULL, .kind = ENDPOINT_UNKNOWN },
};

const struct endpoint *endpoint_find(struct text path, struct text *rest)
{
	const struct endpoint *endpoint = table;

	*rest = (struct text){ 0 };
	for (; endpoint->path; endpoint++) {
		if (!endpoint->is_prefix && text_is(path, endpoint->path))
			break;
		size_t size = strlen(endpoint->path);
		if (endpoint->is_prefix && path.size > size && text_starts(path, endpoint->path)) {
			*rest = text_from(path, size);
			break;
		}
	}
	return endpoint;
}

const struct endpoint *endpoint_at(int place)
{
	return place >= 0 && place < (int)(sizeof(table) / sizeof(*table)) - 1 ? &table[place]
	                                                                       : NULL;
}
