/* http_answer_fuzz.c - whatever comes, in whatever pieces, is taken or refused, and the same */
#include <stdint.h>

#include "cli/client/http_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether it was taken and is complete; its body in `body`. */
static bool take(const char *data, size_t size, size_t piece, int *status, size_t *body)
{
	struct http_answer answer = { .most_bytes = 1 << 20 };
	struct error error = { 0 };
	bool good = true;
	http_answer_begin(&answer);
	for (size_t at = 0; at < size && good && !answer.complete; at += piece)
		good = http_answer_take(&answer, data + at, size - at < piece ? size - at : piece,
		                        &error);
	INVARIANT(good == (error.code == ERROR_NONE));
	if (good)
		good = http_answer_end(&answer, &error);
	*status = answer.status;
	*body = answer.body.size;
	http_answer_free(&answer);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	int status, again;
	size_t body, body_again;
	bool good = take(text, size, size > 0 ? size : 1, &status, &body);
	bool good_again = take(text, size, 1, &again, &body_again);
	INVARIANT(good == good_again);
	INVARIANT(!good || (status == again && body == body_again));
	return 0;
}
