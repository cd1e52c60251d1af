/* tenant.c - the table of tenants */
#include "resource/table.h"

static const struct words tier_words = WORDS("low", "medium", "high", "critical");
static const struct words notify_words =
    WORDS("started", "completed", "failed", "preempted", "cancelled");

static const struct resource_field tenant_fields[] = {
#include "resource/tenant_table.h"
};

const struct resource tenant_resource = {
	.id = RESOURCE_TENANT,
	.name = "tenant",
	.help = "A team, or an organization with teams below it: its limits, its quota and its use",
	FIELDS_OF(tenant_fields),
	.schema = "Tenant",
	.request_schema = "TenantRequest",
	.null_is_default = true,
	.request_message = "UpdateTenantQuotaRequest",
	.reply_message = "Tenant",
	.no_form = "the dashboard shows tenants, and does not change them",
};
