/* meter_fuzz.c - whatever passes, pieces do not change what is counted or what is passed on */
#include "base/error.h"
#include "gateway/text/meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(struct text bytes, size_t piece, enum meter_form form, struct meter *meter,
                struct buffer *out)
{
	meter_start(meter, form, form == METER_EVENTS);
	while (bytes.size > 0) {
		size_t size = bytes.size < piece ? bytes.size : piece;
		if (meter->cuts)
			meter_cut(meter, (struct text){ bytes.data, size }, out);
		else
			meter_take(meter, (struct text){ bytes.data, size });
		bytes = text_from(bytes, size);
	}
	meter_end(meter, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct text bytes = { (const char *)data + 2, size - 2 };
	enum meter_form form = (enum meter_form)(data[0] % 4);
	struct meter whole = { 0 }, pieces = { 0 };
	struct buffer whole_out = { 0 }, pieces_out = { 0 };

	run(bytes, SIZE_MAX, form, &whole, &whole_out);
	run(bytes, (data[1] & 31) + 1, form, &pieces, &pieces_out);
	INVARIANT(whole.counts.prompt == pieces.counts.prompt);
	INVARIANT(whole.counts.completion == pieces.counts.completion);
	INVARIANT(whole.counts.cached == pieces.counts.cached);
	INVARIANT(whole.events == pieces.events);
	INVARIANT(whole_out.size <= bytes.size && whole_out.size == pieces_out.size);
	INVARIANT(whole_out.size == 0 ||
	          memcmp(whole_out.data, pieces_out.data, whole_out.size) == 0);
	meter_free(&whole);
	meter_free(&pieces);
	buffer_free(&whole_out);
	buffer_free(&pieces_out);
	return 0;
}
