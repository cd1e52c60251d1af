/* accounting.c - the tables of runs and reports */
#include "resource/table.h"

/* clang-format off */
static const struct resource_field run_fields[] = {
#define RUN_ROWS
#include "resource/accounting_table.h"
#undef RUN_ROWS
};
const struct resource run_resource = {
	.id = RESOURCE_RUN, .name = "run", .help = "One time that a task had its GPUs: what is billed",
	FIELDS_OF(run_fields), .schema = "Run", .no_proto = "runs are shown over REST",
};

static const struct resource_field report_children_fields[] = {
#define USAGE_ROWS
#include "resource/accounting_table.h"
#undef USAGE_ROWS
};
static const struct resource report_children_resource = {
	.name = "usage_including_children", .help = "What a tenant and all tenants below it used in a period",
	FIELDS_OF(report_children_fields),
};

static const struct resource_field report_fields[] = {
#define REPORT_ROWS
#include "resource/accounting_table.h"
#undef REPORT_ROWS
};
const struct resource report_resource = {
	.id = RESOURCE_REPORT, .name = "report", .help = "What a tenant itself used in a period",
	FIELDS_OF(report_fields), .schema = "Usage", .no_proto = "reports are made over REST",
};

static const struct resource_field accuracy_fields[] = {
#define ACCURACY_ROWS
#include "resource/accounting_table.h"
#undef ACCURACY_ROWS
};
const struct resource accuracy_resource = {
	.id = RESOURCE_ACCURACY, .name = "accuracy", .help = "How well jobs were predicted in a period",
	FIELDS_OF(accuracy_fields), .schema = "Accuracy", .no_proto = "reports are made over REST",
};

static const struct resource_field quota_fields[] = {
#define QUOTA_ROWS
#include "resource/accounting_table.h"
#undef QUOTA_ROWS
};
const struct resource quota_resource = {
	.id = RESOURCE_QUOTA, .name = "quota", .help = "A quota of GPUs, and what is proposed instead",
	FIELDS_OF(quota_fields), .schema = "Quota", .no_proto = "reports are made over REST",
};
/* clang-format on */
