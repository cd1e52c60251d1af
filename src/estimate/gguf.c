/* gguf.c - the header of a GGUF file: what it says of itself, and its tensors */
#include "estimate/gguf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "estimate/amount.h"

enum {
	TEXT_KEPT_MAX = 255,
	/* The least that one takes: a key's length, a kind and a byte; a name's
	 * length, the number of dimensions, a type and an offset. */
	VALUE_BYTES_MIN = 8 + 4 + 1,
	TENSOR_BYTES_MIN = 8 + 4 + 4 + 8,
	ALIGNMENT_DEFAULT = 32,
	ALIGNMENT_MAX = 1 << 20,
};

static const int kind_bytes[GGUF_KINDS] = {
	[GGUF_U8] = 1,   [GGUF_I8] = 1,  [GGUF_U16] = 2, [GGUF_I16] = 2,
	[GGUF_U32] = 4,  [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_U64] = 8,
	[GGUF_BOOL] = 1, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

static bool gguf_refuse(struct cursor *cursor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Only the first failure is told: what follows from it is of no interest. */
static bool gguf_refuse(struct cursor *cursor, const char *format, ...)
{
	if (cursor_failed(cursor))
		return false;
	char text[ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return error_set(&cursor->error, ERROR_INVALID, "%s", text);
}

/* A length or count: at most `most`, in a sentence that names it. */
static int64_t take_count(struct cursor *cursor, int64_t most, const char *what)
{
	uint64_t count = cursor_u64(cursor);
	if (count <= (uint64_t)most)
		return (int64_t)count;
	gguf_refuse(cursor, "it says that %s is %" PRIu64 ", and at most %lld are possible here",
	            what, count, (long long)most);
	return 0;
}

/* The next text: kept in the arena if it is not too long, otherwise NULL. */
static const char *take_text(struct cursor *cursor, struct arena *arena, int64_t kept_max)
{
	int64_t length = take_count(cursor, cursor_left(cursor), "the length of a text");
	if (length > kept_max) {
		cursor_skip(cursor, length);
		return NULL;
	}
	char *text = arena_alloc(arena, (size_t)length + 1);
	cursor_read(cursor, text, length);
	text[length] = '\0';
	return text;
}

/* The next name of a value or tensor, which has no business with odd bytes. */
static const char *take_name(struct cursor *cursor, struct arena *arena, const char *what)
{
	int64_t before = cursor->offset;
	const char *name = take_text(cursor, arena, GGUF_NAME_BYTES_MAX);
	if (cursor_failed(cursor))
		return "";
	if (!name) {
		gguf_refuse(cursor, "the name of a %s is longer than %d bytes", what,
		            GGUF_NAME_BYTES_MAX);
		return "";
	}
	if (*name == '\0' || (int64_t)strlen(name) != cursor->offset - before - 8)
		gguf_refuse(cursor, "a %s has an empty name, or one with a zero byte in it", what);
	return name;
}

/* The next whole number or truth value; others are skipped and give 0. */
static int64_t gguf_take_number(struct cursor *cursor, enum gguf_kind kind)
{
	uint64_t large;
	switch (kind) {
	case GGUF_U8:
	case GGUF_BOOL:
		return cursor_u8(cursor);
	case GGUF_I8:
		return (int8_t)cursor_u8(cursor);
	case GGUF_U16:
		return cursor_u16(cursor);
	case GGUF_I16:
		return (int16_t)cursor_u16(cursor);
	case GGUF_U32:
		return cursor_u32(cursor);
	case GGUF_I32:
		return (int32_t)cursor_u32(cursor);
	case GGUF_U64:
		large = cursor_u64(cursor);
		return large > INT64_MAX ? INT64_MAX : (int64_t)large;
	case GGUF_I64:
		return (int64_t)cursor_u64(cursor);
	default:
		cursor_skip(cursor, kind_bytes[kind]);
		return 0;
	}
}

static enum gguf_kind take_kind(struct cursor *cursor, const char *key)
{
	uint32_t kind = cursor_u32(cursor);
	if (kind < GGUF_KINDS)
		return (enum gguf_kind)kind;
	gguf_refuse(cursor, "the value of %.60s is of kind %u, which is not known", key, kind);
	return GGUF_U8;
}

static bool is_whole(enum gguf_kind kind)
{
	return kind != GGUF_F32 && kind != GGUF_F64 && kind != GGUF_TEXT && kind != GGUF_ARRAY;
}

static void take_array(struct cursor *cursor, struct arena *arena, const char *key, int depth,
                       struct gguf_value *value)
{
	enum gguf_kind kind = take_kind(cursor, key);
	int64_t least = kind == GGUF_TEXT ? 8 : kind == GGUF_ARRAY ? 12 : kind_bytes[kind];
	int64_t count =
	    take_count(cursor, cursor_left(cursor) / least, "the length of a list of values");
	if (depth == GGUF_NESTING_MAX && kind == GGUF_ARRAY) {
		gguf_refuse(cursor, "the value of %.60s has lists nested deeper than %d", key,
		            GGUF_NESTING_MAX);
		return;
	}
	value->item_kind = kind;
	value->count = count;
	if (is_whole(kind) && count <= BLUEPRINT_LAYERS_MAX && depth == 1) {
		int64_t *numbers = arena_alloc(arena, ((size_t)count + 1) * sizeof(*numbers));
		for (int64_t i = 0; i < count; i++)
			numbers[i] = gguf_take_number(cursor, kind);
		value->numbers = numbers;
	} else if (kind_bytes[kind]) {
		cursor_skip(cursor, count * kind_bytes[kind]);
	}
	for (int64_t i = 0; !kind_bytes[kind] && i < count && !cursor_failed(cursor); i++) {
		struct gguf_value ignored = { 0 };
		if (kind == GGUF_TEXT)
			cursor_skip(cursor, take_count(cursor, cursor_left(cursor),
			                               "the length of a text"));
		else
			take_array(cursor, arena, key, depth + 1, &ignored);
	}
}

static void take_value(struct gguf *gguf, struct cursor *cursor)
{
	const char *key = take_name(cursor, &gguf->arena, "value");
	struct gguf_value value = { .kind = take_kind(cursor, key) };
	if (value.kind == GGUF_TEXT)
		value.text = take_text(cursor, &gguf->arena, TEXT_KEPT_MAX);
	else if (value.kind == GGUF_ARRAY)
		take_array(cursor, &gguf->arena, key, 1, &value);
	else
		value.number = gguf_take_number(cursor, value.kind);
	if (cursor_failed(cursor))
		return;
	if (text_map_get(&gguf->values, key)) {
		gguf_refuse(cursor, "it has two values for %.60s", key);
		return;
	}
	text_map_put(&gguf->values, key, arena_copy(&gguf->arena, &value, sizeof(value)));
}

/* Multiplies the lengths of the dimensions out; rows must fill whole blocks. */
static void gguf_measure(struct cursor *cursor, struct gguf_tensor *tensor)
{
	tensor->values = 1;
	for (int i = 0; i < 4; i++)
		tensor->values = amount_product(tensor->values, tensor->length[i]);
	int64_t row_bytes = tensor_type_row_bytes(tensor->type, tensor->length[0]);
	if (row_bytes < 0) {
		gguf_refuse(cursor,
		            "the rows of tensor %.60s have %lld values, not whole blocks of %d",
		            tensor->name, (long long)tensor->length[0], tensor->type->block_values);
		return;
	}
	tensor->bytes = row_bytes;
	for (int i = 1; i < 4; i++)
		tensor->bytes = amount_product(tensor->bytes, tensor->length[i]);
	if (tensor->values == INT64_MAX || tensor->bytes == INT64_MAX)
		gguf_refuse(cursor, "the size of tensor %.60s is beyond counting", tensor->name);
}

static void take_tensor(struct gguf *gguf, struct cursor *cursor)
{
	struct gguf_tensor tensor = { .length = { 1, 1, 1, 1 } };
	tensor.name = take_name(cursor, &gguf->arena, "tensor");
	uint32_t dimensions = cursor_u32(cursor);
	if (dimensions > 4) {
		gguf_refuse(cursor, "tensor %.60s has %u dimensions, and can have 4", tensor.name,
		            dimensions);
		return;
	}
	tensor.dimensions = (int)dimensions;
	for (int i = 0; i < tensor.dimensions; i++)
		tensor.length[i] =
		    take_count(cursor, INT64_MAX, "the length of a tensor's dimension");
	uint32_t type = cursor_u32(cursor);
	tensor.offset = take_count(cursor, INT64_MAX, "the offset of a tensor");
	tensor.type = tensor_type_of_gguf(type);
	if (!tensor.type) {
		gguf_refuse(cursor, "tensor %.60s is of type %u, whose size is not known",
		            tensor.name, type);
		return;
	}
	gguf_measure(cursor, &tensor);
	if (cursor_failed(cursor))
		return;
	array_reserve(gguf->tensors, gguf->tensor_capacity, gguf->tensor_count + 1);
	gguf->tensors[gguf->tensor_count++] = tensor;
}

static bool take_preamble(struct gguf *gguf, struct cursor *cursor, int64_t *tensor_count,
                          int64_t *value_count)
{
	char magic[4];
	if (cursor_left(cursor) < 24)
		return gguf_refuse(cursor, "it is too short to be a GGUF file");
	cursor_read(cursor, magic, 4);
	if (memcmp(magic, "GGUF", 4) != 0)
		return gguf_refuse(cursor, "it does not begin with GGUF: it is not a GGUF file");
	gguf->version = cursor_u32(cursor);
	if (gguf->version == 2U << 24 || gguf->version == 3U << 24)
		return gguf_refuse(cursor,
		                   "it is for big-endian machines, which have no such GPUs");
	if (gguf->version != 2 && gguf->version != 3)
		return gguf_refuse(cursor, "it is version %u of GGUF; versions 2 and 3 are known",
		                   gguf->version);
	*tensor_count =
	    take_count(cursor, min64(GGUF_TENSORS_MAX, cursor_left(cursor) / TENSOR_BYTES_MIN),
	               "the number of tensors");
	*value_count =
	    take_count(cursor, min64(GGUF_VALUES_MAX, cursor_left(cursor) / VALUE_BYTES_MIN),
	               "the number of values");
	return !cursor_failed(cursor);
}

static void find_data(struct gguf *gguf, struct cursor *cursor)
{
	int64_t alignment = ALIGNMENT_DEFAULT;
	const struct gguf_value *value = gguf_find(gguf, "general.alignment");
	if (value)
		alignment = value->number;
	if (alignment < 1 || alignment > ALIGNMENT_MAX || (alignment & (alignment - 1)) != 0) {
		gguf_refuse(cursor, "general.alignment is not a power of two from 1 to %d",
		            ALIGNMENT_MAX);
		return;
	}
	gguf->data_start = amount_padded(cursor->offset, alignment);
}

static void check_data(const struct gguf *gguf, struct cursor *cursor)
{
	int64_t size = cursor->reader->size_bytes;
	for (size_t i = 0; i < gguf->tensor_count; i++) {
		const struct gguf_tensor *tensor = &gguf->tensors[i];
		int64_t end = amount_sum(gguf->data_start, tensor->offset);
		end = amount_sum(end, tensor->bytes);
		if (end <= size)
			continue;
		gguf_refuse(
		    cursor,
		    "it has %lld bytes, and tensor %.60s ends at %lld: is it downloaded in full?",
		    (long long)size, tensor->name, (long long)end);
		return;
	}
}

/* Refuses a tensor that is listed twice: it would be counted twice and loaded once. */
static void check_names(const struct gguf *gguf, struct cursor *cursor)
{
	struct text_map names = { 0 };
	for (size_t i = 0; i < gguf->tensor_count && !cursor_failed(cursor); i++) {
		struct gguf_tensor *tensor = &gguf->tensors[i];
		if (text_map_get(&names, tensor->name))
			gguf_refuse(cursor, "it has two tensors with the name %.60s", tensor->name);
		else
			text_map_put(&names, tensor->name, tensor);
	}
	text_map_free(&names);
}

static void gguf_read_all(struct gguf *gguf, struct cursor *cursor)
{
	int64_t tensor_count = 0, value_count = 0;
	if (!take_preamble(gguf, cursor, &tensor_count, &value_count))
		return;
	for (int64_t i = 0; i < value_count && !cursor_failed(cursor); i++)
		take_value(gguf, cursor);
	for (int64_t i = 0; i < tensor_count && !cursor_failed(cursor); i++)
		take_tensor(gguf, cursor);
	if (!cursor_failed(cursor))
		find_data(gguf, cursor);
	if (!cursor_failed(cursor))
		check_data(gguf, cursor);
	if (!cursor_failed(cursor))
		check_names(gguf, cursor);
}

bool gguf_read(struct gguf *gguf, const struct reader *reader, struct error *error)
{
	struct cursor *cursor = memory_alloc(sizeof(*cursor));
	*gguf = (struct gguf){ 0 };
	cursor_start(cursor, reader, GGUF_HEADER_BYTES_MAX);
	gguf_read_all(gguf, cursor);
	bool read = !cursor_failed(cursor);
	if (!read)
		error_set(error, cursor->error.code, "%s", cursor->error.text);
	free(cursor);
	return read;
}

void gguf_free(struct gguf *gguf)
{
	text_map_free(&gguf->values);
	free(gguf->tensors);
	arena_free(&gguf->arena);
	*gguf = (struct gguf){ 0 };
}

const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key)
{
	return text_map_get(&gguf->values, key);
}
