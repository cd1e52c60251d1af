/* completion.c - what a shell offers while a command is typed */
#include "cli/completion.h"

#include <stdio.h>
#include <string.h>

#include "cli/session.h"
#include "json/member.h"

enum { ANSWER_MS = 1000, JOBS_MAX = 200 };

static bool begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void completion_offer(const char *text, const char *typed)
{
	if (*text && begins(text, typed) && !strpbrk(text, "\n\r\t "))
		puts(text);
}

static void offer_words(const char *words, const char *typed)
{
	while (words && *words) {
		size_t size = strcspn(words, " ");
		char word[80];
		snprintf(word, sizeof(word), "%.*s", (int)size, words);
		completion_offer(word, typed);
		words += size + strspn(words + size, " ");
	}
}

static void offer_commands(const char *typed)
{
	for (const struct cli_command *const *at = cli_commands; *at; at++)
		if (!(*at)->hidden)
			completion_offer((*at)->name, typed);
	completion_offer("help", typed);
}

static void offer_contexts(const char *typed)
{
	struct config config = { 0 };
	struct buffer path = { 0 };
	struct error unused = { 0 };
	if (config_path(&path, &unused) && config_load(&config, path.data, &unused))
		for (size_t i = 0; i < config.count; i++)
			completion_offer(config.contexts[i].name, typed);
	config_free(&config);
	buffer_free(&path);
}

/* What the service has, by what completes it: the path, the list in the answer, and the member
 * of its items that is offered. */
static const struct {
	enum completes completes;
	const char *path, *key, *member, *other;
} lists[] = {
	{ COMPLETES_JOBS, "/api/v1/jobs?limit=200", "jobs", "id", NULL },
	{ COMPLETES_NODES, "/api/v1/nodes?limit=1000", "nodes", "id", NULL },
	{ COMPLETES_TENANTS, "/api/v1/tenants?limit=1000", "tenants", "name", "id" },
	{ COMPLETES_MODELS, "/api/v1/models?limit=1000", "models", "name", NULL },
	{ COMPLETES_WINDOWS, "/api/v1/windows", "windows", "name", NULL },
	{ COMPLETES_TOKENS, "/api/v1/tokens", "tokens", "id", NULL },
};

static void offer_list(const struct arguments *arguments, size_t which, const char *typed)
{
	struct session session;
	struct error unused = { 0 };
	size_t place;
	json_t *item;
	if (!session_open_quietly(&session, arguments, &unused))
		return;
	session.client.most_ms = session.client.connect_ms = ANSWER_MS;
	json_t *answer = session_get(&session, lists[which].path, &unused);
	json_array_foreach(json_object_get(answer, lists[which].key), place, item)
	{
		completion_offer(member_text(item, lists[which].member), typed);
		if (lists[which].other && *typed)
			completion_offer(member_text(item, lists[which].other), typed);
	}
	json_decref(answer);
	session_close(&session);
}

static void offer_kind(const struct arguments *arguments, enum completes completes,
                       const char *words, const char *typed)
{
	if (completes == COMPLETES_FILES)
		puts("@files");
	else if (completes == COMPLETES_WORDS)
		offer_words(words, typed);
	else if (completes == COMPLETES_CONTEXTS)
		offer_contexts(typed);
	else if (completes == COMPLETES_COMMANDS)
		offer_commands(typed);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].completes == completes)
			offer_list(arguments, i, typed);
}

static const struct option *find_option(const struct cli_command *command, const char *name,
                                        size_t size)
{
	const struct option *sets[CLI_SETS];
	int count = cli_options(command, sets);
	for (int i = 0; i < count; i++)
		for (const struct option *option = sets[i]; option->name; option++)
			if ((strlen(option->name) == size &&
			     strncmp(option->name, name, size) == 0) ||
			    (option->letter && strlen(option->letter) == size &&
			     strncmp(option->letter, name, size) == 0))
				return option;
	return NULL;
}

static void offer_options(const struct cli_command *command, const char *typed)
{
	const struct option *sets[CLI_SETS];
	int count = cli_options(command, sets);
	for (int i = 0; i < count; i++)
		for (const struct option *option = sets[i]; option->name; option++)
			completion_offer(option->name, typed);
	completion_offer("--help", typed);
}

/* The verbs of a command come first, then what they are about. */
static void offer_operand(const struct arguments *arguments, const struct cli_command *command,
                          const char *typed)
{
	if (command->operand != COMPLETES_WORDS || arguments->operand_count == 0) {
		offer_kind(arguments, command->operand, command->words, typed);
		return;
	}
	const char *verb = arguments->operands[0];
	enum completes about =
	    strcmp(verb, "use-context") == 0 || strcmp(verb, "delete-context") == 0
		? COMPLETES_CONTEXTS
	    : strcmp(verb, "revoke") == 0          ? COMPLETES_TOKENS
	    : strcmp(command->name, "models") == 0 ? COMPLETES_MODELS
						   : COMPLETES_NOTHING;
	offer_kind(arguments, about, NULL, typed);
}

static void offer_for(const struct cli_command *command, int count, char *const *words)
{
	const struct option *sets[CLI_SETS];
	struct arguments arguments = { .command = command };
	struct error unused = { 0 };
	const char *typed = words[count - 1];
	const char *before = count > 1 ? words[count - 2] : "";
	const struct option *waiting = begins(before, "-") && !strchr(before, '=')
	                                   ? find_option(command, before, strlen(before))
	                                   : NULL;
	bool wants_value = waiting && waiting->value;
	/* What stands before tells which service to ask. */
	int known = wants_value ? count - 2 : count - 1;
	int set_count = cli_options(command, sets);
	if (!arguments_read(&arguments, sets, set_count, command->runs, known, (char **)words,
	                    &unused)) {
		arguments_free(&arguments);
		arguments = (struct arguments){ .command = command };
	}
	const char *equals = begins(typed, "--") ? strchr(typed, '=') : NULL;
	const struct option *given =
	    equals ? find_option(command, typed, (size_t)(equals - typed)) : NULL;
	if (command->runs && arguments.operand_count > 0)
		puts("@files");
	else if (wants_value)
		offer_kind(&arguments, (enum completes)waiting->completes, waiting->words, typed);
	else if (given)
		offer_kind(&arguments, (enum completes)given->completes, given->words, equals + 1);
	else if (begins(typed, "-"))
		offer_options(command, typed);
	else
		offer_operand(&arguments, command, typed);
	arguments_free(&arguments);
}

void completion_print(int count, char *const *words)
{
	if (count <= 1) {
		offer_commands(count == 1 ? words[0] : "");
		return;
	}
	const struct cli_command *command = cli_find(words[0]);
	if (strcmp(words[0], "help") == 0 && count == 2)
		offer_commands(words[1]);
	else if (command)
		offer_for(command, count - 1, words + 1);
}
