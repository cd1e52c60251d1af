/* body.h - what a request's body says, found without parsing or copying it */
#ifndef GATEWAY_TEXT_BODY_H
#define GATEWAY_TEXT_BODY_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

enum {
	BODY_MODEL_MAX = 512, /* bytes of a model's name */
	BODY_DEPTH_MAX = 512,
	BODY_EDITS_MAX = 4,
};

/* Bytes of the body; `size` 0: there are none. */
struct span {
	size_t at, size;
};

enum body_stream { BODY_STREAM_UNSAID, BODY_STREAM_NO, BODY_STREAM_YES };

/* All spans are of values, with their quotes and brackets. */
struct body_scan {
	char model[BODY_MODEL_MAX + 1]; /* decoded; empty: it names none */
	struct span model_span;
	enum body_stream stream;
	struct span options;       /* of stream_options */
	bool options_filled;       /* they are an object with members */
	struct span include_usage; /* in these */
	bool wants_usage;          /* it is true there */
	struct span tools, system, turns;
	int64_t answer_tokens; /* that it asks for at most; 0: not said */
	int64_t prompt_bytes;  /* of text: images and sound are left out */
	size_t inside;         /* behind the brace that opens the body */
	bool is_empty;         /* {}, perhaps with space inside */
};

/* Finds it all in one pass. False with a reason: it is no JSON object, a name that matters is
 * there twice or in an unusual spelling, or it is nested too deeply. The body stays as it is, and
 * what else is wrong with it is for the server to say. */
bool body_scan(struct text body, struct body_scan *scan, struct error *error);

/* A change: `remove` bytes at `at` become `insert`. */
struct body_edit {
	size_t at, remove;
	struct text insert;
};
/* Changes in the order of their places. Texts live in `made` or for ever. Begins with zeros. */
struct body_edits {
	struct body_edit of[BODY_EDITS_MAX];
	int count;
	struct buffer made;
};
void body_edits_free(struct body_edits *edits);
/* Has the body name `model` (NULL: leaves it) and ask for usage at the end of a stream. */
void body_edit(const struct body_scan *scan, const char *model, bool add_usage,
               struct body_edits *edits);
/* The body's size after the changes. */
size_t body_edited_size(struct text body, const struct body_edits *edits);
/* Appends the changed body. */
void body_write(struct text body, const struct body_edits *edits, struct buffer *out);

/* Tokens that the prompt is expected to have: a quarter of its bytes, at least 1. */
int64_t body_prompt_tokens(const struct body_scan *scan);

/* Chained hashes of the blocks of everything that is the same when a conversation continues: tools,
 * system text, turns. Fills in up to `most`, and says how many. */
enum { BODY_BLOCK_BYTES = 256, BODY_BLOCKS_MAX = 4096 };
int body_prefix(struct text body, const struct body_scan *scan, uint64_t seed, uint64_t *hashes,
                int most);

#endif
