/* tensor_type.c - how many bytes values take: types of tensors and of caches */
#include "estimate/tensor_type.h"

#include <stddef.h>
#include <string.h>

#include "estimate/amount.h"

/* By their number in GGUF files. The gaps are types that were withdrawn, for
 * which no runtime has code any more. */
static const struct tensor_type gguf_types[] = {
	[0] = { "f32", 1, 4 },         [1] = { "f16", 1, 2 },         [2] = { "q4_0", 32, 18 },
	[3] = { "q4_1", 32, 20 },      [6] = { "q5_0", 32, 22 },      [7] = { "q5_1", 32, 24 },
	[8] = { "q8_0", 32, 34 },      [9] = { "q8_1", 32, 36 },      [10] = { "q2_k", 256, 84 },
	[11] = { "q3_k", 256, 110 },   [12] = { "q4_k", 256, 144 },   [13] = { "q5_k", 256, 176 },
	[14] = { "q6_k", 256, 210 },   [15] = { "q8_k", 256, 292 },   [16] = { "iq2_xxs", 256, 66 },
	[17] = { "iq2_xs", 256, 74 },  [18] = { "iq3_xxs", 256, 98 }, [19] = { "iq1_s", 256, 50 },
	[20] = { "iq4_nl", 32, 18 },   [21] = { "iq3_s", 256, 110 },  [22] = { "iq2_s", 256, 82 },
	[23] = { "iq4_xs", 256, 136 }, [24] = { "i8", 1, 1 },         [25] = { "i16", 1, 2 },
	[26] = { "i32", 1, 4 },        [27] = { "i64", 1, 8 },        [28] = { "f64", 1, 8 },
	[29] = { "iq1_m", 256, 56 },   [30] = { "bf16", 1, 2 },       [34] = { "tq1_0", 256, 54 },
	[35] = { "tq2_0", 256, 66 },   [39] = { "mxfp4", 32, 17 },    [40] = { "nvfp4", 64, 36 },
	[41] = { "q1_0", 128, 18 },
};

/* A type of less than a byte is a block of as many values as fill whole bytes. */
static const struct tensor_type safetensors_types[] = {
	{ "BOOL", 1, 1 },        { "U8", 1, 1 },          { "I8", 1, 1 },      { "U16", 1, 2 },
	{ "I16", 1, 2 },         { "U32", 1, 4 },         { "I32", 1, 4 },     { "U64", 1, 8 },
	{ "I64", 1, 8 },         { "F64", 1, 8 },         { "F32", 1, 4 },     { "F16", 1, 2 },
	{ "BF16", 1, 2 },        { "F8_E4M3", 1, 1 },     { "F8_E5M2", 1, 1 }, { "F8_E8M0", 1, 1 },
	{ "F8_E4M3FNUZ", 1, 1 }, { "F8_E5M2FNUZ", 1, 1 }, { "F6_E2M3", 4, 3 }, { "F6_E3M2", 4, 3 },
	{ "F4", 2, 1 },          { "C64", 1, 8 },
};

static const struct tensor_type cache_types[] = {
	{ "f32", 1, 4 },      { "f16", 1, 2 },    { "bf16", 1, 2 },   { "q8_0", 32, 34 },
	{ "q5_1", 32, 24 },   { "q5_0", 32, 22 }, { "q4_1", 32, 20 }, { "q4_0", 32, 18 },
	{ "iq4_nl", 32, 18 }, { "fp8", 1, 1 },
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

const struct tensor_type *tensor_type_of_gguf(uint32_t number)
{
	if (number >= LENGTH(gguf_types) || !gguf_types[number].name)
		return NULL;
	return &gguf_types[number];
}

static const struct tensor_type *tensor_type_find(const struct tensor_type *types, size_t count,
                                                  const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	}
	return NULL;
}

const struct tensor_type *tensor_type_of_safetensors(const char *name)
{
	return tensor_type_find(safetensors_types, LENGTH(safetensors_types), name);
}

const struct tensor_type *tensor_type_of_cache(const char *name)
{
	return tensor_type_find(cache_types, LENGTH(cache_types), name);
}

const char *tensor_type_cache_names(void)
{
	return "f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl, fp8";
}

int64_t tensor_type_row_bytes(const struct tensor_type *type, int64_t values)
{
	if (values % type->block_values != 0)
		return -1;
	return amount_product(values / type->block_values, type->block_bytes);
}
