/* field.c - structs described by tables: one code copies, encodes, reads and prints them all */
#include "core/record/field.h"

#include <string.h>

#include "base/bitset.h"
#include "core/record/types.h"

static const void *value_of(const struct record_field *field, const void *object)
{
	return (const char *)object + field->offset;
}

static const char *field_text(const struct record_field *field, const void *object)
{
	const char *text = *(const char *const *)value_of(field, object);
	return text ? text : "";
}

static struct rows field_rows(const struct record_field *field, const void *object)
{
	const struct rows *rows = value_of(field, object);
	INVARIANT(rows->count >= 0);
	return *rows;
}

/* The elements of a list, one after the other. */
struct list {
	const char *at;
	int64_t count;
};

static struct list field_list(const struct record_field *field, const void *object)
{
	struct list list;
	memcpy(&list.at, value_of(field, object), sizeof(list.at));
	list.count = *(const int64_t *)((const char *)object + field->count_offset);
	INVARIANT(list.count >= 0);
	return list;
}

static const void *list_element(const struct list *list, const struct record_type *of, int64_t i)
{
	return list->at + (size_t)i * of->size;
}

const char *word_of(const struct words *words, int64_t value)
{
	return value >= 0 && value < words->count ? words->at[value] : NULL;
}

struct rows rows_copy(struct arena *arena, struct rows rows, int width)
{
	if (rows.count == 0)
		return (struct rows){ 0 };
	INVARIANT(rows.count > 0);
	size_t size = (size_t)rows.count * (size_t)width * sizeof(int64_t);
	return (struct rows){ arena_copy(arena, rows.at, size), rows.count };
}

/* The width is looked for only when there is something to copy. */
static int width_at(const struct record_type *type, size_t offset)
{
	const struct record_field *field = type->fields;
	while (field->offset != offset)
		field++;
	return field->width;
}

void *fields_copy(struct arena *arena, const struct record_type *type, const void *object)
{
	char *copy = arena_copy(arena, object, type->size);
	for (uint64_t left = type->texts; left;) {
		const char **text = (void *)(copy + (size_t)bits_take(&left) * sizeof(void *));
		*text = *text && **text ? arena_string(arena, *text) : "";
	}
	for (uint64_t left = type->rows; left;) {
		size_t offset = (size_t)bits_take(&left) * sizeof(void *);
		struct rows *rows = (void *)(copy + offset);
		int width = rows->count > 0 ? width_at(type, offset) : 0;
		*rows = rows_copy(arena, *rows, width);
	}
	return copy;
}

/* So much of `size` bytes is taken up that what follows is aligned for numbers. */
static size_t aligned(size_t size)
{
	return (size + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t);
}

static size_t rows_size(const struct record_type *type, size_t offset, const struct rows *rows)
{
	return rows->count > 0
	           ? (size_t)rows->count * (size_t)width_at(type, offset) * sizeof(int64_t)
	           : 0;
}

/* The bytes of its rows and texts. */
static size_t parts_size(const struct record_type *type, const char *object)
{
	size_t size = 0;
	for (uint64_t left = type->rows; left;) {
		size_t offset = (size_t)bits_take(&left) * sizeof(void *);
		size += rows_size(type, offset, (const void *)(object + offset));
	}
	for (uint64_t left = type->texts; left;) {
		const char *const *text =
		    (const void *)(object + (size_t)bits_take(&left) * sizeof(void *));
		size += *text && **text ? strlen(*text) + 1 : 0;
	}
	return size;
}

/* Copies rows and texts to `end`, and lets the object point there. Rows come before texts,
 * which need no alignment. */
