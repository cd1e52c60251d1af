/* body.c - what a request's body says, found without parsing or copying it */
#include "gateway/text/body.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/number.h"

enum { KEY_MAX = 64 };

/* Where the scan is. `bad` says why it stopped. */
struct cursor {
	const char *at, *end, *start;
	const char *bad;
	int64_t media_bytes; /* of strings that hold no text */
};

static bool cursor_fail(struct cursor *cursor, const char *why)
{
	if (!cursor->bad)
		cursor->bad = why;
	return false;
}

static void skip_space(struct cursor *cursor)
{
	while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\n' ||
	                                    *cursor->at == '\r' || *cursor->at == '\t'))
		cursor->at++;
}

/* At an opening quote: goes behind the closing one. `inner` gets what is between them. */
static bool skip_string(struct cursor *cursor, struct text *inner)
{
	const char *first = cursor->at + 1, *from = first;

	while (from < cursor->end) {
		const char *quote = memchr(from, '"', (size_t)(cursor->end - from));
		if (!quote)
			break;
		const char *escape = quote;
		while (escape > from && escape[-1] == '\\')
			escape--;
		from = quote + 1;
		if ((quote - escape) % 2 == 0) {
			*inner = (struct text){ first, (size_t)(quote - first) };
			cursor->at = from;
			return true;
		}
	}
	return cursor_fail(cursor, "a string has no end");
}

static bool is_media(struct text string)
{
	return text_starts(string, "data:") ||
	       (string.size > 4096 && !memchr(string.data, ' ', 4096));
}

static bool skip_text(struct cursor *cursor)
{
	struct text inner;

	if (!skip_string(cursor, &inner))
		return false;
	if (is_media(inner))
		cursor->media_bytes += (int64_t)inner.size;
	return true;
}

static bool is_scalar(char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
	       (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '+' || byte == '.';
}

static bool skip_scalar(struct cursor *cursor)
{
	const char *from = cursor->at;

	while (cursor->at < cursor->end && is_scalar(*cursor->at))
		cursor->at++;
	return cursor->at > from || cursor_fail(cursor, "a value is missing");
}

/* An object or an array, brackets matched. What is between them is for the server to judge. */
static bool skip_nested(struct cursor *cursor)
{
	char closes[BODY_DEPTH_MAX];
	int depth = 0;

	while (cursor->at < cursor->end) {
		char byte = *cursor->at;
		if (byte == '"') {
			if (!skip_text(cursor))
				return false;
			continue;
		}
		if (byte == '{' || byte == '[') {
			if (depth == BODY_DEPTH_MAX)
				return cursor_fail(cursor, "it is nested too deeply");
			closes[depth++] = byte == '{' ? '}' : ']';
		} else if (byte == '}' || byte == ']') {
			if (closes[--depth] != byte)
				return cursor_fail(cursor, "a bracket does not match");
		}
		cursor->at++;
		if (depth == 0)
			return true;
	}
	return cursor_fail(cursor, "it ends too early");
}

static bool skip_value(struct cursor *cursor, struct span *span)
{
	const char *from;

	skip_space(cursor);
	from = cursor->at;
	bool good = false;
	if (from == cursor->end)
		good = cursor_fail(cursor, "it ends too early");
	else if (*from == '"')
		good = skip_text(cursor);
	else if (*from == '{' || *from == '[')
		good = skip_nested(cursor);
	else
		good = skip_scalar(cursor);
	*span = (struct span){ (size_t)(from - cursor->start), (size_t)(cursor->at - from) };
	return good;
}

static int hex_of(char byte)
{
	return byte >= '0' && byte <= '9'   ? byte - '0'
	       : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
	       : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
	                                    : -1;
}

/* The four digits of \uXXXX; -1: they are none. */
static int32_t unit_of(const char *at, const char *end)
{
	int32_t unit = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_of(at[i]);
		if (digit < 0)
			return -1;
		unit = unit * 16 + digit;
	}
	return unit;
}

static size_t put_utf8(char *out, int32_t code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 63));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 63));
		out[2] = (char)(0x80 | (code & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 63));
	out[2] = (char)(0x80 | (code >> 6 & 63));
	out[3] = (char)(0x80 | (code & 63));
	return 4;
}

