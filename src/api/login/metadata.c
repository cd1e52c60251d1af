/* metadata.c - what a provider of OpenID Connect publishes and answers */
#include "api/login/metadata.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/endpoint.h"
#include "base/ip.h"
#include "base/memory.h"
#include "json/json_reader.h"

enum { CODE_MAX = 4096, TOKEN_MAX = 64 << 10, LIFE_MAX_S = 3600, INTERVAL_MAX_S = 300 };
enum { INTERVAL_S = 5 }; /* where the provider does not say (RFC 8628) */

static const struct json_limits limits = { .bytes = METADATA_BYTES_MAX,
	                                   .depth = 8,
	                                   .values = 8192 };

static bool is_this_machine(struct text host)
{
	char text[64];
	struct ip ip;

	if (host.size >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)host.size, host.data);
	return strcmp(text, "localhost") == 0 || (ip_read(text, &ip) && ip_is_loopback(&ip));
}

bool metadata_url_is_safe(const char *url)
{
	struct endpoint endpoint;

	return strlen(url) < METADATA_URL_MAX && endpoint_read(text_of(url), &endpoint) &&
	       (endpoint.is_secure || is_this_machine(endpoint.host));
}

static char *metadata_copy(struct text text)
{
	char *to = memory_zero(1, text.size + 1);

	if (text.data)
		memcpy(to, text.data, text.size);
	return to;
}

/* NULL where it is missing and not needed, or wrong. */
static char *read_url(struct json_reader *reader, const char *name, bool is_needed)
{
	struct text text = json_get_text(reader, name, METADATA_URL_MAX - 1);

	if (reader->failed || (!text.data && !is_needed))
		return NULL;
	char *url = metadata_copy(text);
	if (text.data && strlen(url) == text.size && metadata_url_is_safe(url))
		return url;
	free(url);
	json_fail(reader, name, "is not an https:// URL");
	return NULL;
}

/* Whether a list of texts has one. */
static bool lists(struct json_reader *reader, const char *name, const char *wanted)
{
	const json_t *list = json_get_array(reader, name, SIZE_MAX);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));
		if (text && strcmp(text, wanted) == 0)
			return true;
	}
	return false;
}

bool metadata_read(struct text json, const char *issuer, struct metadata *metadata,
                   struct error *error)
{
	static const char *const methods = "token_endpoint_auth_methods_supported";
	json_t *document = json_read(json, &limits, error);

	*metadata = (struct metadata){ 0 };
	if (!document)
		return false;
	struct json_reader reader = json_reader_of(document, "", error);
	struct text named = json_get_text(&reader, "issuer", METADATA_URL_MAX);
	if (!reader.failed && !text_is(named, issuer))
		json_fail(&reader, "issuer", "is not the one that is configured (oidc.issuer)");
	metadata->authorization_url = read_url(&reader, "authorization_endpoint", true);
	metadata->token_url = read_url(&reader, "token_endpoint", true);
	metadata->keys_url = read_url(&reader, "jwks_uri", true);
	metadata->device_url = read_url(&reader, "device_authorization_endpoint", false);
	metadata->end_session_url = read_url(&reader, "end_session_endpoint", false);
	metadata->posts_secret = json_has(&reader, methods) &&
	                         !lists(&reader, methods, "client_secret_basic") &&
	                         lists(&reader, methods, "client_secret_post");
	bool ok = !reader.failed;
	json_decref(document);
	if (!ok)
		metadata_free(metadata);
	return ok;
}

void metadata_free(struct metadata *metadata)
{
	free(metadata->authorization_url);
	free(metadata->token_url);
	free(metadata->keys_url);
	free(metadata->device_url);
	free(metadata->end_session_url);
	*metadata = (struct metadata){ 0 };
}

/* Cut to size, and what a terminal or a page could take for something else as '?'. */
static void copy_plain(char *to, size_t size, struct text text)
{
	size_t count = text.size < size ? text.size : size - 1;

	for (size_t i = 0; i < count; i++)
		to[i] = text.data[i] >= ' ' && text.data[i] <= '~' ? text.data[i] : '?';
	to[count] = '\0';
}

bool token_answer_read(struct text json, struct token_answer *answer, struct error *error)
{
	json_t *document = json_read(json, &limits, error);

	*answer = (struct token_answer){ 0 };
	if (!document)
		return false;
	struct json_reader reader = json_reader_of(document, "", error);
	struct text token = json_get_text(&reader, "id_token", TOKEN_MAX);
	copy_plain(answer->error, sizeof(answer->error), json_get_text(&reader, "error", CODE_MAX));
	copy_plain(answer->description, sizeof(answer->description),
	           json_get_text(&reader, "error_description", CODE_MAX));
	if (!reader.failed && !token.data && !answer->error[0])
		json_fail(&reader, "id_token", "is missing");
	bool ok = !reader.failed;
	if (ok && token.data && !answer->error[0])
		answer->id_token = metadata_copy(token);
	json_decref(document);
	return ok;
}

void token_answer_free(struct token_answer *answer)
{
	if (answer->id_token)
		explicit_bzero(answer->id_token, strlen(answer->id_token));
	free(answer->id_token);
	*answer = (struct token_answer){ 0 };
}

/* Characters that can be shown, and sent again. */
static char *read_code(struct json_reader *reader, const char *name)
{
	struct text text = json_get_text(reader, name, CODE_MAX);

	if (reader->failed)
		return NULL;
	if (!text.data || text.size == 0 || text_has_control(text)) {
		json_fail(reader, name, "is missing, or not a code");
		return NULL;
	}
	return metadata_copy(text);
}

bool device_answer_read(struct text json, struct device_answer *answer, struct error *error)
{
	json_t *document = json_read(json, &limits, error);

	*answer = (struct device_answer){ 0 };
	if (!document)
		return false;
	struct json_reader reader = json_reader_of(document, "", error);
	answer->device_code = read_code(&reader, "device_code");
	answer->user_code = read_code(&reader, "user_code");
	answer->url = read_url(&reader, "verification_uri", true);
	answer->complete_url = read_url(&reader, "verification_uri_complete", false);
	answer->expires_s = json_get_integer(&reader, "expires_in", 1, INT64_MAX, LIFE_MAX_S);
	answer->interval_s = json_get_integer(&reader, "interval", 0, INTERVAL_MAX_S, INTERVAL_S);
	if (answer->expires_s > LIFE_MAX_S)
		answer->expires_s = LIFE_MAX_S;
	bool ok = !reader.failed;
	json_decref(document);
	if (!ok)
		device_answer_free(answer);
	return ok;
}

void device_answer_free(struct device_answer *answer)
{
	free(answer->device_code);
	free(answer->user_code);
	free(answer->url);
	free(answer->complete_url);
	*answer = (struct device_answer){ 0 };
}

void form_encode(struct buffer *text, const char *value)
{
	static const char hex[] = "0123456789ABCDEF";
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";

	for (; *value; value++) {
		unsigned char byte = (unsigned char)*value;
		char coded[3] = { '%', hex[byte >> 4], hex[byte & 15] };
		if (strchr(plain, *value))
			buffer_bytes(text, value, 1);
		else
			buffer_bytes(text, coded, sizeof(coded));
	}
}

void form_add(struct buffer *form, const char *name, const char *value)
{
	if (form->size > 0)
		buffer_bytes(form, "&", 1);
	form_encode(form, name);
	buffer_bytes(form, "=", 1);
	form_encode(form, value);
	buffer_text(form, "");
}