static void parts_move(const struct record_type *type, char *copy, char *end)
{
	for (uint64_t left = type->rows; left;) {
		size_t offset = (size_t)bits_take(&left) * sizeof(void *);
		struct rows *rows = (void *)(copy + offset);
		size_t size = rows_size(type, offset, rows);
		rows->at = size > 0 ? memcpy(end, rows->at, size) : NULL;
		end += size;
	}
	for (uint64_t left = type->texts; left;) {
		const char **text = (void *)(copy + (size_t)bits_take(&left) * sizeof(void *));
		size_t size = *text && **text ? strlen(*text) + 1 : 0;
		*text = size > 0 ? memcpy(end, *text, size) : "";
		end += size;
	}
}

void *fields_clone(const struct record_type *type, const void *object)
{
	char *copy = memory_alloc(aligned(type->size) + parts_size(type, object));
	memcpy(copy, object, type->size);
	parts_move(type, copy, copy + aligned(type->size));
	return copy;
}

void *fields_own(const struct record_type *type, void *object)
{
	size_t size = parts_size(type, object);
	char *parts = memory_alloc(size > 0 ? size : 1);
	parts_move(type, object, parts);
	return parts;
}

static void encode_text(struct buffer *buffer, const char *text)
{
	size_t length = strlen(text);
	buffer_varint(buffer, length);
	buffer_bytes(buffer, text, length);
}

static void encode_rows(struct buffer *buffer, struct rows rows, int width)
{
	buffer_varint(buffer, (uint64_t)rows.count);
	for (int64_t i = 0; i < rows.count * width; i++)
		buffer_signed(buffer, rows.at[i]);
}

static void encode_list(struct buffer *buffer, struct list list, const struct record_type *of)
{
	buffer_varint(buffer, (uint64_t)list.count);
	for (int64_t i = 0; i < list.count; i++)
		fields_encode(buffer, of, list_element(&list, of, i));
}

void fields_encode(struct buffer *buffer, const struct record_type *type, const void *object)
{
	for (int i = 0; i < type->field_count; i++) {
		const struct record_field *field = &type->fields[i];
		if (field->kind == FIELD_TEXT)
			encode_text(buffer, field_text(field, object));
		else if (field->kind == FIELD_ROWS)
			encode_rows(buffer, field_rows(field, object), field->width);
		else if (field->kind == FIELD_LIST)
			encode_list(buffer, field_list(field, object), field->of);
		else
			buffer_signed(buffer, field_number(field, object));
	}
}

/* Where decoding is: `type` and `field` are for the reason when it fails. */
struct reader {
	struct arena *arena;
	const uint8_t *at, *end;
	const struct record_type *type;
	const struct record_field *field;
	struct error *error;
};

static uint64_t bytes_left(const struct reader *reader)
{
	return (uint64_t)(reader->end - reader->at);
}

static bool field_reject(const struct reader *reader, const char *why)
{
	error_set(reader->error, ERROR_CORRUPT,
	          "%s.%s is unreadable %llu bytes before the end of the data: %s",
	          reader->type->name, reader->field->name, (unsigned long long)bytes_left(reader),
	          why);
	return false;
}

static bool read_varint(struct reader *reader, uint64_t *value)
{
	const uint8_t *at = reader->at;
	*value = 0;
	for (unsigned shift = 0; at < reader->end; shift += 7) {
		uint8_t byte = *at++;
		if (shift == 63 && byte > 1)
			return field_reject(reader, "the number has more than 64 bits");
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte == 0 && shift > 0)
			return field_reject(reader, "the number is not in its shortest form");
		reader->at = at;
		return true;
	}
	return field_reject(reader, "it ends within a number");
}

