/* traits.c - what a job is known by when its duration is predicted */
#include "core/predict/traits.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define HASH_MIN_BYTES 8 /* shorter runs of hexadecimal digits are words or numbers */
#define UUID_BYTES 36

enum { OF_USER = 1, OF_TENANT = 2, OF_NAME = 4, OF_PATTERN = 8, OF_SIZE = 16, OF_LIMIT = 32 };

static const struct {
	const char *name;
	int parts;
	bool wide;
} kinds[EXPERT_KINDS] = {
	[BY_USER_NAME_SIZE] = { "user, name and size", OF_USER | OF_NAME | OF_SIZE, false },
	[BY_USER_NAME] = { "user and name", OF_USER | OF_NAME, false },
	[BY_USER_PATTERN] = { "user and name pattern", OF_USER | OF_PATTERN, false },
	[BY_NAME] = { "name", OF_NAME, false },
	[BY_PATTERN] = { "name pattern", OF_PATTERN, false },
	[BY_USER_LIMIT_SIZE] = { "user, time limit and size", OF_USER | OF_LIMIT | OF_SIZE, false },
	[BY_USER_LIMIT] = { "user and time limit", OF_USER | OF_LIMIT, false },
	[BY_LIMIT_SIZE] = { "time limit and size", OF_LIMIT | OF_SIZE, true },
	[BY_USER_SIZE] = { "user and size", OF_USER | OF_SIZE, false },
	[BY_USER] = { "user", OF_USER, false },
	[BY_TENANT] = { "tenant", OF_TENANT, true },
	[BY_SIZE] = { "size", OF_SIZE, true },
	[BY_NOTHING] = { "all jobs", 0, true },
};

const char *expert_kind_name(enum expert_kind kind)
{
	INVARIANT((unsigned)kind < EXPERT_KINDS);
	return kinds[kind].name;
}

bool expert_kind_is_wide(enum expert_kind kind)
{
	INVARIANT((unsigned)kind < EXPERT_KINDS);
	return kinds[kind].wide;
}

/* A name without numbers is its own pattern, and a tenant may be its only user:
 * one expert is enough then. */
static bool traits_have(const struct traits *traits, int parts)
{
	return !(
	    (parts & OF_USER && traits->user == 0) ||
	    (parts & OF_TENANT && (traits->tenant == 0 || traits->tenant == traits->user)) ||
	    (parts & OF_NAME && traits->name == 0) ||
	    (parts & OF_PATTERN && (traits->pattern == 0 || traits->pattern == traits->name)) ||
	    (parts & OF_LIMIT && traits->limit_ms <= 0));
}

int64_t traits_key(const struct traits *traits, enum expert_kind kind)
{
	INVARIANT((unsigned)kind < EXPERT_KINDS);
	int parts = kinds[kind].parts;
	uint64_t hash = hash_number((uint64_t)kind + 1);

	if (!traits_have(traits, parts))
		return 0;
	if (parts & OF_USER)
		hash = hash_combine(hash, traits->user);
	if (parts & OF_TENANT)
		hash = hash_combine(hash, traits->tenant);
	if (parts & OF_NAME)
		hash = hash_combine(hash, traits->name);
	if (parts & OF_PATTERN)
		hash = hash_combine(hash, traits->pattern);
	if (parts & OF_SIZE)
		hash = hash_combine(hash, (uint64_t)traits->size);
	if (parts & OF_LIMIT)
		hash = hash_combine(hash, (uint64_t)traits->limit_ms);
	return (int64_t)(hash >> 1 | 1);
}

static bool char_is_digit(char c)
{
	return c >= '0' && c <= '9';
}
static char char_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}
static bool char_is_hex(char c)
{
	return char_is_digit(c) || (char_lower(c) >= 'a' && char_lower(c) <= 'f');
}

/* How many bytes of `name` count: no more than fit, and no half characters. */
static size_t name_size(const char *name)
{
	size_t size = strnlen(name, PATTERN_BYTES_MAX + 1);
	if (size <= PATTERN_BYTES_MAX)
		return size;
	size = PATTERN_BYTES_MAX;
	while (size > 0 && ((unsigned char)name[size] & 0xc0) == 0x80)
		size--;
	return size;
}

static size_t text_run(bool (*is)(char c), const char *text, const char *end)
{
	const char *at = text;
	while (at < end && is(*at))
		at++;
	return (size_t)(at - text);
}

static bool text_is_uuid(const char *text, const char *end)
{
	if (end - text < UUID_BYTES)
		return false;
	for (int i = 0; i < UUID_BYTES; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text[i] != '-' : !char_is_hex(text[i]))
			return false;
	}
	return true;
}

/* Whether a run of hexadecimal digits is a hash: long, with a digit, and not
 * just a word with a number behind it, such as 'decade2024'. */
static bool text_is_hash(const char *text, size_t size)
{
	const char *end = text + size;
	const char *at = text;
	while (at < end && !char_is_digit(*at))
		at++;
	size_t digits = text_run(char_is_digit, at, end);
	return size >= HASH_MIN_BYTES && digits > 0 && (digits == size || at + digits < end);
}

/* How many bytes at `text` are a number, a hash or the like; 0: none. */
static size_t variable_size(const char *text, const char *end)
{
	if (text_is_uuid(text, end))
		return UUID_BYTES;
	size_t size = text_run(char_is_hex, text, end);
	return text_is_hash(text, size) ? size : text_run(char_is_digit, text, end);
}

size_t pattern_write(char *out, const char *name)
{
	const char *end = name + name_size(name);
	char *to = out;
	while (name < end) {
		size_t size = char_is_hex(*name) ? variable_size(name, end) : 0;
		*to++ = size > 0 ? '#' : char_lower(*name);
		name += size > 0 ? size : 1;
	}
	*to = '\0';
	return (size_t)(to - out);
}

void predict_pattern(struct buffer *buffer, const char *name)
{
	char pattern[PATTERN_BYTES_MAX + 1];
	pattern_write(pattern, name);
	buffer_text(buffer, pattern);
}

void traits_set_name(struct traits *traits, const char *name)
{
	char pattern[PATTERN_BYTES_MAX + 1];

	traits->name = traits->pattern = 0;
	if (!name || !*name)
		return;
	pattern_write(pattern, name);
	traits->name = hash_bytes(name, name_size(name)) | 1;
	traits->pattern = hash_text(pattern) | 1;
}
