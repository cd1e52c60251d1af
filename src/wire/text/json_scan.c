/* json_scan.c - JSON that strangers sent, read where it stands, in one go and strictly */
#include "wire/text/json_scan.h"

#include "base/hash.h"
#include "wire/text/json_plain.h"
#include "wire/text/utf8.h"

struct json_scan json_scan_of(struct text text, struct arena *arena, struct error *error)
{
	return (struct json_scan){
		.begin = text.data,
		.at = text.data,
		.end = text.data + text.size,
		.arena = arena,
		.error = error,
	};
}

bool json_scan_fail(struct json_scan *scan, const char *sentence)
{
	if (scan->failed)
		return false;
	int line = 1;
	const char *start = scan->begin;
	for (const char *c = scan->begin; c < scan->at; c++) {
		if (*c == '\n') {
			line++;
			start = c + 1;
		}
	}
	scan->failed = true;
	return error_set(scan->error, ERROR_INVALID, "line %d, column %d of the JSON: %s", line,
	                 (int)(scan->at - start) + 1, sentence);
}

static void skip_spaces(struct json_scan *scan)
{
	while (scan->at < scan->end && *scan->at <= ' ' &&
	       (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
		scan->at++;
}

/* The byte at the place, or 0 at the end. */
static char next_byte(const struct json_scan *scan)
{
	return scan->at < scan->end ? *scan->at : '\0';
}

const unsigned char json_value_kinds[256] = {
	['{'] = JSON_KIND_OBJECT, ['['] = JSON_KIND_ARRAY,          ['"'] = JSON_KIND_TEXT,
	['t'] = JSON_KIND_FLAG,   ['f'] = JSON_KIND_FLAG,           ['n'] = JSON_KIND_NULL,
	['-'] = JSON_KIND_NUMBER, ['0' ... '9'] = JSON_KIND_NUMBER,
};
_Static_assert(JSON_KIND_NONE == 0, "what is not in the table begins no value");

enum json_kind json_scan_kind_behind_spaces(struct json_scan *scan)
{
	skip_spaces(scan);
	return (enum json_kind)json_value_kinds[(unsigned char)next_byte(scan)];
}

bool json_scan_open(struct json_scan *scan, enum json_kind kind)
{
	if (scan->failed)
		return false;
	if (json_scan_kind(scan) != kind)
		return json_scan_fail(scan, kind == JSON_KIND_OBJECT
		                                ? "an object, {...}, is expected"
		                                : "an array, [...], is expected");
	if (++scan->depth > JSON_SCAN_DEPTH_MAX)
		return json_scan_fail(scan, "it is nested more than 32 levels deep");
	scan->at++;
	scan->first = true;
	return true;
}

/* Steps over the separator in front of the next item. False at the end of what is open. */
static bool next_item(struct json_scan *scan, char close)
{
	if (scan->failed)
		return false;
	bool first = scan->first;
	skip_spaces(scan);
	if (next_byte(scan) == close) {
		scan->at++;
		scan->depth--;
		scan->first = false;
		return false;
	}
	scan->first = false;
	if (first)
		return true;
	if (next_byte(scan) != ',')
		return json_scan_fail(scan, close == '}' ? "',' or '}' is expected"
		                                         : "',' or ']' is expected");
	scan->at++;
	return true;
}

bool json_scan_element(struct json_scan *scan)
{
	return next_item(scan, ']');
}

static int hex_of(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Four hexadecimal digits at `c`, or -1. */
static int unit_of(const char *c, const char *end)
{
	int unit = 0;
	if (end - c < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_of(c[i]);
		if (digit < 0)
			return -1;
		unit = unit * 16 + digit;
	}
	return unit;
}

static size_t put_character(char *out, int code)
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

static char simple_escape(char letter)
{
	switch (letter) {
	case '"':
	case '\\':
	case '/':
		return letter;
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return 0;
	}
}

/* The character that the 'u' at the place stands for, with the other half of a pair. */
static int escaped_unit(struct json_scan *scan)
{
	int unit = unit_of(scan->at + 1, scan->end);
	if (unit <= 0 || (unit >= 0xdc00 && unit <= 0xdfff))
		return -1;
	scan->at += 5;
	if (unit < 0xd800 || unit > 0xdbff)
		return unit;
	if (scan->end - scan->at < 6 || scan->at[0] != '\\' || scan->at[1] != 'u')
		return -1;
	int low = unit_of(scan->at + 2, scan->end);
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	scan->at += 6;
	return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

/* A text with escapes, the first of them at the place. What is decoded is never longer
 * than what stands there. */
static bool text_with_escapes(struct json_scan *scan, const char *start, struct text *value)
{
	const char *close = scan->at;
	for (; close < scan->end && *close != '"'; close++)
		close += *close == '\\';
	if (close >= scan->end)
		return json_scan_fail(scan, "a text has no end");
	char *out = arena_alloc(scan->arena, (size_t)(close - start) + 1);
	size_t size = (size_t)(scan->at - start);
	if (size > 0)
		memcpy(out, start, size);
	while (scan->at < close) {
		char byte = *scan->at;
		if ((unsigned char)byte < ' ')
			return json_scan_fail(scan,
			                      "a control character in a text must be escaped");
		if (byte != '\\') {
			out[size++] = byte;
			scan->at++;
			continue;
		}
		scan->at++;
		char simple = simple_escape(*scan->at);
		if (simple) {
			out[size++] = simple;
			scan->at++;
			continue;
		}
		int code = *scan->at == 'u' ? escaped_unit(scan) : -1;
		if (code < 0)
			return json_scan_fail(scan, "this is no escape that a text may have");
		size += put_character(out + size, code);
	}
	scan->at++;
	out[size] = '\0';
	*value = (struct text){ out, size };
	return utf8_is_valid(*value) || json_scan_fail(scan, "a text is not UTF-8");
}

/* What a byte of a text means: most stand for themselves. */
enum byte_kind { BYTE_PLAIN, BYTE_HIGH, BYTE_QUOTE, BYTE_ESCAPE, BYTE_CONTROL };
static const unsigned char byte_kinds[256] = {
	[0 ... 31] = BYTE_CONTROL,
	['"'] = BYTE_QUOTE,
	['\\'] = BYTE_ESCAPE,
	[128 ... 255] = BYTE_HIGH,
};

/* A text whose first quote is at the place. */
static bool scan_quoted(struct json_scan *scan, struct text *value)
{
	const char *start = ++scan->at, *at = start, *end = scan->end;
	bool is_plain = true;
	at += json_plain_prefix(at, (size_t)(end - at));
	if (at < end && *at == '"') {
		*value = (struct text){ start, (size_t)(at - start) };
		scan->at = at + 1;
		return true;
	}
	while (at < end && byte_kinds[(unsigned char)*at] == BYTE_PLAIN)
		at++;
	if (at < end && byte_kinds[(unsigned char)*at] == BYTE_HIGH) {
		is_plain = false;
		while (at < end && byte_kinds[(unsigned char)*at] <= BYTE_HIGH)
			at++;
	}
	scan->at = at;
	if (at == end)
		return json_scan_fail(scan, "a text has no end");
	enum byte_kind kind = byte_kinds[(unsigned char)*at];
	if (kind == BYTE_ESCAPE)
		return text_with_escapes(scan, start, value);
	if (kind == BYTE_CONTROL)
		return json_scan_fail(scan, "a control character in a text must be escaped");
	*value = (struct text){ start, (size_t)(at - start) };
	scan->at++;
	return is_plain || utf8_is_valid(*value) || json_scan_fail(scan, "a text is not UTF-8");
}

bool json_scan_text(struct json_scan *scan, struct text *value)
{
	if (scan->failed)
		return false;
	skip_spaces(scan);
	return next_byte(scan) == '"' ? scan_quoted(scan, value)
	                              : json_scan_fail(scan, "a text in double quotes is expected");
}

bool json_scan_member(struct json_scan *scan, struct text *key)
{
	if (!next_item(scan, '}'))
		return false;
	skip_spaces(scan);
	if (next_byte(scan) != '"')
		return json_scan_fail(scan, "a name in double quotes is expected");
	if (!scan_quoted(scan, key))
		return false;
	skip_spaces(scan);
	if (next_byte(scan) != ':')
		return json_scan_fail(scan, "':' is expected");
	scan->at++;
	skip_spaces(scan);
	return true;
}

static bool literal(struct json_scan *scan, const char *word)
{
	size_t size = strlen(word);
	if ((size_t)(scan->end - scan->at) < size || memcmp(scan->at, word, size) != 0)
		return json_scan_fail(scan, "true, false or null is expected");
	scan->at += size;
	return true;
}

bool json_scan_flag(struct json_scan *scan, bool *value)
{
	if (scan->failed)
		return false;
	if (json_scan_kind(scan) != JSON_KIND_FLAG)
		return json_scan_fail(scan, "true or false is expected");
	*value = *scan->at == 't';
	return literal(scan, *value ? "true" : "false");
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* A number as it stands: its digits without the point, and where that would be. */
struct digits {
	const char *first, *point, *end; /* `point` is NULL where there is none */
	bool negative;
	int exponent;
};

static bool exponent(struct json_scan *scan, int *value)
{
	bool negative = false;
	int number = 0;
	scan->at++;
	if (next_byte(scan) == '+' || next_byte(scan) == '-')
		negative = *scan->at++ == '-';
	if (!is_digit(next_byte(scan)))
		return json_scan_fail(scan, "a digit is expected in a number");
	for (; is_digit(next_byte(scan)); scan->at++)
		number = number < 10000 ? number * 10 + (*scan->at - '0') : number;
	*value = negative ? -number : number;
	return true;
}

static bool json_scan_number(struct json_scan *scan, struct digits *digits)
{
	*digits = (struct digits){ .negative = next_byte(scan) == '-' };
	scan->at += digits->negative;
	digits->first = scan->at;
	if (!is_digit(next_byte(scan)))
		return json_scan_fail(scan, "a digit is expected in a number");
	if (*scan->at == '0')
		scan->at++;
	else
		while (is_digit(next_byte(scan)))
			scan->at++;
	if (is_digit(next_byte(scan)))
		return json_scan_fail(scan, "a number does not begin with 0");
	if (next_byte(scan) == '.') {
		digits->point = scan->at++;
		if (!is_digit(next_byte(scan)))
			return json_scan_fail(scan, "a digit is expected in a number");
		while (is_digit(next_byte(scan)))
			scan->at++;
	}
	digits->end = scan->at;
	bool has_exponent = next_byte(scan) == 'e' || next_byte(scan) == 'E';
	return !has_exponent || exponent(scan, &digits->exponent);
}

/* The digits as one whole number, times 10^places. */
static bool scaled(struct json_scan *scan, const struct digits *digits, int places, int64_t *value)
{
	int64_t whole = 0;
	int64_t left = places + (int64_t)digits->exponent;
	if (digits->point)
		left -= digits->end - digits->point - 1;
	const char *last = digits->end;
	/* Zeros at the end of the decimals say nothing. */
	for (; left < 0 && last > digits->first && (last[-1] == '0' || last[-1] == '.'); last--)
		left += last[-1] == '0';
	for (const char *c = digits->first; c < last; c++) {
		if (*c == '.')
			continue;
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, *c - '0', &whole))
			return json_scan_fail(scan, "a number is too large");
	}
	if (whole == 0)
		left = 0;
	if (left < 0)
		return json_scan_fail(scan, places == 0 ? "a whole number is expected"
		                                        : "a number has too many decimals");
	for (; left > 0; left--)
		if (__builtin_mul_overflow(whole, 10, &whole))
			return json_scan_fail(scan, "a number is too large");
	*value = digits->negative ? -whole : whole;
	return true;
}

bool json_scan_decimal(struct json_scan *scan, int digits, int64_t *value)
{
	struct digits found;
	if (scan->failed)
		return false;
	if (json_scan_kind(scan) != JSON_KIND_NUMBER)
		return json_scan_fail(scan, "a number is expected");
	return json_scan_number(scan, &found) && scaled(scan, &found, digits, value);
}

static bool skip_object(struct json_scan *scan)
{
	struct text key = TEXT("");
	struct json_keys keys = { 0 };
	if (!json_scan_open(scan, JSON_KIND_OBJECT))
		return false;
	while (json_scan_member(scan, &key)) {
		if (!json_keys_add(&keys, scan->arena, key))
			return json_scan_fail(scan, "a name is there twice in one object");
		if (!json_scan_skip(scan, NULL))
			return false;
	}
	return !scan->failed;
}

static bool skip_array(struct json_scan *scan)
{
	if (!json_scan_open(scan, JSON_KIND_ARRAY))
		return false;
	while (json_scan_element(scan))
		if (!json_scan_skip(scan, NULL))
			return false;
	return !scan->failed;
}

static bool skip_value(struct json_scan *scan, enum json_kind kind)
{
	struct text text;
	struct digits digits;
	bool flag;

	switch (kind) {
	case JSON_KIND_OBJECT:
		return skip_object(scan);
	case JSON_KIND_ARRAY:
		return skip_array(scan);
	case JSON_KIND_TEXT:
		return json_scan_text(scan, &text);
	case JSON_KIND_NUMBER:
		return json_scan_number(scan, &digits);
	case JSON_KIND_FLAG:
		return json_scan_flag(scan, &flag);
	case JSON_KIND_NULL:
		return literal(scan, "null");
	default:
		return json_scan_fail(scan, "a value is expected");
	}
}

bool json_scan_skip(struct json_scan *scan, struct text *raw)
{
	if (scan->failed)
		return false;
	enum json_kind kind = json_scan_kind(scan);
	const char *start = scan->at;
	if (!skip_value(scan, kind))
		return false;
	if (raw)
		*raw = (struct text){ start, (size_t)(scan->at - start) };
	return true;
}

bool json_scan_end(struct json_scan *scan)
{
	if (scan->failed)
		return false;
	skip_spaces(scan);
	return scan->at == scan->end ||
	       json_scan_fail(scan, "there is something behind the end of it");
}

static bool keys_find(const struct json_keys *keys, struct text key, size_t *place)
{
	size_t at = (size_t)hash_bytes(key.data, key.size) & (keys->capacity - 1);
	for (; keys->slots[at].data; at = (at + 1) & (keys->capacity - 1))
		if (text_equal(keys->slots[at], key))
			return true;
	*place = at;
	return false;
}

static void keys_grow(struct json_keys *keys, struct arena *arena)
{
	struct json_keys grown = { .count = keys->count,
		                   .capacity = keys->capacity > 0 ? keys->capacity * 2 : 16 };
	size_t place;
	grown.slots = arena_alloc(arena, grown.capacity * sizeof(*grown.slots));
	memset(grown.slots, 0, grown.capacity * sizeof(*grown.slots));
	for (size_t i = 0; i < keys->capacity; i++)
		if (keys->slots[i].data && !keys_find(&grown, keys->slots[i], &place))
			grown.slots[place] = keys->slots[i];
	*keys = grown;
}

bool json_keys_add(struct json_keys *keys, struct arena *arena, struct text key)
{
	size_t place;
	if (keys->count * 2 >= keys->capacity)
		keys_grow(keys, arena);
	if (keys_find(keys, key, &place))
		return false;
	keys->slots[place] = key;
	keys->count++;
	return true;
}