static bool read_signed(struct reader *reader, int64_t *value)
{
	uint64_t zigzag;
	if (!read_varint(reader, &zigzag))
		return false;
	*value = (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
	return true;
}

/* How many things follow, each of at least `least` bytes. */
static bool read_count(struct reader *reader, size_t least, int64_t *count)
{
	uint64_t value;
	if (!read_varint(reader, &value))
		return false;
	if (value > bytes_left(reader) / least)
		return field_reject(reader, "the length goes beyond it");
	*count = (int64_t)value;
	return true;
}

static bool read_number(struct reader *reader, void *to)
{
	int64_t value;
	if (!read_signed(reader, &value))
		return false;
	if (reader->field->kind == FIELD_INT64) {
		*(int64_t *)to = value;
	} else if (reader->field->kind == FIELD_INT32) {
		if (value < INT32_MIN || value > INT32_MAX)
			return field_reject(reader, "the number does not fit into 32 bits");
		*(int32_t *)to = (int32_t)value;
	} else {
		if (value != 0 && value != 1)
			return field_reject(reader, "the flag is neither 0 nor 1");
		*(bool *)to = value == 1;
	}
	return true;
}

static bool field_read_text(struct reader *reader, const char **text)
{
	int64_t count;
	if (!read_count(reader, 1, &count))
		return false;
	*text = "";
	if (count == 0)
		return true;
	size_t length = (size_t)count;
	if (memchr(reader->at, 0, length))
		return field_reject(reader, "the text has a NUL in it");
	char *copy = arena_alloc(reader->arena, length + 1);
	memcpy(copy, reader->at, length);
	copy[length] = '\0';
	*text = copy;
	reader->at += length;
	return true;
}

static bool read_rows(struct reader *reader, struct rows *rows)
{
	size_t width = (size_t)reader->field->width;
	*rows = (struct rows){ 0 };
	if (!read_count(reader, width, &rows->count))
		return false;
	size_t numbers = (size_t)rows->count * width;
	int64_t *at = arena_alloc(reader->arena, numbers * sizeof(*at));
	rows->at = at;
	for (size_t i = 0; i < numbers; i++) {
		if (!read_signed(reader, &at[i]))
			return false;
	}
	return true;
}

static bool read_object(struct reader *reader, const struct record_type *type, void *object);

static bool field_read_list(struct reader *reader, void *object)
{
	const struct record_field *field = reader->field;
	const struct record_type *of = field->of;
	int64_t count;
	if (!read_count(reader, (size_t)of->field_count, &count))
		return false;
	size_t size = (size_t)count * of->size;
	char *at = arena_alloc(reader->arena, size);
	if (size > 0)
		memset(at, 0, size);
	for (size_t done = 0; done < size; done += of->size) {
		if (!read_object(reader, of, at + done))
			return false;
	}
	memcpy((char *)object + field->offset, &at, sizeof(at));
	*(int64_t *)((char *)object + field->count_offset) = count;
	return true;
}

static bool field_read(struct reader *reader, void *object)
{
	void *to = (char *)object + reader->field->offset;
	switch (reader->field->kind) {
	case FIELD_TEXT:
		return field_read_text(reader, to);
	case FIELD_ROWS:
		return read_rows(reader, to);
	case FIELD_LIST:
		return field_read_list(reader, object);
	default:
		return read_number(reader, to);
	}
}

static bool read_object(struct reader *reader, const struct record_type *type, void *object)
{
	for (int i = 0; i < type->field_count; i++) {
		reader->type = type;
		reader->field = &type->fields[i];
		if (!field_read(reader, object))
			return false;
	}
	return true;
}

bool fields_decode(struct arena *arena, const struct record_type *type, void *object,
                   const uint8_t **data, const uint8_t *end, struct error *error)
{
	struct reader reader = { .arena = arena, .at = *data, .end = end, .error = error };
	if (!read_object(&reader, type, object))
		return false;
	*data = reader.at;
	return true;
}

static bool rows_equal(struct rows a, struct rows b, int width)
{
	size_t size = (size_t)a.count * (size_t)width * sizeof(int64_t);
	return a.count == b.count && (size == 0 || memcmp(a.at, b.at, size) == 0);
}

static bool lists_equal(struct list a, struct list b, const struct record_type *of)
{
	if (a.count != b.count)
		return false;
	for (int64_t i = 0; i < a.count; i++) {
		if (!fields_equal(of, list_element(&a, of, i), list_element(&b, of, i)))
			return false;
	}
	return true;
}

static bool field_equal(const struct record_field *field, const void *a, const void *b)
{
	switch (field->kind) {
	case FIELD_TEXT:
		return strcmp(field_text(field, a), field_text(field, b)) == 0;
	case FIELD_ROWS:
		return rows_equal(field_rows(field, a), field_rows(field, b), field->width);
	case FIELD_LIST:
		return lists_equal(field_list(field, a), field_list(field, b), field->of);
	default:
		return field_number(field, a) == field_number(field, b);
	}
}

bool fields_equal(const struct record_type *type, const void *a, const void *b)
{
	for (int i = 0; i < type->field_count; i++) {
		if (!field_equal(&type->fields[i], a, b))
			return false;
	}
	return true;
}

/* In quotes, on one line whatever is in it. */
static void field_print_text(struct buffer *buffer, const char *text)
{
	buffer_text(buffer, "\"");
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		if (byte == '\n')
			buffer_text(buffer, "\\n");
		else if (byte == '"' || byte == '\\')
			buffer_print(buffer, "\\%c", byte);
		else if (byte < ' ' || byte == 0x7f)
			buffer_print(buffer, "\\x%02x", byte);
		else
			buffer_bytes(buffer, text, 1);
	}
	buffer_text(buffer, "\"");
}

