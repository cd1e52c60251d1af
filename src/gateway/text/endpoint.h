/* endpoint.h - the paths that clients of models know, and what each of them means */
#ifndef GATEWAY_TEXT_ENDPOINT_H
#define GATEWAY_TEXT_ENDPOINT_H

#include <stdint.h>

#include "base/text.h"

/* Whose shape an error has. */
enum dialect { DIALECT_OPENAI, DIALECT_ANTHROPIC, DIALECT_OLLAMA };

/* What is done with a request. */
enum endpoint_kind {
	ENDPOINT_UNKNOWN,
	ENDPOINT_PASS,   /* handed to a slot of the model that it names */
	ENDPOINT_MODELS, /* the rest is answered by the gateway itself */
	ENDPOINT_MODEL,
	ENDPOINT_TAGS,
	ENDPOINT_PS,
	ENDPOINT_SHOW,
	ENDPOINT_VERSION,
	ENDPOINT_HEALTH,
	ENDPOINT_METRICS,
};

/* A row of the table. `bytes` bounds the body. */
struct endpoint {
	const char *path;
	enum endpoint_kind kind;
	enum dialect dialect;
	bool is_post, is_prefix;
	bool takes_form;  /* multipart/form-data is possible */
	bool streams;     /* streams unless the body says otherwise */
	bool takes_usage; /* knows stream_options.include_usage */
	bool is_ollama;   /* spoken by Ollama's servers alone */
};

/* The row for a path; its kind is ENDPOINT_UNKNOWN where there is none. `rest` gets what is behind
 * the path of a prefix. */
const struct endpoint *endpoint_find(struct text path, struct text *rest);
/* The path of a row by its place, for tests; NULL behind the last. */
const struct endpoint *endpoint_at(int place);

#endif
