/* table.h - what the tables of fields are written with */
#ifndef RESOURCE_TABLE_H
#define RESOURCE_TABLE_H

#include "core/record/record.h"
#include "resource/resource.h"

#define MIB_BYTES INT64_C(1048576)

/* Limits that the service adds to those of the core. */
enum {
	JOB_WORDS_MAX = 4096, /* of a command */
	JOB_VARIABLES_MAX = 4096,
	JOB_LABELS_MAX = 64,
	JOB_LABEL_BYTES_MAX = 256,
	JOB_RULES_MAX = 8,
	JOB_ANNOTATIONS_MAX = 64,
	JOB_ANNOTATION_BYTES_MAX = 4096, /* of one, name and value together */
	JOB_SCRIPT_BYTES_MAX = 512 * 1024,
	JOB_PATH_BYTES_MAX = 4096,
	TENANT_NAME_BYTES_MAX = 256,
	TENANT_TEXT_BYTES_MAX = 4096,
	TENANT_PRIORITY_MAX = 1000000,
	MODEL_TEXT_BYTES_MAX = 4096,
	MODEL_HEALTH_PATH_BYTES_MAX = 256,
	MODEL_COUNT_MAX = 1000000,
	MODEL_USERS_MAX = 4096,
	MODEL_NAMES_MAX = 64, /* aliases, fallbacks, adapters: of each */
};
#define TENANT_COUNT_MAX (INT64_C(1) << 40)
#define TENANT_MONEY_MAX (INT64_C(1) << 52) /* millionths of the currency */
#define TENANT_WEIGHT_MAX INT64_C(1000000000)

/* A row: FIELD(priority, .kind = VALUE_INTEGER, ...). */
#define FIELD(field_name, ...)                                                                     \
	{ .name = #field_name, .name_size = sizeof(#field_name) - 1, __VA_ARGS__ },

/* In a row: the value is this member of a struct, which is a record of the kind `which`. */
#define STORED(which, T, member)                                                                   \
	.stored = {                                                                                \
		.is_set = true,                                                                    \
		.record = (which),                                                                 \
		.kind = FIELD_KIND(T, member),                                                     \
		.offset = offsetof(T, member),                                                     \
	}

#define FIELDS_OF(rows) .fields = (rows), .field_count = sizeof(rows) / sizeof((rows)[0])

#endif
