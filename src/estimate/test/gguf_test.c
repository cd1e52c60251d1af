/* gguf_test.c - GGUF headers are read as they are, or refused with a reason */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bytes.h"

/* Reads the bytes as a file; `gguf` is to be freed. */
static bool read_bytes(struct gguf *gguf, const struct buffer *bytes, struct error *error)
{
	struct memory_bytes memory = { bytes->data, bytes->size };
	struct reader reader = reader_of_memory(&memory);
	*error = (struct error){ 0 };
	return gguf_read(gguf, &reader, error);
}

static void refused(const struct buffer *bytes, const char *because)
{
	struct gguf gguf;
	struct error error;
	assert_false(read_bytes(&gguf, bytes, &error));
	if (!strstr(error.text, because))
		fail_msg("'%s' does not say '%s'", error.text, because);
	gguf_free(&gguf);
}

static void refused_and_freed(struct buffer *bytes, const char *because)
{
	refused(bytes, because);
	buffer_free(bytes);
}

static void values_of_every_kind_are_read(void **state)
{
	(void)state;
	struct buffer file = { 0 };
	struct gguf gguf;
	struct error error;
	put_preamble(&file, 3, 0, 14);
	const struct {
		const char *key;
		enum gguf_kind kind;
		uint64_t stored;
		int bytes;
		int64_t read;
	} numbers[] = {
		{ "u8", GGUF_U8, 200, 1, 200 },
		{ "i8", GGUF_I8, 0xfe, 1, -2 },
		{ "u16", GGUF_U16, 60000, 2, 60000 },
		{ "i16", GGUF_I16, 0xfffd, 2, -3 },
		{ "u32", GGUF_U32, 4000000000, 4, 4000000000 },
		{ "i32", GGUF_I32, 0xfffffffc, 4, -4 },
		{ "bool", GGUF_BOOL, 1, 1, 1 },
		{ "u64", GGUF_U64, UINT64_MAX, 8, INT64_MAX },
		{ "i64", GGUF_I64, UINT64_MAX - 4, 8, -5 },
		{ "f32", GGUF_F32, 0x3f800000, 4, 0 },
		{ "f64", GGUF_F64, 0x3ff0000000000000, 8, 0 },
	};
	for (size_t i = 0; i < 11; i++) {
		put_text(&file, numbers[i].key);
		put_number(&file, numbers[i].kind, 4);
		put_number(&file, numbers[i].stored, numbers[i].bytes);
	}
	put_string(&file, "text", "word");
	put_list(&file, "list", (const uint32_t[]){ 7, 8, 9 }, 3);
	/* A list of two lists: one text, two truth values. */
	put_text(&file, "nested");
	put_number(&file, GGUF_ARRAY, 4);
	put_number(&file, GGUF_ARRAY, 4);
	put_number(&file, 2, 8);
	put_number(&file, GGUF_TEXT, 4);
	put_number(&file, 1, 8);
	put_text(&file, "inner");
	put_number(&file, GGUF_BOOL, 4);
	put_number(&file, 2, 8);
	put_number(&file, 0x0100, 2);

	assert_true(read_bytes(&gguf, &file, &error));
	for (size_t i = 0; i < 11; i++) {
		const struct gguf_value *value = gguf_find(&gguf, numbers[i].key);
		assert_non_null(value);
		assert_int_equal(value->kind, numbers[i].kind);
		assert_int_equal(value->number, numbers[i].read);
	}
	assert_string_equal(gguf_find(&gguf, "text")->text, "word");
	assert_int_equal(gguf_find(&gguf, "list")->count, 3);
	assert_int_equal(gguf_find(&gguf, "list")->numbers[2], 9);
	assert_int_equal(gguf_find(&gguf, "nested")->count, 2);
	assert_null(gguf_find(&gguf, "nested")->numbers);
	assert_null(gguf_find(&gguf, "missing"));
	gguf_free(&gguf);
	buffer_free(&file);
}

static void version_2_is_read_as_version_3(void **state)
{
	(void)state;
	struct buffer file = { 0 };
	struct gguf gguf;
	struct error error;
	put_preamble(&file, 2, 0, 1);
	put_u32(&file, "a", 5);
	assert_true(read_bytes(&gguf, &file, &error));
	assert_int_equal(gguf.version, 2);
	assert_int_equal(gguf_find(&gguf, "a")->number, 5);
	gguf_free(&gguf);
	buffer_free(&file);
}