/* The character of an escape that begins behind the backslash; -1: there is no such. */
static int32_t escaped(const char **at, const char *end)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *name = *at < end && **at ? strchr(names, **at) : NULL;

	if (name) {
		(*at)++;
		return values[name - names];
	}
	if (*at == end || **at != 'u')
		return -1;
	int32_t unit = unit_of(*at + 1, end);
	*at += unit < 0 ? 0 : 5;
	if (unit >= 0xd800 && unit < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' &&
	    (*at)[1] == 'u') {
		int32_t low = unit_of(*at + 2, end);
		if (low < 0xdc00 || low > 0xdfff)
			return -1;
		*at += 6;
		return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
	}
	return unit == 0 || (unit >= 0xd800 && unit < 0xe000) ? -1 : unit;
}

/* Decodes the inside of a string, with a NUL behind it; false: too long, or not well formed. */
static bool decode(struct text inner, char *out, size_t most)
{
	const char *at = inner.data, *end = inner.data + inner.size;
	size_t size = 0;

	while (at < end) {
		int32_t code = (unsigned char)*at;
		if (size + 4 > most || code == 0)
			return false;
		if (code != '\\') {
			out[size++] = *at++;
			continue;
		}
		at++;
		code = escaped(&at, end);
		if (code <= 0)
			return false;
		size += put_utf8(out + size, code);
	}
	out[size] = '\0';
	return true;
}

static struct text span_text(const struct cursor *cursor, struct span span)
{
	return (struct text){ cursor->start + span.at, span.size };
}

static int64_t number_of(struct text text)
{
	int64_t number = 0;

	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' || number > INT32_MAX)
			return i == text.size || number > INT32_MAX ? number : 0;
		number = number * 10 + text.data[i] - '0';
	}
	return number;
}

static bool scan_model(struct cursor *cursor, struct body_scan *scan)
{
	struct text value = span_text(cursor, scan->model_span);

	if (value.data[0] != '"')
		return cursor_fail(cursor, "model is not a string");
	value = (struct text){ value.data + 1, value.size - 2 };
	if (!decode(value, scan->model, BODY_MODEL_MAX))
		return cursor_fail(cursor, "model is too long, or not a proper string");
	return true;
}

/* The cursor is at an opening brace, and stays there. */
static bool is_empty_object(const struct cursor *cursor)
{
	struct cursor inside = { .at = cursor->at + 1, .end = cursor->end };

	skip_space(&inside);
	return inside.at < inside.end && *inside.at == '}';
}

typedef bool take_member(struct cursor *cursor, struct body_scan *scan, const char *key);

/* The members of an object that the cursor is at. A key that is longer than any of ours has no
 * name here. */
static bool scan_object(struct cursor *cursor, struct body_scan *scan, take_member *take)
{
	struct text inner;
	char key[KEY_MAX + 4];

	cursor->at++;
	skip_space(cursor);
	if (cursor->at < cursor->end && *cursor->at == '}') {
		cursor->at++;
		return true;
	}
	for (;;) {
		skip_space(cursor);
		if (cursor->at == cursor->end)
			return cursor_fail(cursor, "it ends too early");
		if (*cursor->at != '"')
			return cursor_fail(cursor, "a name is missing");
		if (!skip_string(cursor, &inner))
			return false;
		if (inner.size > (size_t)KEY_MAX * 6 || !decode(inner, key, sizeof(key)))
			key[0] = '\0';
		skip_space(cursor);
		if (cursor->at == cursor->end || *cursor->at++ != ':')
			return cursor_fail(cursor, "a colon is missing");
		if (!take(cursor, scan, key))
			return false;
		skip_space(cursor);
		if (cursor->at == cursor->end)
			return cursor_fail(cursor, "it ends too early");
		char byte = *cursor->at++;
		if (byte == '}')
			return true;
		if (byte != ',')
			return cursor_fail(cursor, "a comma is missing");
	}
}

static bool take_option(struct cursor *cursor, struct body_scan *scan, const char *key)
{
	struct span span;

	if (!skip_value(cursor, &span))
		return false;
	if (strcmp(key, "include_usage") != 0)
		return true;
	if (scan->include_usage.size > 0)
		return cursor_fail(cursor, "include_usage is there twice");
	scan->include_usage = span;
	scan->wants_usage = text_is(span_text(cursor, span), "true");
	return true;
}

