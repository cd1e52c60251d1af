/* buffer_test.c - tests of buffers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../buffer.h"

static void text_is_appended_with_a_nul_that_is_not_counted(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	buffer_text(&buffer, "");
	assert_string_equal(buffer.data, "");
	buffer_text(&buffer, "gpu");
	buffer_print(&buffer, "-%d/%s", 7, "x");
	assert_string_equal(buffer.data, "gpu-7/x");
	assert_int_equal(buffer.size, 7);
	buffer_free(&buffer);
}

static void printing_grows_the_buffer_to_any_length(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	for (int i = 0; i < 100; i++)
		buffer_print(&buffer, "%0*d", i, 0);
	assert_int_equal(buffer.size, 1 + 99 * 100 / 2);
	assert_int_equal(strspn(buffer.data, "0"), buffer.size);
	buffer_free(&buffer);
}

static void printing_fits_exactly_to_the_end_of_the_memory(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	buffer_text(&buffer, "1234");
	size_t room = buffer.capacity - buffer.size;
	buffer_print(&buffer, "%0*d", (int)room, 0);
	assert_int_equal(strlen(buffer.data), 4 + room);
	buffer_free(&buffer);
}

static void bytes_may_be_anything(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	buffer_bytes(&buffer, "\0\xff\0", 3);
	buffer_bytes(&buffer, NULL, 0);
	buffer_bytes(&buffer, "x", 1);
	assert_int_equal(buffer.size, 4);
	assert_memory_equal(buffer.data, "\0\xff\0x", 4);
	buffer_free(&buffer);
}

static uint64_t read_varint(const struct buffer *buffer, size_t *at)
{
	uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		unsigned char byte = (unsigned char)buffer->data[(*at)++];
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
}

static void numbers_have_their_leb128_bytes(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	buffer_varint(&buffer, 624485);
	buffer_varint(&buffer, 0);
	buffer_varint(&buffer, 127);
	buffer_signed(&buffer, -1);
	buffer_signed(&buffer, 1);
	buffer_signed(&buffer, -65);
	assert_int_equal(buffer.size, 9);
	assert_memory_equal(buffer.data, "\xe5\x8e\x26\x00\x7f\x01\x02\x81\x01", 9);
	buffer_free(&buffer);
}

static void every_number_can_be_read_back(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	for (unsigned bit = 0; bit < 64; bit++) {
		for (uint64_t near = 0; near < 3; near++) {
			uint64_t value = (UINT64_C(1) << bit) + near - 1;
			buffer_varint(&buffer, value);
			buffer_signed(&buffer, (int64_t)value);
		}
	}
	size_t at = 0;
	for (unsigned bit = 0; bit < 64; bit++) {
		for (uint64_t near = 0; near < 3; near++) {
			uint64_t value = (UINT64_C(1) << bit) + near - 1;
			assert_true(read_varint(&buffer, &at) == value);
			uint64_t zigzag = read_varint(&buffer, &at);
			assert_true((zigzag >> 1 ^ (zigzag & 1 ? UINT64_MAX : 0)) == value);
		}
	}
	assert_int_equal(at, buffer.size);
	buffer_free(&buffer);
}

static void a_cleared_buffer_keeps_its_memory(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	buffer_text(&buffer, "something long enough");
	const char *before = buffer.data;
	buffer_clear(&buffer);
	assert_int_equal(buffer.size, 0);
	buffer_text(&buffer, "short");
	assert_ptr_equal(buffer.data, before);
	assert_string_equal(buffer.data, "short");
	buffer_free(&buffer);
	assert_null(buffer.data);
	assert_int_equal(buffer.capacity, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_appended_with_a_nul_that_is_not_counted),
		cmocka_unit_test(printing_grows_the_buffer_to_any_length),
		cmocka_unit_test(printing_fits_exactly_to_the_end_of_the_memory),
		cmocka_unit_test(bytes_may_be_anything),
		cmocka_unit_test(numbers_have_their_leb128_bytes),
		cmocka_unit_test(every_number_can_be_read_back),
		cmocka_unit_test(a_cleared_buffer_keeps_its_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
