/* headers.c - the headers of a request or of a response */
#include "wire/text/headers.h"

struct text headers_find(const struct headers *headers, struct text name)
{
	for (size_t i = 0; i < headers->count; i++)
		if (text_equal(headers->of[i].name, name))
			return headers->of[i].value;
	return (struct text){ 0 };
}

size_t headers_count(const struct headers *headers, const char *name)
{
	size_t count = 0;
	for (size_t i = 0; i < headers->count; i++)
		count += text_is(headers->of[i].name, name);
	return count;
}

/* True if the parameters of a token, such as ';q=0.000', say that it is not wanted. */
static bool headers_is_refused(struct text parameters)
{
	struct text parameter;
	while (text_next(&parameters, ';', &parameter)) {
		if (!text_starts(parameter, "q=") && !text_starts(parameter, "Q="))
			continue;
		for (size_t i = 2; i < parameter.size; i++)
			if (parameter.data[i] != '0' && parameter.data[i] != '.')
				return false;
		return true;
	}
	return false;
}

bool headers_has_token(const struct headers *headers, const char *name, const char *token)
{
	for (size_t i = 0; i < headers->count; i++) {
		if (!text_is(headers->of[i].name, name))
			continue;
		struct text list = headers->of[i].value, item;
		while (text_next(&list, ',', &item)) {
			struct text word;
			if (text_next(&item, ';', &word) && text_is_any_case(word, token))
				return !headers_is_refused(item);
		}
	}
	return false;
}
