/* url.c - where a request is going: its target taken apart and decoded */
#include "wire/text/url.h"

#include <stdint.h>

#include "base/memory.h"
#include "wire/text/utf8.h"

static int hexadecimal(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

long url_decode(struct text text, bool plus, char *out)
{
	size_t size = 0;
	bool is_ascii = true;
	for (size_t i = 0; i < text.size; i++) {
		int c = (unsigned char)text.data[i];
		if (c == '+' && plus) {
			c = ' ';
		} else if (c == '%') {
			if (text.size - i < 3)
				return -1;
			int high = hexadecimal(text.data[i + 1]);
			int low = hexadecimal(text.data[i + 2]);
			if (high < 0 || low < 0)
				return -1;
			c = high * 16 + low;
			i += 2;
		}
		if (c < ' ' || c == 0x7f)
			return -1;
		is_ascii = is_ascii && c < 0x80;
		out[size++] = (char)c;
	}
	if (!is_ascii && !utf8_is_valid((struct text){ out, size }))
		return -1;
	return (long)size;
}

/* Splits off 'http://authority' of an absolute target. */
static struct text take_authority(struct text target, struct url *url)
{
	size_t scheme = 0;
	if (target.size > 7 && strncasecmp(target.data, "http://", 7) == 0)
		scheme = 7;
	else if (target.size > 8 && strncasecmp(target.data, "https://", 8) == 0)
		scheme = 8;
	if (scheme == 0)
		return target;
	size_t end = scheme;
	while (end < target.size && target.data[end] != '/' && target.data[end] != '?')
		end++;
	url->authority = (struct text){ target.data + scheme, end - scheme };
	return text_from(target, end);
}

bool url_parse(struct text target, struct url *url, struct error *error)
{
	*url = (struct url){ 0 };
	for (size_t i = 0; i < target.size; i++) {
		unsigned char c = (unsigned char)target.data[i];
		if (c <= ' ' || c >= 0x7f || c == '#')
			return error_set(error, ERROR_INVALID,
			                 "the request's target has a byte that must be "
			                 "percent-encoded, at %zu",
			                 i);
	}
	struct text rest = take_authority(target, url);
	const char *mark = rest.size > 0 ? memchr(rest.data, '?', rest.size) : NULL;
	url->path = rest;
	if (mark) {
		url->path.size = (size_t)(mark - rest.data);
		url->query = text_from(rest, url->path.size + 1);
	}
	if (url->authority.data && url->path.size == 0)
		url->path = TEXT("/");
	if (!text_starts(url->path, "/") && !text_is(target, "*"))
		return error_set(error, ERROR_INVALID,
		                 "the request's target must be a path that starts with '/'");
	return true;
}

/* Decodes one segment to the end of `storage`, which has room. */
static bool add_segment(struct text raw, struct buffer *storage, struct url_segments *segments,
                        struct error *error)
{
	if (segments->count == URL_SEGMENTS_MAX)
		return error_set(error, ERROR_INVALID, "the path has more than %d segments",
		                 URL_SEGMENTS_MAX);
	char *out = storage->data + storage->size;
	long size = url_decode(raw, false, out);
	if (size < 0)
		return error_set(error, ERROR_INVALID,
		                 "segment %zu of the path is not percent-encoded UTF-8 text "
		                 "without control characters",
		                 segments->count + 1);
	struct text text = { out, (size_t)size };
	if (size == 0 || text_is(text, ".") || text_is(text, ".."))
		return error_set(error, ERROR_INVALID, "segment %zu of the path is '%.*s'",
		                 segments->count + 1, (int)size, out);
	out[size] = '\0';
	storage->size += (size_t)size + 1;
	segments->of[segments->count++] = text;
	return true;
}

bool url_segments(struct text path, struct buffer *storage, struct url_segments *segments,
                  struct error *error)
{
	segments->count = 0;
	/* Decoding never makes it longer, and each '/' leaves a byte for a NUL. */
	array_reserve(storage->data, storage->capacity, storage->size + path.size + 1);
	if (text_is(path, "*"))
		return true;
	struct text rest = path;
	while (rest.size > 1) {
		rest = text_from(rest, 1);
		const char *end = memchr(rest.data, '/', rest.size);
		size_t size = end ? (size_t)(end - rest.data) : rest.size;
		struct text raw = { rest.data, size };
		if (!add_segment(raw, storage, segments, error))
			return false;
		rest = text_from(rest, size);
	}
	return true;
}