static void tensors_have_the_bytes_of_their_blocks(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	struct header_only file;
	struct gguf gguf;
	struct error error = { 0 };
	build_tensor(&builder, "plain", 0, 10, 3, 0);  /* f32: 10 * 3 * 4 = 120 */
	build_tensor(&builder, "q8", 8, 64, 5, 0);     /* q8_0: 64/32 * 34 * 5 = 340 */
	build_tensor(&builder, "q4k", 12, 512, 2, 4);  /* q4_k: 512/256 * 144 * 2 * 4 = 2304 */
	build_tensor(&builder, "mxfp4", 39, 32, 1, 0); /* mxfp4: 17 */
	int64_t size = build_finish(&builder);
	struct reader reader = reader_of_header(&file, &builder.file, size);
	assert_true(gguf_read(&gguf, &reader, &error));
	assert_int_equal(gguf.tensor_count, 4);
	assert_int_equal(gguf.tensors[0].bytes, 120);
	assert_int_equal(gguf.tensors[1].bytes, 340);
	assert_int_equal(gguf.tensors[2].bytes, 2304);
	assert_int_equal(gguf.tensors[2].values, 512 * 2 * 4);
	assert_int_equal(gguf.tensors[3].bytes, 17);
	gguf_free(&gguf);
	build_free(&builder);
}

/* A hundred gigabytes are not read: the buffer that has the end of the header
 * is the last. */
static void nothing_behind_the_header_is_read(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	struct header_only file;
	struct gguf gguf;
	struct error error = { 0 };
	build_tensor(&builder, "large", 1, 1 << 20, 50000, 0);
	int64_t size = build_finish(&builder);
	assert_true(size > INT64_C(100000000000));
	struct reader reader = reader_of_header(&file, &builder.file, size);
	assert_true(gguf_read(&gguf, &reader, &error));
	assert_true(file.furthest <= CURSOR_BUFFER_BYTES);
	gguf_free(&gguf);
	build_free(&builder);
}

static void a_long_list_of_numbers_is_passed_over_unread(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	struct header_only file;
	struct gguf gguf;
	struct error error = { 0 };
	uint32_t *scores = memory_zero(100000, sizeof(*scores));
	build_list(&builder, "scores", scores, 100000);
	build_u32(&builder, "after", 77);
	int64_t size = build_finish(&builder);
	struct reader reader = reader_of_header(&file, &builder.file, size);
	assert_true(gguf_read(&gguf, &reader, &error));
	assert_int_equal(gguf_find(&gguf, "scores")->count, 100000);
	assert_null(gguf_find(&gguf, "scores")->numbers);
	assert_int_equal(gguf_find(&gguf, "after")->number, 77);
	free(scores);
	gguf_free(&gguf);
	build_free(&builder);
}

static void what_is_not_gguf_is_refused(void **state)
{
	(void)state;
	struct buffer file = { 0 };
	buffer_text(&file, "GGUF");
	refused(&file, "too short");
	buffer_text(&file, "PK and many more bytes of something else");
	file.data[0] = 'P';
	refused_and_freed(&file, "not a GGUF file");
}

static void other_versions_are_refused(void **state)
{
	(void)state;
	struct buffer one = { 0 }, four = { 0 }, big_endian = { 0 };
	put_preamble(&one, 1, 0, 0);
	put_preamble(&four, 4, 0, 0);
	put_preamble(&big_endian, 3U << 24, 0, 0);
	refused_and_freed(&one, "version 1");
	refused_and_freed(&four, "version 4");
	refused_and_freed(&big_endian, "big-endian");
}

static void counts_beyond_the_file_are_refused(void **state)
{
	(void)state;
	struct buffer tensors = { 0 }, values = { 0 }, list = { 0 }, text = { 0 };
	put_preamble(&tensors, 3, UINT64_C(1) << 62, 0);
	refused_and_freed(&tensors, "the number of tensors is 4611686018427387904");
	put_preamble(&values, 3, 0, UINT64_MAX);
	refused_and_freed(&values, "the number of values");
	put_preamble(&list, 3, 0, 1);
	put_text(&list, "key");
	put_number(&list, GGUF_ARRAY, 4);
	put_number(&list, GGUF_U64, 4);
	put_number(&list, UINT64_C(1) << 61, 8);
	refused_and_freed(&list, "the length of a list");
	put_preamble(&text, 3, 0, 1);
	put_text(&text, "key");
	put_number(&text, GGUF_TEXT, 4);
	put_number(&text, UINT64_MAX, 8);
	refused_and_freed(&text, "the length of a text");
}

static void a_file_that_ends_anywhere_in_its_header_is_refused(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_string(&builder, "general.architecture", "llama");
	build_list(&builder, "list", (const uint32_t[]){ 1, 2 }, 2);
	build_tensor(&builder, "t", 0, 8, 8, 0);
	build_finish(&builder);
	for (size_t size = 0; size <= builder.file.size; size++) {
		struct buffer cut = { builder.file.data, size, size };
		refused(&cut, size == builder.file.size ? "downloaded in full" : "");
	}
	build_free(&builder);
}

