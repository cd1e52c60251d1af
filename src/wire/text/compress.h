/* compress.h - gzip both ways, within bounds */
#ifndef WIRE_TEXT_COMPRESS_H
#define WIRE_TEXT_COMPRESS_H

#include <zlib.h>

#include "base/buffer.h"
#include "base/text.h"

/* Keeps zlib's memory from one use to the next; made when first needed.
 * Zero-initialised has none. */
struct compressor {
	z_stream deflate, inflate;
	bool has_deflate, has_inflate;
};

/* Appends `in` to `out` as gzip. */
void compress_gzip(struct compressor *compressor, struct text in, struct buffer *out);
/* Appends what `in`, gzip or zlib, was before, `most` bytes at most. False if it is
 * longer, is damaged, stops short, or has something behind it: `out` is then as it was. */
bool compress_undo(struct compressor *compressor, struct text in, size_t most, struct buffer *out);
void compressor_free(struct compressor *compressor);

#endif
