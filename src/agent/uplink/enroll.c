/* enroll.c - gpu-agent enroll: gets a token for this node from the scheduler */
#include "agent/uplink/enroll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/host/host.h"
#include "agent/uplink/http_post.h"
#include "base/memory.h"
#include "base/options.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"
#include "json/member.h"

struct enrollment {
	const char *url, *admin_token_file, *token_file, *name, *ca_file, *days;
	bool help;
};

static const struct option table[] = {
	OPTION("--url", NULL, "http[s]://HOST:PORT", "the scheduler",
	       STORES_TEXT(struct enrollment, url)),
	OPTION("--admin-token-file", NULL, "FILE", "an administrator's token",
	       STORES_TEXT(struct enrollment, admin_token_file)),
	OPTION("--token-file", NULL, "FILE", "where to write the node's token",
	       STORES_TEXT(struct enrollment, token_file)),
	OPTION("--name", NULL, "NODE", "the node; the host's name",
	       STORES_TEXT(struct enrollment, name)),
	OPTION("--ca-file", NULL, "FILE", "trusted certificates",
	       STORES_TEXT(struct enrollment, ca_file)),
	OPTION("--days", NULL, "N", "how long the token is valid",
	       STORES_TEXT(struct enrollment, days)),
	OPTION("--help", "-h", NULL, "print this", STORES_FLAG(struct enrollment, help)),
	{ 0 },
};

static void print_help(FILE *to)
{
	fputs("usage: gpu-agent enroll --url URL --token-file FILE [OPTION...]\n\n"
	      "Gets a token for this node from the scheduler, with an administrator's token, and\n"
	      "writes it to a file that gpu-agent is then started with.\n\n",
	      to);
	options_print(to, table);
}

static bool read_token(const char *path, struct buffer *token, struct error *error)
{
	if (!path)
		return true;
	if (!file_read(path, 65536, token))
		return error_set(error, ERROR_NOT_FOUND, "cannot read %s: %s", path,
		                 strerror(errno));
	token->data[strcspn(token->data, " \t\r\n")] = '\0';
	token->size = strlen(token->data);
	return true;
}

static void enroll_describe(const struct enrollment *enrollment, struct buffer *body)
{
	struct json_writer json = json_writer_to(body);
	struct host host;

	host_read(&host);
	json_open_object(&json, NULL);
	json_put_string(&json, "role", "agent");
	json_put_string(&json, "node", enrollment->name ? enrollment->name : host.name);
	json_put_string(&json, "note", "made by gpu-agent enroll");
	json_put_flag(&json, "replace", true);
	if (enrollment->days) {
		char *duration = file_path("%sd", enrollment->days);
		json_put_string(&json, "expires_in", duration);
		free(duration);
	}
	json_close(&json);
}

/* Nobody but its owner may read it, from the first byte on. */
static bool write_token(const char *path, const char *token, struct error *error)
{
	INVARIANT(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool written =
	    fd >= 0 && fchmod(fd, 0600) == 0 && dprintf(fd, "%s\n", token) > 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return written ||
	       error_set(error, ERROR_UNAVAILABLE, "cannot write %s: %s", path, strerror(errno));
}

static bool take_answer(const struct enrollment *enrollment, int status,
                        const struct buffer *answer, struct error *error)
{
	json_t *said = json_read((struct text){ answer->data, answer->size }, NULL, NULL);
	const char *token = member_text(said, "token");
	const char *reason = member_text(said, "error");
	bool good = status == 201 && *token;

	if (good)
		good = write_token(enrollment->token_file, token, error);
	else
		error_set(error, ERROR_FORBIDDEN,
		          "the scheduler gave no token (HTTP status %d): %s", status,
		          *reason ? reason : "it did not say why");
	json_decref(said);
	return good;
}

static bool enroll(const struct enrollment *enrollment, struct error *error)
{
	struct buffer body = { 0 }, token = { 0 }, answer = { 0 };
	int status = 0;
	bool good = read_token(enrollment->admin_token_file, &token, error);

	if (good) {
		struct http_post post = { .url = enrollment->url,
			                  .path = "/api/v1/tokens",
			                  .token = token.size > 0 ? token.data : NULL,
			                  .ca_file = enrollment->ca_file };
		enroll_describe(enrollment, &body);
		post.body = (struct text){ body.data, body.size };
		good = http_post(&post, &status, &answer, error) &&
		       take_answer(enrollment, status, &answer, error);
	}
	if (token.data)
		explicit_bzero(token.data, token.size);
	buffer_free(&token);
	buffer_free(&body);
	buffer_free(&answer);
	return good;
}

int enroll_main(int argc, char **argv)
{
	struct enrollment enrollment = { 0 };
	struct error error = { 0 };

	bool good = options_store(table, argc - 1, argv + 1, &enrollment, &error);
	if (good && enrollment.help) {
		print_help(stdout);
		return 0;
	}
	if (good && (!enrollment.url || !enrollment.token_file))
		good = error_set(&error, ERROR_INVALID, "--url and --token-file are required");
	if (!good) {
		fprintf(stderr, "gpu-agent enroll: %s\n", error.text);
		print_help(stderr);
		return 2;
	}
	if (!enroll(&enrollment, &error)) {
		fprintf(stderr, "gpu-agent enroll: %s\n", error.text);
		return 1;
	}
	printf("the token is in %s\n", enrollment.token_file);
	return 0;
}
