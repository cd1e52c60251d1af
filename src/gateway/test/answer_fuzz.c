/* answer_fuzz.c - whatever a server answers, in whatever pieces, its body comes out the same */
#include <stdlib.h>

#include "gateway/text/answer.h"
#include "gateway/text/meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	struct buffer body;
	bool ended, bad;
};

static void take(struct answer_reader *reader, struct text bytes, struct outcome *outcome)
{
	struct text part;
	enum answer_event event;

	do {
		event = answer_next(reader, &bytes, &part);
		if (event == ANSWER_PART)
			buffer_bytes(&outcome->body, part.data, part.size);
		if (event == ANSWER_HEAD)
			INVARIANT(reader->status >= 200 && reader->status <= 999);
	} while (event == ANSWER_PART || event == ANSWER_HEAD);
	outcome->bad = event == ANSWER_BAD;
	INVARIANT(!outcome->bad || reader->why);
}

static struct outcome run(struct text bytes, size_t piece)
{
	struct answer_reader reader = { 0 };
	struct outcome outcome = { 0 };

	while (bytes.size > 0 && !outcome.bad) {
		size_t size = bytes.size < piece ? bytes.size : piece;
		take(&reader, (struct text){ bytes.data, size }, &outcome);
		bytes = text_from(bytes, size);
	}
	outcome.ended = answer_ended(&reader);
	answer_free(&reader);
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	struct text bytes = { (const char *)data + 1, size - 1 };
	struct outcome whole = run(bytes, SIZE_MAX), pieces = run(bytes, (data[0] & 31) + 1);

	INVARIANT(whole.bad == pieces.bad && whole.ended == pieces.ended);
	INVARIANT(whole.bad || (whole.body.size == pieces.body.size &&
	                        (whole.body.size == 0 ||
	                         memcmp(whole.body.data, pieces.body.data, whole.body.size) == 0)));
	buffer_free(&whole.body);
	buffer_free(&pieces.body);
	return 0;
}
