/* json_scan.h - JSON that strangers sent, read where it stands, in one go and strictly */
#ifndef WIRE_TEXT_JSON_SCAN_H
#define WIRE_TEXT_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

enum { JSON_SCAN_DEPTH_MAX = 32 };

enum json_kind {
	JSON_KIND_NONE, /* what stands there begins no value */
	JSON_KIND_OBJECT,
	JSON_KIND_ARRAY,
	JSON_KIND_TEXT,
	JSON_KIND_NUMBER,
	JSON_KIND_FLAG,
	JSON_KIND_NULL,
};

/* A place in a text of JSON. Builds nothing: whoever reads asks for one value after the
 * other, in their order. Accepts exactly what json_read does, but for keys that are there
 * twice, which the reader looks for (json_keys). The first thing that is wrong is kept in
 * `error` with line and column; from then on everything returns false. */
struct json_scan {
	const char *begin, *at, *end;
	struct arena *arena; /* texts with escapes are decoded into it */
	struct error *error;
	bool failed;
	bool first; /* no member or element of what was opened last was read yet */
	int depth;
};

struct json_scan json_scan_of(struct text text, struct arena *arena, struct error *error);

/* What comes next; spaces are skipped. */
extern const unsigned char json_value_kinds[256]; /* by the first byte; others are JSON_KIND_NONE */
enum json_kind json_scan_kind_behind_spaces(struct json_scan *scan);
static inline enum json_kind json_scan_kind(struct json_scan *scan)
{
	unsigned char kind =
	    scan->at < scan->end ? json_value_kinds[(unsigned char)*scan->at] : JSON_KIND_NONE;
	return kind != JSON_KIND_NONE ? (enum json_kind)kind : json_scan_kind_behind_spaces(scan);
}

/* Goes into an object or an array. */
bool json_scan_open(struct json_scan *scan, enum json_kind kind);
/* The key of the next member, whose value then comes next; or, of an array, that there is
 * another element. False at the end, which is left behind, or where something is wrong. */
bool json_scan_member(struct json_scan *scan, struct text *key);
bool json_scan_element(struct json_scan *scan);

/* The value that comes next, which must be of the kind. */
bool json_scan_text(struct json_scan *scan, struct text *value);
bool json_scan_flag(struct json_scan *scan, bool *value);
/* Times 10^digits; more decimals than that are an error, and so is what does not fit. */
bool json_scan_decimal(struct json_scan *scan, int digits, int64_t *value);
/* Any value, checked and left behind; `raw` is its text as it stands. */
bool json_scan_skip(struct json_scan *scan, struct text *raw);

/* True if nothing but spaces is left. */
bool json_scan_end(struct json_scan *scan);
/* Says what is wrong at this place. Returns false. */
bool json_scan_fail(struct json_scan *scan, const char *sentence);

/* Keys of one object, to find one that is there twice. Zero-initialised is empty. */
struct json_keys {
	struct text *slots;
	size_t count, capacity; /* a power of two, at most half full */
};
/* False: it was there already. */
bool json_keys_add(struct json_keys *keys, struct arena *arena, struct text key);

#endif