static bool scan_options(struct cursor *cursor, struct body_scan *scan)
{
	struct text value = span_text(cursor, scan->options);
	struct cursor inner = { .at = value.data,
		                .end = value.data + value.size,
		                .start = cursor->start };

	if (value.data[0] != '{')
		return true;
	scan->options_filled = !is_empty_object(&inner);
	if (scan_object(&inner, scan, take_option))
		return true;
	return cursor_fail(cursor, inner.bad);
}

/* The names whose values matter, and where these go. */
static struct span *place_of(struct body_scan *scan, const char *key, struct span *stream,
                             struct span *tokens)
{
	const struct {
		const char *name;
		struct span *span;
	} places[] = {
		{ "model", &scan->model_span },
		{ "stream", stream },
		{ "stream_options", &scan->options },
		{ "tools", &scan->tools },
		{ "system", &scan->system },
		{ "instructions", &scan->system },
		{ "messages", &scan->turns },
		{ "prompt", &scan->turns },
		{ "input", &scan->turns },
		{ "max_tokens", tokens },
		{ "max_completion_tokens", tokens },
		{ "max_output_tokens", tokens },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (strcasecmp(key, places[i].name) == 0)
			return places[i].span;
	return NULL;
}

static bool is_strict(const char *key)
{
	return strcasecmp(key, "model") == 0 || strcasecmp(key, "stream") == 0 ||
	       strcasecmp(key, "stream_options") == 0;
}

static bool is_lower(const char *key)
{
	for (; *key; key++)
		if (*key >= 'A' && *key <= 'Z')
			return false;
	return true;
}

static bool take_body_member(struct cursor *cursor, struct body_scan *scan, const char *key)
{
	struct span stream = { 0 }, tokens = { 0 }, span;
	struct span *place = place_of(scan, key, &stream, &tokens);

	if (!skip_value(cursor, &span))
		return false;
	if (!place)
		return true;
	/* Some servers take a name in any case, and the last of two: what we saw would not be
	 * what they do. */
	if (is_strict(key) && !is_lower(key))
		return cursor_fail(cursor, "model and stream are written in lower case");
	if (place->size > 0 && is_strict(key))
		return cursor_fail(cursor, "model or stream_options is there twice");
	*place = span;
	struct text value = span_text(cursor, span);
	if (place == &scan->model_span)
		return scan_model(cursor, scan);
	if (place == &scan->options)
		return scan_options(cursor, scan);
	if (place == &stream) {
		if (scan->stream != BODY_STREAM_UNSAID)
			return cursor_fail(cursor, "stream is there twice");
		scan->stream = text_is(value, "true") ? BODY_STREAM_YES : BODY_STREAM_NO;
	}
	if (place == &tokens)
		scan->answer_tokens = number_of(value);
	return true;
}

bool body_scan(struct text body, struct body_scan *scan, struct error *error)
{
	struct cursor cursor = { .at = body.data, .start = body.data };
	bool good;

	*scan = (struct body_scan){ 0 };
	cursor.end = body.size > 0 ? body.data + body.size : body.data;
	skip_space(&cursor);
	if (cursor.at == cursor.end || *cursor.at != '{') {
		good = cursor_fail(&cursor, "it must be an object");
	} else {
		scan->inside = (size_t)(cursor.at - cursor.start) + 1;
		scan->is_empty = is_empty_object(&cursor);
		good = scan_object(&cursor, scan, take_body_member);
		skip_space(&cursor);
		if (good && cursor.at != cursor.end)
			good = cursor_fail(&cursor, "something follows it");
	}
	scan->prompt_bytes = max64(
	    (int64_t)(scan->tools.size + scan->system.size + scan->turns.size) - cursor.media_bytes,
	    0);
	return good ||
	       error_set(error, ERROR_INVALID, "the body is not proper JSON: %s, at byte %zu",
	                 cursor.bad, (size_t)(cursor.at - cursor.start));
}

static void edit_add(struct body_edits *edits, size_t at, size_t remove, struct text insert)
{
	int place = edits->count++;

	for (; place > 0 && edits->of[place - 1].at > at; place--)
		edits->of[place] = edits->of[place - 1];
	edits->of[place] = (struct body_edit){ at, remove, insert };
}

static struct text quote(const char *name, struct buffer *made)
{
	buffer_clear(made);
	buffer_bytes(made, "\"", 1);
	for (; *name; name++) {
		if (*name == '"' || *name == '\\')
			buffer_bytes(made, "\\", 1);
		if ((unsigned char)*name < ' ')
			buffer_print(made, "\\u%04x", (unsigned char)*name);
		else
			buffer_bytes(made, name, 1);
	}
	buffer_bytes(made, "\"", 1);
	return (struct text){ made->data, made->size };
}

static void edit_usage(const struct body_scan *scan, struct body_edits *edits)
{
	if (scan->include_usage.size > 0)
		edit_add(edits, scan->include_usage.at, scan->include_usage.size, TEXT("true"));
	else if (scan->options_filled)
		edit_add(edits, scan->options.at + 1, 0, TEXT("\"include_usage\":true,"));
	else if (scan->options.size > 0) /* {}, null, or what no server takes */
		edit_add(edits, scan->options.at, scan->options.size,
		         TEXT("{\"include_usage\":true}"));
	else
		edit_add(edits, scan->inside, 0,
		         TEXT("\"stream_options\":{\"include_usage\":true},"));
}

void body_edit(const struct body_scan *scan, const char *model, bool add_usage,
               struct body_edits *edits)
{
	edits->count = 0;
	if (model && strlen(model) <= BODY_MODEL_MAX && scan->model_span.size > 0)
		edit_add(edits, scan->model_span.at, scan->model_span.size,
		         quote(model, &edits->made));
	if (add_usage && !scan->wants_usage && !scan->is_empty)
		edit_usage(scan, edits);
}

void body_edits_free(struct body_edits *edits)
{
	buffer_free(&edits->made);
}

size_t body_edited_size(struct text body, const struct body_edits *edits)
{
	size_t size = body.size;

	for (int i = 0; i < edits->count; i++)
		size = size - edits->of[i].remove + edits->of[i].insert.size;
	return size;
}

void body_write(struct text body, const struct body_edits *edits, struct buffer *out)
{
	size_t from = 0;

	for (int i = 0; i < edits->count; i++) {
		const struct body_edit *edit = &edits->of[i];
		buffer_bytes(out, body.data + from, edit->at - from);
		buffer_bytes(out, edit->insert.data, edit->insert.size);
		from = edit->at + edit->remove;
	}
	if (body.size > from)
		buffer_bytes(out, body.data + from, body.size - from);
}

int64_t body_prompt_tokens(const struct body_scan *scan)
{
	return max64(scan->prompt_bytes / 4, 1);
}

static uint64_t hash_fold(uint64_t a, uint64_t b)
{
	uint128 product = (uint128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Two words at a time, whose products do not wait for each other: several times as fast as
 * hash_bytes, for prompts of hundreds of KB. */
static uint64_t block_hash(const char *bytes)
{
	uint64_t hash = 0;

	for (size_t at = 0; at < BODY_BLOCK_BYTES; at += 2 * sizeof(uint64_t)) {
		uint64_t words[2];
		memcpy(words, bytes + at, sizeof(words));
		hash += hash_fold(words[0] ^ (0x9e3779b97f4a7c15U + at),
		                  words[1] ^ (0xd6e8feb86659fd93U - at));
		hash = (hash << 7) | (hash >> 57);
	}
	return hash;
}

int body_prefix(struct text body, const struct body_scan *scan, uint64_t seed, uint64_t *hashes,
                int most)
{
	const struct span spans[] = { scan->tools, scan->system, scan->turns };
	uint64_t hash = seed;
	int count = 0;

	for (int i = 0; i < 3; i++) {
		size_t at = spans[i].at, end = at + spans[i].size;
		hash = hash_combine(hash, (uint64_t)i);
		for (; at + BODY_BLOCK_BYTES <= end && count < most; at += BODY_BLOCK_BYTES) {
			hash = hash_combine(hash, block_hash(body.data + at));
			hashes[count++] = hash;
		}
	}
	return count;
}
