/* cell_test.c - fields of records as columns, and PostgreSQL's forms of them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/cell.h"
#include "store/rowtext.h"

struct sample {
	int64_t id;
	const char *text;
	int32_t state;
	bool flag;
	struct rows rows, list;
};
#define SAMPLE_FIELDS(F, T)                                                                        \
	F(T, id)                                                                                   \
	F(T, text)                                                                                 \
	F(T, state, .words = &job_state_words)                                                     \
	F(T, flag) F(T, rows, .width = 2) F(T, list, .width = 1)
static const struct record_type sample_type =
    RECORD_TYPE("sample", 1, struct sample, SAMPLE_FIELDS);

/* A sample that went through COPY's form and back, in the arena. */
static struct sample *through_copy(const struct sample *sample, struct arena *arena)
{
	struct buffer row = { 0 }, scratch = { 0 };
	const struct record_field *fields[8];
	struct cell cells[8];
	struct sample *back = arena_alloc(arena, sizeof(*back));
	struct error error;

	memset(back, 0, sizeof(*back));
	for (int i = 0; i < sample_type.field_count; i++) {
		fields[i] = &sample_type.fields[i];
		if (i > 0)
			buffer_bytes(&row, "\t", 1);
		copy_put(&row, fields[i], cell_of(fields[i], sample, &scratch));
	}
	assert_true(copy_split(row.data, row.size, fields, sample_type.field_count, cells));
	for (int i = 0; i < sample_type.field_count; i++)
		assert_true(cell_read(fields[i], back, cells[i], arena, &error));
	buffer_free(&row);
	buffer_free(&scratch);
	return back;
}

static void every_text_comes_back_as_it_was(void **state)
{
	static const char *const texts[] = {
		"",
		"plain",
		"tab\tnewline\nreturn\rquote\"apostrophe'backslash\\N",
		"\\N",
		"\\.",
		"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80",
		"\xff\xfe not UTF-8",
		"\xed\xa0\x80 a surrogate",
		"\xc0\xaf longer than needed",
		"\xf4\x90\x80\x80 beyond the last",
		"\xe2\x82 cut",
		"\xee\x80\x80 begins with the escape",
		"\b\f\v\x01\x7f",
	};
	struct arena arena = { 0 };
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sample sample = { .id = 1, .text = texts[i] };
		assert_string_equal(through_copy(&sample, &arena)->text, texts[i]);
	}
	arena_free(&arena);
}

static void every_number_and_list_comes_back_as_it_was(void **state)
{
	static const int64_t numbers[] = { INT64_MIN, -1, 0, 1, INT64_MAX, 42 };
	struct arena arena = { 0 };
	(void)state;
	for (int count = 0; count <= 3; count++) {
		struct sample sample = { .id = numbers[count],
			                 .text = "",
			                 .state = JOB_FAILED,
			                 .flag = count % 2,
			                 .rows = { numbers, count },
			                 .list = { numbers + count, 3 } };
		const struct sample *back = through_copy(&sample, &arena);
		assert_true(fields_equal(&sample_type, &sample, back));
	}
	arena_free(&arena);
}

static void people_read_words_and_json(void **state)
{
	struct buffer scratch = { 0 };
	const int64_t numbers[] = { 1, -2, 3, 4 };
	struct sample sample = { .state = JOB_RUNNING,
		                 .rows = { numbers, 2 },
		                 .list = { numbers, 2 } };
	(void)state;
	assert_string_equal(cell_of(&sample_type.fields[2], &sample, &scratch).text, "running");
	assert_string_equal(cell_of(&sample_type.fields[4], &sample, &scratch).text,
	                    "[[1,-2],[3,4]]");
	assert_string_equal(cell_of(&sample_type.fields[5], &sample, &scratch).text, "[1,-2]");
	sample.rows.count = 0;
	assert_string_equal(cell_of(&sample_type.fields[4], &sample, &scratch).text, "[]");
	buffer_free(&scratch);
}

static void cell_assert_refused(int field, struct cell cell)
{
	struct sample sample = { 0 };
	struct arena arena = { 0 };
	struct error error = { 0 };
	assert_false(cell_read(&sample_type.fields[field], &sample, cell, &arena, &error));
	assert_int_equal(error.code, ERROR_CORRUPT);
	assert_non_null(strstr(error.text, sample_type.fields[field].name));
	arena_free(&arena);
}

static struct cell text_cell(const char *text)
{
	return (struct cell){ .is_text = true, .text = text, .length = strlen(text) };
}

static void what_cannot_have_been_written_is_refused(void **state)
{
	static const char *const rows[] = { "",
		                            "[",
		                            "[[1,2]",
		                            "[[1]]",
		                            "[[1,2],]",
		                            "[[1,2]]x",
		                            "[[1,2,3]]",
		                            "[1,2]",
		                            "[[1,x]]",
		                            "[[1,2]",
		                            "[[99999999999999999999,1]]",
		                            "[[-,1]]" };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cell_assert_refused(4, text_cell(rows[i]));
	cell_assert_refused(2, text_cell("dancing"));
	cell_assert_refused(2, (struct cell){ .number = 1 });
	cell_assert_refused(1, (struct cell){ .number = 1 });
	cell_assert_refused(3, (struct cell){ .number = 2 });
	cell_assert_refused(0, text_cell("1"));
	cell_assert_refused(1, text_cell("\xee\x80\x80zz"));
	cell_assert_refused(1, text_cell("\xee\x80\x80"
	                                 "00"));
	cell_assert_refused(1, (struct cell){ .is_text = true, .text = "a\0b", .length = 3 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_text_comes_back_as_it_was),
		cmocka_unit_test(every_number_and_list_comes_back_as_it_was),
		cmocka_unit_test(people_read_words_and_json),
		cmocka_unit_test(what_cannot_have_been_written_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
