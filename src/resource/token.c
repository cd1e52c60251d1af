/* token.c - the table of tokens */
#include "resource/table.h"

static const struct words role_words =
    WORDS("admin", "tenant", "viewer", "agent", "gateway", "inference", "tenant_admin");

/* clang-format off */
static const struct resource_field token_fields[] = {
#define TOKEN_ROWS
#include "resource/token_table.h"
#undef TOKEN_ROWS
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
	.no_form = "the dashboard has a form of its own for tokens",
};
