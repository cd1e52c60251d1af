/* frame_test.c - frames are read as they were written, and nothing else is a frame */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "channel/frame.h"

static void assert_comes_back(const struct frame *frame)
{
	struct buffer bytes = { 0 };
	struct frame read;

	frame_write(&bytes, frame);
	assert_true(frame_read((struct text){ bytes.data, bytes.size }, &read));
	assert_int_equal(read.kind, frame->kind);
	assert_int_equal(read.offset, frame->offset);
	assert_int_equal(read.input_offset, frame->input_offset);
	assert_int_equal(read.columns, frame->columns);
	assert_int_equal(read.rows, frame->rows);
	assert_int_equal(read.code, frame->code);
	assert_int_equal(read.terminal, frame->terminal);
	assert_true(text_equal(read.data, frame->data));
	buffer_free(&bytes);
}

static void frames_are_read_as_they_were_written(void **state)
{
	const struct frame frames[] = {
		{ .kind = FRAME_INPUT, .offset = INT64_C(1) << 40, .data = TEXT("ls\r") },
		{ .kind = FRAME_INPUT_END, .offset = 7 },
		{ .kind = FRAME_WINDOW, .columns = 132, .rows = 50 },
		{ .kind = FRAME_SIGNAL, .code = 15 },
		{ .kind = FRAME_TAKEN, .offset = 300 },
		{ .kind = FRAME_LEAVE },
		{ .kind = FRAME_BEGIN, .offset = 5, .input_offset = 6, .terminal = true },
		{ .kind = FRAME_OUTPUT, .offset = 0, .data = TEXT("$ ") },
		{ .kind = FRAME_NOTICE, .data = TEXT("soon") },
		{ .kind = FRAME_EXIT, .code = 137, .data = TEXT("idle") },
		{ .kind = FRAME_REFUSED, .code = 3, .data = TEXT("no") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
		assert_comes_back(&frames[i]);
}

static void what_is_cut_or_too_long_is_no_frame(void **state)
{
	struct buffer bytes = { 0 };
	struct frame frame;
	char byte = 0;

	(void)state;
	frame_write(&bytes, &(struct frame){ .kind = FRAME_TAKEN, .offset = 300 });
	for (size_t size = 0; size < bytes.size; size++)
		assert_false(frame_read((struct text){ bytes.data, size }, &frame));
	buffer_bytes(&bytes, &byte, 1);
	assert_false(frame_read((struct text){ bytes.data, bytes.size }, &frame));
	assert_false(frame_read(TEXT("z"), &frame));
	assert_false(frame_read(TEXT("t\xff\xff\xff\xff\xff\xff\xff\xff"), &frame));
	assert_false(frame_read(TEXT("w\xff\xff\x00\x10"), &frame));
	buffer_free(&bytes);
}

static void streams_come_apart_in_any_pieces(void **state)
{
	struct buffer bytes = { 0 }, out[3] = { 0 };
	char head[STREAM_HEAD_BYTES];

	(void)state;
	for (int i = 0; i < 4; i++) {
		stream_head_write(head, 1 + i % 2, 3);
		buffer_bytes(&bytes, head, sizeof(head));
		buffer_bytes(&bytes, i % 2 ? "err" : "out", 3);
	}
	for (size_t step = 1; step <= bytes.size; step++) {
		struct stream_parts parts = { 0 };
		for (size_t at = 0; at < bytes.size; at += step) {
			size_t rest = bytes.size - at;
			struct text left = { bytes.data + at, rest < step ? rest : step }, part;
			int stream;
			while ((stream = stream_parts_next(&parts, &left, &part)) > 0)
				buffer_bytes(&out[stream], part.data, part.size);
			assert_int_equal(stream, 0);
		}
		assert_int_equal(out[1].size, 6);
		assert_memory_equal(out[1].data, "outout", 6);
		assert_memory_equal(out[2].data, "errerr", 6);
		buffer_clear(&out[1]);
		buffer_clear(&out[2]);
	}
	buffer_free(&bytes);
	buffer_free(&out[1]);
	buffer_free(&out[2]);
}

static void what_has_no_stream_is_refused(void **state)
{
	struct stream_parts parts = { 0 };
	struct text bytes = TEXT("\x03\x00\x00\x00\x01x"), part;

	(void)state;
	assert_int_equal(stream_parts_next(&parts, &bytes, &part), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_read_as_they_were_written),
		cmocka_unit_test(what_is_cut_or_too_long_is_no_frame),
		cmocka_unit_test(streams_come_apart_in_any_pieces),
		cmocka_unit_test(what_has_no_stream_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
