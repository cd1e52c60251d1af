/* places.h - enums that number the fields of each table: JOB_FIELD_priority, GPU_FIELD_uuid */
#ifndef RESOURCE_PLACES_H
#define RESOURCE_PLACES_H

/* The tables are lists of FIELD(name, .member = value, ...) without an include guard. Their other
 * includer makes rows of them. */

#define FIELD(name, ...) JOB_FIELD_##name,
enum job_field {
#include "resource/job_table.h"
	JOB_FIELDS_COUNT,
};
#undef FIELD
#define FIELD(name, ...) TENANT_FIELD_##name,
enum tenant_field {
#include "resource/tenant_table.h"
	TENANT_FIELDS_COUNT,
};
#undef FIELD
#define FIELD(name, ...) MODEL_FIELD_##name,
enum model_field {
#include "resource/model_table.h"
	MODEL_FIELDS_COUNT,
};
#undef FIELD

#define FIELD(name, ...) SLOT_PART_FIELD_##name,
#define SLOT_PART_ROWS
enum slot_part_field {
#include "resource/slot_table.h"
	SLOT_PART_FIELDS_COUNT,
};
#undef SLOT_PART_ROWS
#undef FIELD

#define FIELD(name, ...) SLOT_FIELD_##name,
#define SLOT_ROWS
enum slot_field {
#include "resource/slot_table.h"
	SLOT_FIELDS_COUNT,
};
#undef SLOT_ROWS
#undef FIELD

#define FIELD(name, ...) HOLDER_FIELD_##name,
#define HOLDER_ROWS
enum holder_field {
#include "resource/node_table.h"
	HOLDER_FIELDS_COUNT,
};
#undef HOLDER_ROWS
#undef FIELD

#define FIELD(name, ...) GPU_FIELD_##name,
#define GPU_ROWS
enum gpu_field {
#include "resource/node_table.h"
	GPU_FIELDS_COUNT,
};
#undef GPU_ROWS
#undef FIELD

#define FIELD(name, ...) NODE_FIELD_##name,
#define NODE_ROWS
enum node_field {
#include "resource/node_table.h"
	NODE_FIELDS_COUNT,
};
#undef NODE_ROWS
#undef FIELD

#define FIELD(name, ...) DECISION_GPU_FIELD_##name,
#define DECISION_GPU_ROWS
enum decision_gpu_field {
#include "resource/decision_table.h"
	DECISION_GPU_FIELDS_COUNT,
};
#undef DECISION_GPU_ROWS
#undef FIELD

#define FIELD(name, ...) VICTIM_FIELD_##name,
#define VICTIM_ROWS
enum victim_field {
#include "resource/decision_table.h"
	VICTIM_FIELDS_COUNT,
};
#undef VICTIM_ROWS
#undef FIELD

#define FIELD(name, ...) EVICTED_SLOT_FIELD_##name,
#define EVICTED_SLOT_ROWS
enum evicted_slot_field {
#include "resource/decision_table.h"
	EVICTED_SLOT_FIELDS_COUNT,
};
#undef EVICTED_SLOT_ROWS
#undef FIELD

#define FIELD(name, ...) DECISION_FIELD_##name,
#define DECISION_ROWS
enum decision_field {
#include "resource/decision_table.h"
	DECISION_FIELDS_COUNT,
};
#undef DECISION_ROWS
#undef FIELD

#define FIELD(name, ...) TOKEN_FIELD_##name,
#define TOKEN_ROWS
enum token_field {
#include "resource/token_table.h"
	TOKEN_FIELDS_COUNT,
};
#undef TOKEN_ROWS
#undef FIELD

#define FIELD(name, ...) WINDOW_FIELD_##name,
#define WINDOW_ROWS
enum window_field {
#include "resource/window_table.h"
	WINDOW_FIELDS_COUNT,
};
#undef WINDOW_ROWS
#undef FIELD

#define FIELD(name, ...) GUARD_FIELD_##name,
#define GUARD_ROWS
enum guard_field {
#include "resource/job_part_table.h"
	GUARD_FIELDS_COUNT,
};
#undef GUARD_ROWS
#undef FIELD

#define FIELD(name, ...) ALLOCATED_GPU_FIELD_##name,
#define ALLOCATED_GPU_ROWS
enum allocated_gpu_field {
#include "resource/job_part_table.h"
	ALLOCATED_GPU_FIELDS_COUNT,
};
#undef ALLOCATED_GPU_ROWS
#undef FIELD

#define FIELD(name, ...) ALLOCATION_FIELD_##name,
#define ALLOCATION_ROWS
enum allocation_field {
#include "resource/job_part_table.h"
	ALLOCATION_FIELDS_COUNT,
};
#undef ALLOCATION_ROWS
#undef FIELD

#define FIELD(name, ...) DEPENDENCY_FIELD_##name,
#define DEPENDENCY_ROWS
enum dependency_field {
#include "resource/job_part_table.h"
	DEPENDENCY_FIELDS_COUNT,
};
#undef DEPENDENCY_ROWS
#undef FIELD

#define FIELD(name, ...) RUN_FIELD_##name,
#define RUN_ROWS
enum run_field {
#include "resource/accounting_table.h"
	RUN_FIELDS_COUNT,
};
#undef RUN_ROWS
#undef FIELD

#define FIELD(name, ...) REPORT_FIELD_##name,
#define REPORT_ROWS
enum report_field {
#include "resource/accounting_table.h"
	REPORT_FIELDS_COUNT,
};
#undef REPORT_ROWS
#undef FIELD

#define FIELD(name, ...) QUOTA_FIELD_##name,
#define QUOTA_ROWS
enum quota_field {
#include "resource/accounting_table.h"
	QUOTA_FIELDS_COUNT,
};
#undef QUOTA_ROWS
#undef FIELD

#define FIELD(name, ...) ACCURACY_FIELD_##name,
#define ACCURACY_ROWS
enum accuracy_field {
#include "resource/accounting_table.h"
	ACCURACY_FIELDS_COUNT,
};
#undef ACCURACY_ROWS
#undef FIELD

#define FIELD(name, ...) USAGE_FIELD_##name,
#define USAGE_ROWS
enum usage_field {
#include "resource/accounting_table.h"
	USAGE_FIELDS_COUNT,
};
#undef USAGE_ROWS
#undef FIELD

#endif
