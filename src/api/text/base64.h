/* base64.h - bytes as text: base64url as tokens have it, base64 as mail does */
#ifndef API_TEXT_BASE64_H
#define API_TEXT_BASE64_H

#include "base/buffer.h"
#include "base/text.h"

/* Appends base64url without padding (RFC 4648, section 5). */
void base64url_write(struct buffer *text, const void *data, size_t size);
/* Appends the bytes. False for anything that base64url_write would not have written:
 * padding, other characters, bits that are left over and not zero. */
bool base64url_read(struct text text, struct buffer *data);
/* Appends base64 with padding. */
void base64_write(struct buffer *text, const void *data, size_t size);

#endif
