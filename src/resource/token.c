/* token.c - the table of tokens */
#include "resource/table.h"

static const struct words role_words = WORDS("admin", "tenant", "viewer", "agent");

/* clang-format off */
static const struct resource_field token_fields[] = {
FIELD(id, .label = "ID", .help = "The token's id, which is not secret", .kind = VALUE_TEXT)
FIELD(token, .label = "Token", .help = "The token itself, shown once", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED)
FIELD(role, .label = "Role", .help = "What it may do", .kind = VALUE_WORD, .words = &role_words,
	.initial = "\"tenant\"", .setter = SET_AT_CREATION,
	.option = { .name = "--role", .letter = "-r", .argument = "ROLE", .help = "admin, tenant, viewer or agent (default: tenant)" })
FIELD(tenant_id, .label = "Tenant", .help = "The tenant that it is bound to", .kind = VALUE_ID,
	.refers = "tenant", .also = ALSO_NAME, .empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	.option = { .absent = "a global option: --tenant-id" })
FIELD(node, .label = "Node", .help = "Of an agent: the only node that it speaks for", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED, .nullable = true, .setter = SET_AT_CREATION,
	.option = { .name = "--node", .argument = "NODE" })
FIELD(note, .label = "Note", .help = "What it is for", .kind = VALUE_TEXT, .setter = SET_AT_CREATION,
	.option = { .name = "--note", .argument = "TEXT" })
FIELD(expires_in, .label = "Expires in", .help = "How long it is valid", .kind = VALUE_DURATION,
	.unit = UNIT_MILLISECONDS, .also = ALSO_SECONDS, .hidden = "shown as expires_at",
	.setter = SET_AT_CREATION,
	.option = { .name = "--expires-in", .argument = "TIME", .help = "30d, 12h (default: never)" })
FIELD(created_at, .label = "Created", .help = "When it was made", .kind = VALUE_TIME, .empty = EMPTY_NULL)
FIELD(expires_at, .label = "Expires", .help = "When it expires; null: never", .kind = VALUE_TIME,
	.empty = EMPTY_NULL)
};
/* clang-format on */

const struct resource token_resource = {
	.id = RESOURCE_TOKEN,
	.name = "token",
	.help = "What a person or a program signs in with",
	FIELDS_OF(token_fields),
	.schema = "Token",
	.null_is_default = true,
	.no_proto = "tokens are managed over REST",
	.no_form = "tokens are made with gpu-cli",
};
