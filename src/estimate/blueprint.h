/* blueprint.h - what a model is made of, as far as its memory depends on it */
#ifndef ESTIMATE_BLUEPRINT_H
#define ESTIMATE_BLUEPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum model_format { MODEL_GGUF, MODEL_SAFETENSORS };

enum {
	BLUEPRINT_LAYERS_MAX = 4096,
	BLUEPRINT_NAME_MAX = 64,
	/* The largest heads, lengths and the like that are believed; real ones are
	 * below 2^20, and products of two stay far from the end of int64_t. */
	BLUEPRINT_NUMBER_MAX = 1 << 30,
};

/* One repeated block of the model. */
struct blueprint_layer {
	int64_t weight_bytes; /* 0 for safetensors, which are divided and not dealt out */
	int64_t kv_heads;     /* 0: it keeps no keys and values */
	int64_t key_length, value_length; /* values per head and token */
	int64_t window;                   /* it looks back this many tokens; 0: over all of them */
	int64_t state_values;             /* a recurrent layer's f32 values for each request */
};

/* All numbers are 0 or more and at most BLUEPRINT_NUMBER_MAX, sums of bytes
 * excepted. `layers` has `layer_count` members, at least one. */
struct blueprint {
	enum model_format format;
	char architecture[BLUEPRINT_NAME_MAX];
	char name[BLUEPRINT_NAME_MAX];       /* what the file calls the model, or "" */
	char value_type[BLUEPRINT_NAME_MAX]; /* what config.json says it computes in, or "" */
	int64_t layer_count;
	struct blueprint_layer *layers;
	int64_t context_length; /* that it was made for; 0: not said */
	int64_t embedding_length, vocabulary, heads, feed_forward_length;
	int64_t experts, experts_used, expert_feed_forward_length; /* 0: no experts */
	int64_t index_bytes;  /* per token and layer, of an index for sparse attention */
	int64_t parameters;   /* values in all tensors */
	int64_t weight_bytes; /* all tensors in the files */

	/* GGUF: tensors that belong to no layer. */
	int64_t input_bytes;  /* the embedding of tokens */
	int64_t output_bytes; /* the way back to tokens; 0: it uses the embedding */
	int64_t other_bytes;

	/* Safetensors: how tensor parallelism treats them. */
	int64_t divided_bytes; /* each GPU has its part */
	int64_t kv_bytes;      /* divided by heads of keys and values: one at least */
	int64_t copied_bytes;  /* each GPU has all */
	int64_t unused_bytes;  /* in the files, but not loaded */
};

/* Makes room for the layers, all zero. Refuses a count that is 0 or absurd. */
bool blueprint_set_layers(struct blueprint *blueprint, int64_t layer_count, struct error *error);
void blueprint_free(struct blueprint *blueprint);

/* Copies a text, cut to the size of the name, control characters replaced. */
void blueprint_text(char to[BLUEPRINT_NAME_MAX], const char *text);

#endif
