/* commands.c - what gpu-scheduler does beside serving: backups, checks, the first token */
#include "server/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/auth/gate.h"
#include "base/duration.h"
#include "base/number_text.h"
#include "server/directory.h"
#include "store/backup.h"
#include "store/check.h"

static int commands_fail(const struct error *error)
{
	fprintf(stderr, "gpu-scheduler: %s\n", error->text);
	return 1;
}

/* Under a name of its own, so that it never takes a running scheduler for an
 * earlier start of itself. */
static struct store_options store_options_of(struct config *config)
{
	return (struct store_options){ .database = config_database(config),
		                       .name = "command",
		                       .lease_ms = config->database.lease_ms,
		                       .timeout_ms = config->database.timeout_ms };
}

static const char *name_of(const struct config *config)
{
	return config_is_postgres(config) ? "the PostgreSQL database" : "the database";
}

static int run_backup(const struct options *options, struct config *config)
{
	struct store_options store = store_options_of(config);
	struct error error;
	if (!backup_write(&store, options->file, &error))
		return commands_fail(&error);
	printf("%s has everything as of now.\n", options->file);
	return 0;
}

static int run_restore(const struct options *options, struct config *config)
{
	struct store_options store = store_options_of(config);
	struct error error;
	if (!directory_make(config->store.data_dir, &error) ||
	    !backup_restore(&store, options->file, options->yes, &error)) {
		commands_fail(&error);
		if (error.code == ERROR_CONFLICT && !options->yes)
			fprintf(stderr, "With --yes everything in it is replaced.\n");
		return 1;
	}
	printf("Restored %s from %s. New ids and terms start %d higher, so that none is used "
	       "twice.\n",
	       name_of(config), options->file, RESTORE_GAP);
	return 0;
}

/* Whether the file itself is whole; otherwise told. */
static bool is_whole(struct store *store)
{
	struct buffer faults = { 0 };
	struct error error;
	if (!check_file(store, &faults, &error)) {
		commands_fail(&error);
		buffer_free(&faults);
		return false;
	}
	bool whole = faults.size == 0;
	if (!whole)
		printf("%sNo record can be trusted in a damaged file: restore a backup.\n",
		       faults.data);
	buffer_free(&faults);
	return whole;
}

/* Finds what is wrong; false, told, if it could not be looked at. */
static bool find_faults(struct store *store, struct check *check)
{
	struct buffer text = { 0 };
	struct error error;
	if (!check_run(store, check, &error)) {
		commands_fail(&error);
		return false;
	}
	buffer_text(&text, "");
	check_print(check, &text);
	fputs(text.data, stdout);
	buffer_free(&text);
	return true;
}

static bool is_fine(const struct check *check)
{
	return check->count == 0 && check->last.code == ERROR_NONE;
}

static int run_check(struct config *config)
{
	struct store_options options = store_options_of(config);
	struct store *store = store_new(&options);
	struct check check = { 0 };
	struct error error;
	int status = 1;
	if (store_read_only(store, &error) != STORE_DONE) {
		commands_fail(&error);
	} else if (is_whole(store) && find_faults(store, &check)) {
		status = is_fine(&check) ? 0 : 1;
		if (status == 0)
			printf("Database OK: a scheduler can start on it.\n");
		else
			printf("%zu records are wrong. 'gpu-scheduler repair' says what can be "
			       "done.\n",
			       check.count);
	}
	check_free(&check);
	store_free(store);
	return status;
}

static int repair(struct store *store, const struct check *check, bool yes)
{
	struct error error;
	if (is_fine(check)) {
		printf("Nothing is wrong, so nothing is done.\n");
		return 0;
	}
	if (check->count == 0) {
		printf("None of the records is to blame by itself: restore a backup.\n");
		return 1;
	}
	printf("These %zu records %s taken out of their tables, in one transaction, and kept as "
	       "text in the table quarantine. A job goes with its tasks and reservations.\n",
	       check->count, yes ? "are" : "would be");
	if (!yes) {
		printf("Make a backup, then say --yes.\n");
		return 1;
	}
	if (!check_repair(store, check, &error))
		return commands_fail(&error);
	printf("Done.\n");
	return 0;
}

/* Leads while it looks and repairs: nobody changes anything in between. */
static int run_repair(const struct options *options, struct config *config)
{
	struct store_options store_options = store_options_of(config);
	struct store *store = store_new(&store_options);
	struct check check = { 0 };
	struct error error;
	int status = 1;
	enum store_outcome outcome =
	    options->yes ? store_lead(store, &error) : store_read_only(store, &error);
	if (outcome != STORE_DONE)
		commands_fail(&error);
	else if (is_whole(store) && find_faults(store, &check))
		status = repair(store, &check, options->yes);
	check_free(&check);
	store_free(store);
	return status;
}

