/* compress.c - gzip both ways, within bounds */
#include "wire/text/compress.h"

#include <limits.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"

enum {
	GZIP_WINDOW = 15 + 16, /* the largest window, with gzip's header */
	ANY_WINDOW = 15 + 32,  /* gzip's header or zlib's */
	DEFLATE_MEMORY = 8,
	/* Most of what the best level saves, at a third of its time. */
	DEFLATE_LEVEL = 3,
	STEP_BYTES = 16 << 10,
};

static void begin_deflate(struct compressor *compressor)
{
	if (compressor->has_deflate) {
		deflateReset(&compressor->deflate);
		return;
	}
	compressor->deflate = (z_stream){ 0 };
	if (deflateInit2(&compressor->deflate, DEFLATE_LEVEL, Z_DEFLATED, GZIP_WINDOW,
	                 DEFLATE_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		panic("zlib cannot be set up to compress");
	compressor->has_deflate = true;
}

static void begin_inflate(struct compressor *compressor)
{
	if (compressor->has_inflate) {
		inflateReset(&compressor->inflate);
		return;
	}
	compressor->inflate = (z_stream){ 0 };
	if (inflateInit2(&compressor->inflate, ANY_WINDOW) != Z_OK)
		panic("zlib cannot be set up to decompress");
	compressor->has_inflate = true;
}

/* Hands the stream its next input and output; zlib counts in unsigned int. */
static void feed(z_stream *stream, struct text in, size_t *taken, struct buffer *out, size_t room)
{
	if (stream->avail_in == 0 && *taken < in.size) {
		size_t size = (size_t)min64((int64_t)(in.size - *taken), INT_MAX);
		/* zlib does not change its input, but does not say so. */
		stream->next_in = (Bytef *)(in.data + *taken);
		stream->avail_in = (uInt)size;
		*taken += size;
	}
	array_reserve(out->data, out->capacity, out->size + room);
	stream->next_out = (Bytef *)out->data + out->size;
	stream->avail_out = (uInt)room;
}

void compress_gzip(struct compressor *compressor, struct text in, struct buffer *out)
{
	begin_deflate(compressor);
	z_stream *stream = &compressor->deflate;
	stream->avail_in = 0;
	size_t taken = 0;
	int status;
	do {
		feed(stream, in, &taken, out, STEP_BYTES);
		status = deflate(stream, taken == in.size ? Z_FINISH : Z_NO_FLUSH);
		INVARIANT(status != Z_STREAM_ERROR);
		out->size += STEP_BYTES - stream->avail_out;
	} while (status != Z_STREAM_END);
}

bool compress_undo(struct compressor *compressor, struct text in, size_t most, struct buffer *out)
{
	begin_inflate(compressor);
	z_stream *stream = &compressor->inflate;
	stream->avail_in = 0;
	size_t taken = 0, before = out->size;
	int status;
	do {
		/* One byte more than may be there, so that too much is seen. */
		size_t left = most - (out->size - before) + 1;
		size_t room = left < STEP_BYTES ? left : STEP_BYTES;
		feed(stream, in, &taken, out, room);
		status = inflate(stream, Z_NO_FLUSH);
		out->size += room - stream->avail_out;
	} while (status == Z_OK && out->size - before <= most);
	if (status == Z_STREAM_END && out->size - before <= most && taken == in.size &&
	    stream->avail_in == 0)
		return true;
	out->size = before;
	return false;
}

void compressor_free(struct compressor *compressor)
{
	if (compressor->has_deflate)
		deflateEnd(&compressor->deflate);
	if (compressor->has_inflate)
		inflateEnd(&compressor->inflate);
	*compressor = (struct compressor){ 0 };
}
