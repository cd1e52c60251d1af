/* single_sign_on.c - signing in by a provider, with a device code (RFC 8628) */
#include "cli/command/single_sign_on.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "json/member.h"

enum { SLOWER_MS = 5000, INTERVAL_MS_MAX = 60000 };

/* What the user has to do. The texts are the provider's: what a terminal would obey is left out. */
static void print_plain(const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text > ' ' && (unsigned char)*text < 0x7f ? *text : '?',
		      stderr);
}

static void explain(const json_t *device)
{
	fputs("Open this address in a browser:\n\n  ", stderr);
	print_plain(*member_text(device, "verification_uri_complete")
	                ? member_text(device, "verification_uri_complete")
	                : member_text(device, "verification_uri"));
	fputs("\n\nThe page asks for this code, or shows it: ", stderr);
	print_plain(member_text(device, "user_code"));
	fputs("\n", stderr);
}

/* Asks once: NULL with a reason, or the answer, which may be that it is pending. */
static json_t *ask_for_token(struct client *client, const char *code, struct error *error)
{
	json_t *body = json_pack("{s:s}", "device_code", code);
	char *text = json_dumps(body, JSON_COMPACT);
	json_t *answer =
	    client_ask(client,
	               &(struct client_request){
			   .method = "POST", .path = "/api/v1/login/device/token", .body = text },
	               error);

	explicit_bzero(text, strlen(text));
	free(text);
	json_decref(body);
	return answer;
}

static char *wait_for_token(struct client *client, const json_t *device, struct error *error)
{
	int64_t until_ms = clock_steady_ms() + member_integer(device, "expires_in") * 1000;
	int64_t pause_ms = member_integer(device, "interval") * 1000;

	while (clock_steady_ms() < until_ms) {
		poll(NULL, 0, (int)pause_ms);
		json_t *answer = ask_for_token(client, member_text(device, "device_code"), error);
		if (!answer)
			return NULL;
		const char *status = member_text(answer, "status");
		char *token = *member_text(answer, "token")
		                  ? memory_text(member_text(answer, "token"))
		                  : NULL;
		if (token) {
			fputs("Signed in as ", stderr);
			print_plain(member_text(answer, "user"));
			fputs(".\n", stderr);
		}
		if (strcmp(status, "slow_down") == 0 && pause_ms < INTERVAL_MS_MAX)
			pause_ms += SLOWER_MS;
		json_decref(answer);
		if (token)
			return token;
	}
	error_set(error, ERROR_FORBIDDEN, "the code has expired: nobody signed in with it in time");
	return NULL;
}

char *single_sign_on(struct client *client, struct error *error)
{
	json_t *device = client_ask(
	    client, &(struct client_request){ .method = "POST", .path = "/api/v1/login/device" },
	    error);

	if (!device)
		return NULL;
	explain(device);
	char *token = wait_for_token(client, device, error);
	json_decref(device);
	return token;
}

bool single_sign_off(struct client *client, struct error *error)
{
	json_t *answer = client_ask(
	    client, &(struct client_request){ .method = "POST", .path = "/api/v1/logout" }, error);

	if (!answer)
		return false;
	if (*member_text(answer, "provider_url")) {
		fputs("To sign out of the provider too, open this address:\n\n  ", stderr);
		print_plain(member_text(answer, "provider_url"));
		fputs("\n\n", stderr);
	}
	json_decref(answer);
	return true;
}
