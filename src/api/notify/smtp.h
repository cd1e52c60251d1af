/* smtp.h - one e-mail, handed to a mail server */
#ifndef API_NOTIFY_SMTP_H
#define API_NOTIFY_SMTP_H

#include <stdint.h>

#include "base/error.h"
#include "fetch/fetch.h"

enum smtp_security { SMTP_STARTTLS, SMTP_TLS, SMTP_PLAIN };

struct smtp_mail {
	const char *host;
	int64_t port; /* 0: 587 with STARTTLS, 465 with TLS, 25 in the clear */
	enum smtp_security security;
	const char *user, *password; /* NULL: no sign-in; never sent in the clear */
	const char *ca_path;
	const char *from, *to;
	const char *subject, *body; /* UTF-8 */
	int64_t number, unix_ms;
	int64_t timeout_ms;
	const fetch_end_ms *end_ms; /* as in struct fetch_request */
};

/* name@host, of characters that need no quoting. */
bool smtp_address_check(const char *address, struct error *error);
/* Sends it, in the calling thread. ERROR_NOT_FOUND: the server will never take it. */
bool smtp_send(const struct smtp_mail *mail, struct error *error);

#endif
