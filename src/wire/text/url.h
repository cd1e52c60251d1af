/* url.h - where a request is going: its target taken apart and decoded */
#ifndef WIRE_TEXT_URL_H
#define WIRE_TEXT_URL_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

/* A target such as /api/v1/jobs?limit=5, an absolute http://host/path, or *. `path`
 * and `query` point into it. The query is without its '?'; its data is NULL if there
 * is no '?'. Authority is that of an absolute target, else NULL. */
struct url {
	struct text authority, path, query;
};

/* Takes a target apart. Refuses bytes that may not be in one (spaces, controls, what
 * is not ASCII) and fragments. */
bool url_parse(struct text target, struct url *url, struct error *error);

enum { URL_SEGMENTS_MAX = 16 };

/* The segments of a path, percent-decoded: /api/v1/jobs is three, / is none. Each is
 * valid UTF-8 without controls and has a NUL behind it. A '/' that was encoded is part
 * of its segment. An empty segment at the end is dropped, in the middle refused, and
 * so are '.' and '..'. Texts are appended to `storage` and point into it, so it must
 * not grow while they are used. */
struct url_segments {
	struct text of[URL_SEGMENTS_MAX];
	size_t count;
};
bool url_segments(struct text path, struct buffer *storage, struct url_segments *segments,
                  struct error *error);

/* Decodes %XX, and '+' as a space if `plus`, into `out`, which has room for text.size
 * bytes. The size decoded, or -1: not two hexadecimal digits, a control character,
 * or not UTF-8. */
long url_decode(struct text text, bool plus, char *out);

#endif
