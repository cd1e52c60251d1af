/* compress_test.c - tests of compression, and of gRPC's frames around it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/memory.h"
#include "wire/text/compress.h"
#include "wire/text/grpc_frame.h"

static struct text text_in(const struct buffer *buffer)
{
	return (struct text){ buffer->data, buffer->size };
}

static void what_is_compressed_comes_back(void **state)
{
	(void)state;
	struct compressor compressor = { 0 };
	struct buffer packed = { 0 }, plain = { 0 };
	size_t size = 3 << 20;
	char *data = memory_alloc(size);
	for (size_t i = 0; i < size; i++)
		data[i] = (char)(i * i >> 7);
	for (size_t part = 0; part <= size; part = part * 5 + 1) {
		buffer_clear(&packed);
		buffer_clear(&plain);
		compress_gzip(&compressor, (struct text){ data, part }, &packed);
		assert_true(compress_undo(&compressor, text_in(&packed), part, &plain));
		assert_int_equal(plain.size, part);
		assert_true(part == 0 || memcmp(plain.data, data, part) == 0);
	}
	free(data);
	buffer_free(&packed);
	buffer_free(&plain);
	compressor_free(&compressor);
}

static void what_becomes_too_large_is_refused_without_a_trace(void **state)
{
	(void)state;
	struct compressor compressor = { 0 };
	struct buffer packed = { 0 }, plain = { 0 };
	char *zeros = memory_zero(1, 10 << 20);
	compress_gzip(&compressor, (struct text){ zeros, 10 << 20 }, &packed);
	buffer_text(&plain, "before");
	assert_false(compress_undo(&compressor, text_in(&packed), 1 << 20, &plain));
	assert_int_equal(plain.size, 6);
	assert_true(plain.capacity < 4 << 20);
	free(zeros);
	buffer_free(&packed);
	buffer_free(&plain);
	compressor_free(&compressor);
}

static void what_is_damaged_is_refused(void **state)
{
	(void)state;
	struct compressor compressor = { 0 };
	struct buffer packed = { 0 }, plain = { 0 };
	compress_gzip(&compressor, TEXT("a text that is a text"), &packed);
	for (size_t size = 0; size < packed.size; size++)
		assert_false(
		    compress_undo(&compressor, (struct text){ packed.data, size }, 1000, &plain));
	buffer_bytes(&packed, "x", 1);
	assert_false(compress_undo(&compressor, text_in(&packed), 1000, &plain));
	packed.size--;
	packed.data[packed.size - 6] ^= 1;
	assert_false(compress_undo(&compressor, text_in(&packed), 1000, &plain));
	assert_int_equal(plain.size, 0);
	buffer_free(&packed);
	buffer_free(&plain);
	compressor_free(&compressor);
}

static void a_message_is_read_however_it_is_cut(void **state)
{
	(void)state;
	static const char bytes[] = "\0\0\0\0\5hello\1\0\0\0\0\0\0\0\0\3abc";
	for (size_t step = 1; step < sizeof(bytes); step++) {
		struct grpc_frame_reader reader = { 0 };
		struct text rest = { bytes, sizeof(bytes) - 1 }, message;
		struct buffer seen = { 0 };
		bool is_compressed;
		while (rest.size > 0) {
			struct text part = { rest.data, rest.size < step ? rest.size : step };
			rest = text_from(rest, part.size);
			while (grpc_frame_next(&reader, &part, 5, &message, &is_compressed) ==
			       GRPC_FRAME_MESSAGE)
				buffer_print(&seen, "%.*s%s;", (int)message.size, message.data,
				             is_compressed ? "+" : "");
		}
		assert_string_equal(seen.data, "hello;+;abc;");
		assert_true(grpc_frame_is_between(&reader));
		grpc_frame_reader_free(&reader);
		buffer_free(&seen);
	}
}

static void a_message_over_the_limit_is_refused_by_its_length(void **state)
{
	(void)state;
	struct grpc_frame_reader reader = { 0 };
	struct text bytes = TEXT("\0\0\0\0\6"), message;
	bool is_compressed;
	assert_int_equal(grpc_frame_next(&reader, &bytes, 5, &message, &is_compressed),
	                 GRPC_FRAME_TOO_LARGE);
	bytes = TEXT("\2\0\0\0\0");
	assert_int_equal(grpc_frame_next(&reader, &bytes, 5, &message, &is_compressed),
	                 GRPC_FRAME_INVALID);
	grpc_frame_reader_free(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_compressed_comes_back),
		cmocka_unit_test(what_becomes_too_large_is_refused_without_a_trace),
		cmocka_unit_test(what_is_damaged_is_refused),
		cmocka_unit_test(a_message_is_read_however_it_is_cut),
		cmocka_unit_test(a_message_over_the_limit_is_refused_by_its_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
