/* query.c - the parameters behind the '?' of a target */
#include "wire/text/query.h"

#include "base/memory.h"
#include "wire/text/url.h"

/* Decodes to the end of `storage`, which has room, with a NUL behind it. */
static bool query_decode(struct text raw, struct buffer *storage, struct text *text)
{
	char *out = storage->data + storage->size;
	long size = url_decode(raw, true, out);
	if (size < 0)
		return false;
	out[size] = '\0';
	storage->size += (size_t)size + 1;
	*text = (struct text){ out, (size_t)size };
	return true;
}

static bool query_add(struct text pair, struct buffer *storage, struct query_parameter *list,
                      struct query *query, struct error *error)
{
	if (query->count == QUERY_PARAMETERS_MAX)
		return error_set(error, ERROR_INVALID, "the query has more than %d parameters",
		                 QUERY_PARAMETERS_MAX);
	const char *equals = memchr(pair.data, '=', pair.size);
	size_t name_size = equals ? (size_t)(equals - pair.data) : pair.size;
	struct text value = text_from(pair, equals ? name_size + 1 : name_size);
	struct query_parameter *parameter = &list[query->count];
	if (!query_decode((struct text){ pair.data, name_size }, storage, &parameter->name) ||
	    !query_decode(value, storage, &parameter->value))
		return error_set(error, ERROR_INVALID,
		                 "parameter %zu of the query is not percent-encoded UTF-8 text "
		                 "without control characters",
		                 query->count + 1);
	if (parameter->name.size == 0)
		return error_set(error, ERROR_INVALID, "parameter %zu of the query has no name",
		                 query->count + 1);
	if (query_get(query, parameter->name.data).data)
		return error_set(error, ERROR_INVALID, "the query has '%s' more than once",
		                 parameter->name.data);
	query->count++;
	return true;
}

bool query_parse(struct text text, struct buffer *storage, struct query_parameter *list,
                 struct query *query, struct error *error)
{
	*query = (struct query){ .of = list };
	/* Each parameter needs two NULs: one in place of its '&', one of its '=' or extra. */
	array_reserve(storage->data, storage->capacity,
	              storage->size + text.size + QUERY_PARAMETERS_MAX + 2);
	while (text.size > 0) {
		const char *end = memchr(text.data, '&', text.size);
		size_t size = end ? (size_t)(end - text.data) : text.size;
		if (size > 0 &&
		    !query_add((struct text){ text.data, size }, storage, list, query, error))
			return false;
		text = text_from(text, end ? size + 1 : size);
	}
	return true;
}

struct text query_get(const struct query *query, const char *name)
{
	for (size_t i = 0; i < query->count; i++)
		if (text_is(query->of[i].name, name))
			return query->of[i].value;
	return (struct text){ 0 };
}

bool query_integer(const struct query *query, const char *name, int64_t least, int64_t most,
                   int64_t otherwise, int64_t *value, struct error *error)
{
	struct text text = query_get(query, name);
	*value = otherwise;
	if (!text.data)
		return true;
	bool negative = text_starts(text, "-");
	int64_t number = 0;
	bool is_number = text.size > (negative ? 1 : 0);
	for (size_t i = negative ? 1 : 0; i < text.size && is_number; i++) {
		int digit = text.data[i] - '0';
		is_number = digit >= 0 && digit <= 9 &&
		            !__builtin_mul_overflow(number, 10, &number) &&
		            !__builtin_sub_overflow(number, digit, &number);
	}
	/* Counted downwards, where there is room for one more. */
	if (is_number && !negative)
		is_number = !__builtin_sub_overflow((int64_t)0, number, &number);
	if (!is_number || number < least || number > most)
		return error_set(error, ERROR_INVALID,
		                 "%s is '%.40s', which is not a whole number from %lld to %lld",
		                 name, text.data, (long long)least, (long long)most);
	*value = number;
	return true;
}

bool query_flag(const struct query *query, const char *name, bool otherwise, bool *value,
                struct error *error)
{
	struct text text = query_get(query, name);
	*value = otherwise;
	if (!text.data)
		return true;
	bool yes =
	    text.size == 0 || text_is(text, "1") || text_is(text, "true") || text_is(text, "yes");
	bool no = text_is(text, "0") || text_is(text, "false") || text_is(text, "no");
	if (!yes && !no)
		return error_set(error, ERROR_INVALID,
		                 "%s is '%.40s', which is neither true nor false", name, text.data);
	*value = yes;
	return true;
}
