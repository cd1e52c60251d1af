/* output.h - bytes that wait to be sent */
#ifndef WIRE_NET_OUTPUT_H
#define WIRE_NET_OUTPUT_H

#include <stdint.h>
#include <uv.h>

#include "wire/text/shared.h"

enum { OUTPUT_BLOCK_BYTES = 16 << 10 };

/* Memory that is kept for somebody, in bytes: of a connection, and through `all` of the
 * connections together. */
struct account {
	size_t bytes;
	struct account *all; /* NULL: none */
};
static inline void account_add(struct account *account, size_t bytes)
{
	for (; account; account = account->all)
		account->bytes += bytes;
}
static inline void account_take(struct account *account, size_t bytes)
{
	for (; account; account = account->all)
		account->bytes -= bytes;
}

/* Memory for small pieces, used again: a steady state allocates nothing. */
struct output_block {
	struct output_block *next; /* of those that are free */
	struct account *account;   /* that pays for it; NULL: nobody */
	uint32_t holders;          /* pieces in it, and the output that still appends to it */
	uint32_t used;
	char data[OUTPUT_BLOCK_BYTES];
};
struct output_blocks {
	struct output_block *free;
	size_t free_count;
};
void output_blocks_free(struct output_blocks *blocks);

/* One of `block` and `shared` is not NULL, and holds the bytes. */
struct output_piece {
	const char *data;
	size_t size;
	struct output_block *block;
	struct shared *shared;
};

/* A queue of pieces in a ring. Small bytes are copied into blocks, one after the other,
 * so that many small answers are one piece. `bytes` is the sum of the pieces; what the
 * account pays for is whole blocks and shared bytes, as that is what memory they take. */
struct output {
	struct output_blocks *blocks;
	struct account *account;   /* NULL: nobody pays */
	struct output_block *tail; /* appended to; NULL: none */
	struct output_piece *pieces;
	size_t first, count, capacity; /* capacity is 0 or a power of two */
	size_t bytes;
};

struct output output_new(struct output_blocks *blocks, struct account *account);
void output_bytes(struct output *output, const void *data, size_t size);
static inline void output_text(struct output *output, struct text text)
{
	output_bytes(output, text.data, text.size);
}
/* Room for `size` bytes, at most OUTPUT_BLOCK_BYTES, in one piece, of which `used` are
 * then there. */
char *output_reserve(struct output *output, size_t size);
void output_commit(struct output *output, size_t used);
/* Appends a part of shared bytes without copying; takes over a reference. */
void output_share(struct output *output, struct shared *shared, struct text part);
/* Appends up to `most` bytes from the front of another with the same account, which loses
 * them. */
void output_move(struct output *output, struct output *from, size_t most);
/* Fills in the next pieces to send, within the limits of pieces and bytes; returns their number. */
unsigned output_vectors(const struct output *output, uv_buf_t *vectors, unsigned most,
                        size_t most_bytes);
/* Takes bytes that were sent off the front. */
void output_consume(struct output *output, size_t bytes);
/* Empties it and gives back its memory; it can be used again. */
void output_free(struct output *output);

#endif
