/* output.c - bytes that wait to be sent */
#include "wire/net/output.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

enum {
	FREE_BLOCKS_MAX = 1024,
	RING_FIRST_CAPACITY = 8,
	RING_KEPT_CAPACITY = 64, /* a ring that grew beyond this is freed when empty */
};

static struct output_block *block_take(struct output_blocks *blocks, struct account *account)
{
	struct output_block *block = blocks->free;
	if (block) {
		memory_unpoison(block, sizeof(*block));
		blocks->free = block->next;
		blocks->free_count--;
	} else {
		block = memory_alloc(sizeof(*block));
	}
	block->holders = 1;
	block->used = 0;
	block->account = account;
	account_add(account, sizeof(*block));
	return block;
}

static void block_drop(struct output_blocks *blocks, struct output_block *block)
{
	INVARIANT(block->holders > 0);
	if (--block->holders > 0)
		return;
	account_take(block->account, sizeof(*block));
	if (blocks->free_count >= FREE_BLOCKS_MAX) {
		free(block);
		return;
	}
	block->next = blocks->free;
	blocks->free = block;
	blocks->free_count++;
	memory_poison(block, sizeof(*block));
}

void output_blocks_free(struct output_blocks *blocks)
{
	while (blocks->free) {
		struct output_block *block = blocks->free;
		memory_unpoison(block, sizeof(*block));
		blocks->free = block->next;
		free(block);
	}
	blocks->free_count = 0;
}

struct output output_new(struct output_blocks *blocks, struct account *account)
{
	return (struct output){ .blocks = blocks, .account = account };
}

/* The cost of `bytes` of a piece beyond its block. */
static size_t output_cost(const struct output_piece *piece, size_t bytes)
{
	return piece->shared && !piece->shared->is_lasting ? bytes : 0;
}

static struct output_piece *piece_at(const struct output *output, size_t index)
{
	return &output->pieces[(output->first + index) & (output->capacity - 1)];
}

static struct output_piece *output_push(struct output *output)
{
	if (output->count == output->capacity) {
		size_t grown = output->capacity > 0 ? output->capacity * 2 : RING_FIRST_CAPACITY;
		struct output_piece *pieces = memory_alloc(grown * sizeof(*pieces));
		for (size_t i = 0; i < output->count; i++)
			pieces[i] = *piece_at(output, i);
		free(output->pieces);
		output->pieces = pieces;
		output->capacity = grown;
		output->first = 0;
	}
	return piece_at(output, output->count++);
}

static void output_release(struct output *output, struct output_piece *piece)
{
	if (piece->block)
		block_drop(output->blocks, piece->block);
	else
		shared_drop(piece->shared);
}

char *output_reserve(struct output *output, size_t size)
{
	INVARIANT(size <= OUTPUT_BLOCK_BYTES);
	if (output->tail && OUTPUT_BLOCK_BYTES - output->tail->used < size) {
		block_drop(output->blocks, output->tail);
		output->tail = NULL;
	}
	if (!output->tail)
		output->tail = block_take(output->blocks, output->account);
	return output->tail->data + output->tail->used;
}

void output_commit(struct output *output, size_t used)
{
	struct output_block *block = output->tail;
	INVARIANT(block && used <= OUTPUT_BLOCK_BYTES - block->used);
	if (used == 0)
		return;
	const char *data = block->data + block->used;
	block->used += (uint32_t)used;
	output->bytes += used;
	if (output->count > 0) {
		struct output_piece *last = piece_at(output, output->count - 1);
		if (last->block == block && last->data + last->size == data) {
			last->size += used;
			return;
		}
	}
	block->holders++;
	*output_push(output) = (struct output_piece){ .data = data, .size = used, .block = block };
}

void output_bytes(struct output *output, const void *data, size_t size)
{
	const char *from = data;
	while (size > 0) {
		/* What is left of the block is filled before another one is begun. */
		size_t room = output->tail ? OUTPUT_BLOCK_BYTES - output->tail->used : 0;
		size_t part = room > 0 ? room : OUTPUT_BLOCK_BYTES;
		if (part > size)
			part = size;
		memcpy(output_reserve(output, part), from, part);
		output_commit(output, part);
		from += part;
		size -= part;
	}
}

void output_share(struct output *output, struct shared *shared, struct text part)
{
	INVARIANT(part.data >= shared->data &&
	          part.data + part.size <= shared->data + shared->size);
	if (part.size == 0) {
		shared_drop(shared);
		return;
	}
	output->bytes += part.size;
	struct output_piece *piece = output_push(output);
	*piece = (struct output_piece){ .data = part.data, .size = part.size, .shared = shared };
	account_add(output->account, output_cost(piece, part.size));
}

/* Takes the first piece out; its reference goes to the caller. */
static struct output_piece shift(struct output *output)
{
	struct output_piece piece = *piece_at(output, 0);
	output->first = (output->first + 1) & (output->capacity - 1);
	output->count--;
	output->bytes -= piece.size;
	account_take(output->account, output_cost(&piece, piece.size));
	return piece;
}

/* When nothing is left, neither is memory: most connections are idle most of the time. */
static void rest(struct output *output)
{
	if (output->count > 0)
		return;
	if (output->tail) {
		block_drop(output->blocks, output->tail);
		output->tail = NULL;
	}
	if (output->capacity > RING_KEPT_CAPACITY) {
		free(output->pieces);
		output->pieces = NULL;
		output->capacity = 0;
	}
	output->first = 0;
}

void output_move(struct output *output, struct output *from, size_t most)
{
	INVARIANT(output->account == from->account);
	while (most > 0 && from->count > 0) {
		struct output_piece *first = piece_at(from, 0);
		if (first->size > most) {
			struct output_piece part = *first;
			part.size = most;
			if (part.block)
				part.block->holders++;
			else
				shared_hold(part.shared);
			*output_push(output) = part;
			output->bytes += most;
			account_add(output->account, output_cost(&part, most));
			output_consume(from, most);
			return;
		}
		struct output_piece piece = shift(from);
		*output_push(output) = piece;
		output->bytes += piece.size;
		account_add(output->account, output_cost(&piece, piece.size));
		most -= piece.size;
	}
	rest(from);
}

unsigned output_vectors(const struct output *output, uv_buf_t *vectors, unsigned most,
                        size_t most_bytes)
{
	unsigned count = 0;
	for (size_t i = 0; i < output->count && count < most && most_bytes > 0; i++) {
		const struct output_piece *piece = piece_at(output, i);
		size_t size = piece->size < most_bytes ? piece->size : most_bytes;
		/* writev does not write to them, but its type does not say so. */
		vectors[count++] = (uv_buf_t){ (char *)piece->data, size };
		most_bytes -= size;
	}
	return count;
}

void output_consume(struct output *output, size_t bytes)
{
	INVARIANT(bytes <= output->bytes);
	while (bytes > 0) {
		struct output_piece *first = piece_at(output, 0);
		if (first->size > bytes) {
			first->data += bytes;
			first->size -= bytes;
			output->bytes -= bytes;
			account_take(output->account, output_cost(first, bytes));
			return;
		}
		struct output_piece piece = shift(output);
		bytes -= piece.size;
		output_release(output, &piece);
	}
	rest(output);
}

void output_free(struct output *output)
{
	while (output->count > 0) {
		struct output_piece piece = shift(output);
		output_release(output, &piece);
	}
	rest(output);
	free(output->pieces);
	*output = output_new(output->blocks, output->account);
}