static bool read_role(const char *text, enum role *role)
{
	static const char *const words[] = { "admin",   "tenant",    "viewer",      "agent",
		                             "gateway", "inference", "tenant_admin" };
	for (int i = 0; i < 7; i++)
		if (strcmp(text, words[i]) == 0) {
			*role = (enum role)i;
			return true;
		}
	return false;
}

/* A number behind an optional prefix; 0 for what is none. */
static int64_t read_id(const char *text, const char *prefix)
{
	int64_t number = 0;
	if (strncmp(text, prefix, strlen(prefix)) == 0)
		text += strlen(prefix);
	return number_read(text_of(text), 1, INT64_MAX, &number) ? number : 0;
}

/* How long it is valid, as a duration or in days; 0: for ever. */
static bool read_validity(const struct options *options, int64_t *ms, struct error *error)
{
	const int64_t day_ms = INT64_C(86400000), days_max = 10000;
	int64_t days = options->days ? read_id(options->days, "") : 0;

	*ms = days * day_ms;
	if (options->days && options->expires_in)
		return error_set(error, ERROR_INVALID, "give --expires-in or --days, not both");
	if (options->days && (days == 0 || days > days_max))
		return error_set(error, ERROR_INVALID, "--days is '%.40s': write a number of days",
		                 options->days);
	if (options->expires_in &&
	    (!duration_read(text_of(options->expires_in), days_max * day_ms, ms) || *ms == 0))
		return error_set(error, ERROR_INVALID,
		                 "--expires-in is '%.40s': write a duration, such as 30d or 12h",
		                 options->expires_in);
	return true;
}

static bool describe_token(const struct options *options, struct gate_token *token,
                           struct error *error)
{
	int64_t valid_ms;
	*token = (struct gate_token){ .created_ms = (int64_t)time(NULL) * 1000 };
	if (!read_role(options->role ? options->role : "admin", &token->identity.role))
		return error_set(
		    error, ERROR_INVALID,
		    "--role is '%.40s': it may be admin, tenant, tenant_admin, viewer, agent, "
		    "gateway or inference",
		    options->role);
	if (options->tenant)
		token->identity.tenant_id = read_id(options->tenant, "tenant-");
	if (options->tenant && token->identity.tenant_id == 0)
		return error_set(error, ERROR_INVALID,
		                 "--tenant-id is '%.40s': write its id, such as tenant-3",
		                 options->tenant);
	if ((token->identity.role == ROLE_TENANT || token->identity.role == ROLE_TENANT_ADMIN) &&
	    token->identity.tenant_id == 0)
		return error_set(error, ERROR_INVALID, "--role %.40s needs --tenant-id ID",
		                 options->role);
	if (token->identity.role == ROLE_ADMIN && token->identity.tenant_id != 0)
		return error_set(error, ERROR_INVALID,
		                 "an administrator belongs to no tenant: say --role tenant");
	if (!read_validity(options, &valid_ms, error))
		return false;
	token->expires_ms = valid_ms > 0 ? token->created_ms + valid_ms : 0;
	snprintf(token->identity.node, sizeof(token->identity.node), "%s",
	         options->node ? options->node : "");
	snprintf(token->note, sizeof(token->note), "%s",
	         options->note ? options->note : "made by gpu-scheduler token create");
	return true;
}

static bool keep_token(struct store *store, const struct gate_token *token, struct error *error)
{
	struct batch *batch = batch_new(store_schema(store));
	struct buffer json = { 0 };
	gate_token_write(token, &json);
	buffer_text(&json, "");
	batch_keep(batch, "token", token->id, json.data);
	bool done = store_commit(store, batch, error) == STORE_DONE;
	buffer_free(&json);
	batch_free(batch);
	return done;
}

/* The token is the only thing on standard output, for scripts. */
static int run_create_token(const struct options *options, struct config *config)
{
	struct store_options store_options = store_options_of(config);
	struct store *store = store_new(&store_options);
	struct gate_token token;
	struct error error;
	char text[96];
	bool done = describe_token(options, &token, &error) &&
	            gate_make_token(&token, text, &error) &&
	            directory_make(config->store.data_dir, &error) &&
	            store_lead(store, &error) == STORE_DONE && keep_token(store, &token, &error);
	store_free(store);
	if (!done) {
		commands_fail(&error);
		if (error.code == ERROR_UNAVAILABLE)
			fprintf(stderr, "While the service runs, make tokens with it: "
			                "POST /api/v1/tokens, or gpu-cli.\n");
		return 1;
	}
	printf("%s\n", text);
	fprintf(stderr, "This is %s. It is shown once: keep it safe.\n", token.id);
	explicit_bzero(text, sizeof(text));
	return 0;
}

int command_run(const struct options *options, struct config *config)
{
	switch (options->action) {
	case ACTION_BACKUP:
		return run_backup(options, config);
	case ACTION_RESTORE:
		return run_restore(options, config);
	case ACTION_CHECK:
		return run_check(config);
	case ACTION_REPAIR:
		return run_repair(options, config);
	default:
		return run_create_token(options, config);
	}
}