static void values_of_unknown_kinds_are_refused(void **state)
{
	(void)state;
	struct buffer file = { 0 };
	put_preamble(&file, 3, 0, 1);
	put_text(&file, "odd");
	put_number(&file, 13, 4);
	put_number(&file, 0, 8);
	refused_and_freed(&file, "odd is of kind 13");
}

static void lists_nested_too_deep_are_refused(void **state)
{
	(void)state;
	struct buffer file = { 0 };
	put_preamble(&file, 3, 0, 1);
	put_text(&file, "deep");
	put_number(&file, GGUF_ARRAY, 4);
	for (int i = 0; i < 100; i++) {
		put_number(&file, GGUF_ARRAY, 4);
		put_number(&file, 1, 8);
	}
	refused_and_freed(&file, "nested deeper than 4");
}

static void names_are_refused_if_empty_or_doubled_or_with_zeros(void **state)
{
	(void)state;
	struct buffer twice = { 0 }, empty = { 0 }, zero = { 0 };
	put_preamble(&twice, 3, 0, 2);
	put_u32(&twice, "same", 1);
	put_u32(&twice, "same", 2);
	refused_and_freed(&twice, "two values for same");
	put_preamble(&empty, 3, 0, 1);
	put_u32(&empty, "", 1);
	refused_and_freed(&empty, "empty name");
	put_preamble(&zero, 3, 0, 1);
	put_u32(&zero, "a?b", 1);
	zero.data[24 + 8 + 1] = '\0';
	refused_and_freed(&zero, "zero byte");
}

/* One tensor with these dimensions and type, in a file that has 64 bytes for it. */
static void refuse_tensor(uint32_t dimensions, uint64_t columns, uint64_t rows, uint32_t type,
                          uint64_t offset, const char *because)
{
	struct buffer file = { 0 };
	put_preamble(&file, 3, 1, 0);
	put_text(&file, "t");
	put_number(&file, dimensions, 4);
	put_number(&file, columns, 8);
	put_number(&file, rows, 8);
	put_number(&file, type, 4);
	put_number(&file, offset, 8);
	for (int i = 0; i < 16; i++)
		put_number(&file, 0, 8);
	refused_and_freed(&file, because);
}

static void tensors_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	refuse_tensor(5, 1, 1, 0, 0, "5 dimensions");
	refuse_tensor(2, 1, 1, 4, 0, "type 4");
	refuse_tensor(2, 1, 1, 1000, 0, "type 1000");
	refuse_tensor(2, 33, 1, 8, 0, "not whole blocks of 32");
	refuse_tensor(2, UINT64_C(1) << 40, UINT64_C(1) << 40, 0, 0, "beyond counting");
	refuse_tensor(2, UINT64_MAX, 1, 0, 0, "the length of a tensor's dimension");
	refuse_tensor(2, 4, 4, 0, UINT64_MAX, "the offset of a tensor");
	refuse_tensor(2, 4, 4, 0, INT64_MAX, "downloaded in full");
	refuse_tensor(2, 4, 400, 0, 0, "downloaded in full");
}

static void two_tensors_of_one_name_are_refused(void **state)
{
	(void)state;
	struct gguf_builder builder = { 0 };
	build_tensor(&builder, "same", 0, 1, 1, 0);
	build_tensor(&builder, "same", 0, 1, 1, 0);
	build_finish(&builder);
	for (int i = 0; i < 16; i++)
		put_number(&builder.file, 0, 8);
	refused(&builder.file, "two tensors with the name same");
	build_free(&builder);
}

static void an_alignment_that_is_no_power_of_two_is_refused(void **state)
{
	(void)state;
	for (uint32_t alignment = 0; alignment < 100; alignment += 48) {
		struct buffer file = { 0 };
		put_preamble(&file, 3, 0, 1);
		put_u32(&file, "general.alignment", alignment);
		refused_and_freed(&file, "general.alignment");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_every_kind_are_read),
		cmocka_unit_test(version_2_is_read_as_version_3),
		cmocka_unit_test(tensors_have_the_bytes_of_their_blocks),
		cmocka_unit_test(nothing_behind_the_header_is_read),
		cmocka_unit_test(a_long_list_of_numbers_is_passed_over_unread),
		cmocka_unit_test(what_is_not_gguf_is_refused),
		cmocka_unit_test(other_versions_are_refused),
		cmocka_unit_test(counts_beyond_the_file_are_refused),
		cmocka_unit_test(a_file_that_ends_anywhere_in_its_header_is_refused),
		cmocka_unit_test(values_of_unknown_kinds_are_refused),
		cmocka_unit_test(lists_nested_too_deep_are_refused),
		cmocka_unit_test(names_are_refused_if_empty_or_doubled_or_with_zeros),
		cmocka_unit_test(tensors_that_make_no_sense_are_refused),
		cmocka_unit_test(two_tensors_of_one_name_are_refused),
		cmocka_unit_test(an_alignment_that_is_no_power_of_two_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