static void print_number(struct buffer *buffer, const struct record_field *field, int64_t number)
{
	const char *word = field->words ? word_of(field->words, number) : NULL;
	if (field->kind == FIELD_FLAG)
		word = number ? "true" : "false";
	else if (number == UNLIMITED)
		word = "unlimited";
	if (word)
		buffer_text(buffer, word);
	else
		buffer_print(buffer, "%lld", (long long)number);
}

/* "[1,2; 3,4]" */
static void print_rows(struct buffer *buffer, struct rows rows, int width)
{
	for (int64_t i = 0; i < rows.count * width; i++) {
		const char *before = i == 0 ? "[" : i % width == 0 ? "; " : ",";
		buffer_print(buffer, "%s%lld", before, (long long)rows.at[i]);
	}
	buffer_text(buffer, "]");
}

static bool is_empty(const struct record_field *field, const void *object)
{
	switch (field->kind) {
	case FIELD_TEXT:
		return *field_text(field, object) == '\0';
	case FIELD_ROWS:
		return field_rows(field, object).count == 0;
	case FIELD_LIST:
		return field_list(field, object).count == 0;
	default:
		return !field->words && field_number(field, object) == 0;
	}
}

static void print_all(struct buffer *buffer, const char *before, const struct record_type *type,
                      const void *object);

/* `[uuid="a" place=1; uuid="b" place=2]` */
static void print_list(struct buffer *buffer, struct list list, const struct record_type *of)
{
	for (int64_t i = 0; i < list.count; i++)
		print_all(buffer, i == 0 ? "[" : "; ", of, list_element(&list, of, i));
	buffer_text(buffer, "]");
}

/* The fields with spaces between them and `before` before the first. */
static void print_all(struct buffer *buffer, const char *before, const struct record_type *type,
                      const void *object)
{
	for (int i = 0; i < type->field_count; i++) {
		const struct record_field *field = &type->fields[i];
		if (i >= type->keys && is_empty(field, object))
			continue;
		buffer_print(buffer, "%s%s=", before, field->name);
		before = " ";
		if (field->kind == FIELD_TEXT)
			field_print_text(buffer, field_text(field, object));
		else if (field->kind == FIELD_ROWS)
			print_rows(buffer, field_rows(field, object), field->width);
		else if (field->kind == FIELD_LIST)
			print_list(buffer, field_list(field, object), field->of);
		else
			print_number(buffer, field, field_number(field, object));
	}
}

void fields_print(struct buffer *buffer, const struct record_type *type, const void *object)
{
	print_all(buffer, " ", type, object);
}
