/* metadata.h - what a provider of OpenID Connect publishes and answers, read strictly */
#ifndef API_LOGIN_METADATA_H
#define API_LOGIN_METADATA_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

enum { METADATA_BYTES_MAX = 256 << 10, METADATA_URL_MAX = 1024 };

/* The discovery document (OpenID Connect Discovery). Freed with metadata_free. */
struct metadata {
	char *authorization_url, *token_url, *keys_url;
	char *device_url, *end_session_url; /* NULL: it has none */
	bool posts_secret;                  /* the client's secret goes into the body */
};

/* True if a URL is https, or http to this machine. */
bool metadata_url_is_safe(const char *url);

/* False with a reason if it is not of this issuer, or if a URL is missing or not safe. */
bool metadata_read(struct text json, const char *issuer, struct metadata *metadata,
                   struct error *error);
void metadata_free(struct metadata *metadata);

/* The answer of the token endpoint. `id_token` is NULL unless there is one; otherwise `error` is
 * the provider's word for what is wrong, in characters that are safe to show. */
struct token_answer {
	char *id_token;
	char error[64], description[200];
};
bool token_answer_read(struct text json, struct token_answer *answer, struct error *error);
void token_answer_free(struct token_answer *answer);

/* The answer of the device endpoint (RFC 8628). Freed with device_answer_free. */
struct device_answer {
	char *device_code, *user_code, *url, *complete_url; /* complete_url may be NULL */
	int64_t expires_s, interval_s;
};
bool device_answer_read(struct text json, struct device_answer *answer, struct error *error);
void device_answer_free(struct device_answer *answer);

/* Appends NAME=VALUE, percent-encoded, with '&' before it if something is there already. */
void form_add(struct buffer *form, const char *name, const char *value);
/* Percent-encodes all but letters, digits and -._~ */
void form_encode(struct buffer *text, const char *value);

#endif
