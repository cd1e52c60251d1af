/* token_table.h - the fields of tokens, in the order in which answers show them. To be
 * included with FIELD and one of the *_ROWS defined: there is no include guard on purpose. */
/* clang-format off */
#ifdef TOKEN_ROWS
FIELD(id, .label = "ID", .help = "The token's id, which is not secret", .kind = VALUE_TEXT)
FIELD(token, .label = "Token", .help = "The token itself, shown once", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED)
FIELD(role, .label = "Role", .help = "What it may do", .kind = VALUE_WORD, .words = &role_words,
	.initial = "\"tenant\"", .setter = SET_AT_CREATION,
	.option = { .name = "--role", .letter = "-r", .argument = "ROLE", .help = "admin, tenant, tenant_admin, viewer, agent, gateway or inference (default: tenant)" })
FIELD(tenant_id, .label = "Tenant", .help = "The tenant that it is bound to", .kind = VALUE_ID,
	.refers = "tenant", .also = ALSO_NAME, .empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	.option = { .absent = "a global option: --tenant-id" })
FIELD(node, .label = "Node", .help = "Of an agent: the only node that it speaks for", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED, .nullable = true, .setter = SET_AT_CREATION,
	.option = { .name = "--node", .argument = "NODE", .help = "of an agent: the only node that it speaks for" })
FIELD(user, .label = "User", .help = "Of a session by single sign-on: whose it is", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED, .nullable = true)
FIELD(note, .label = "Note", .help = "What it is for", .kind = VALUE_TEXT, .setter = SET_AT_CREATION,
	.option = { .name = "--note", .argument = "TEXT" })
FIELD(expires_in, .label = "Expires in", .help = "How long it is valid", .kind = VALUE_DURATION,
	.unit = UNIT_MILLISECONDS, .also = ALSO_SECONDS, .hidden = "shown as expires_at",
	.setter = SET_AT_CREATION,
	.option = { .name = "--expires-in", .argument = "TIME", .help = "30d, 12h (default: never)" })
FIELD(replace, .label = "Replace", .help = "With node: the earlier tokens of that node and role are revoked",
	.kind = VALUE_FLAG, .initial = "false", .hidden = "those tokens are gone", .setter = SET_AT_CREATION,
	.option = { .name = "--replace", .help = "with --node: revoke the earlier tokens of that node" })
FIELD(created_at, .label = "Created", .help = "When it was made", .kind = VALUE_TIME, .empty = EMPTY_NULL)
FIELD(expires_at, .label = "Expires", .help = "When it expires; null: never", .kind = VALUE_TIME,
	.empty = EMPTY_NULL)
FIELD(requests_per_minute, .label = "Requests a minute",
	.help = "Requests to models in a minute; null: no limit but the tenant's", .kind = VALUE_INTEGER,
	.most = TENANT_COUNT_MAX, .none = 0, .empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	.option = { .name = "--requests-per-minute", .argument = "N", .help = "requests to models in a minute at most" })
FIELD(tokens_per_minute, .label = "Tokens a minute",
	.help = "Tokens of models in a minute; null: no limit but the tenant's", .kind = VALUE_INTEGER,
	.most = TENANT_COUNT_MAX, .none = 0, .empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	.option = { .name = "--tokens-per-minute", .argument = "N", .help = "tokens of models in a minute at most" })
FIELD(max_streams, .label = "Max streams",
	.help = "Streams of models at a time; null: no limit but the tenant's", .kind = VALUE_INTEGER,
	.most = TENANT_COUNT_MAX, .none = 0, .empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	.option = { .name = "--max-streams", .argument = "N", .help = "streams of models at a time at most" })
FIELD(budget_per_month, .label = "Budget per month",
	.help = "What its tokens of models may cost in a month; null: no limit but the tenant's",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .most = TENANT_MONEY_MAX,
	.none = 0, .empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	.option = { .name = "--budget", .argument = "SUM", .help = "what its tokens of models may cost in a month" })
FIELD(month_cost, .label = "Cost this month", .help = "What its tokens of models cost this month",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY)
#endif
