/* mail.h - e-mail, handed to a mail server by libcurl */
#ifndef FETCH_MAIL_H
#define FETCH_MAIL_H

#include "fetch/fetch.h"

/* A mail. Texts belong to the caller. */
struct fetch_mail {
	const char *url;             /* smtp://HOST:PORT or smtps://HOST:PORT */
	const char *server;          /* what errors call it */
	bool needs_tls;              /* of smtp://: STARTTLS, or the mail is not sent */
	const char *user, *password; /* NULL: no sign-in; needs TLS */
	const char *ca_file;         /* trusted certificates; NULL: the system's */
	const char *from, *to;       /* name@host */
	const char *text;            /* headers and body, lines ended by CR LF */
	size_t text_size;
	int64_t total_ms;
	const fetch_end_ms *end_ms; /* NULL: never */
};

/* Hands it over, in the calling thread. ERROR_NOT_FOUND: the server will never accept it. */
bool fetch_mail_send(const struct fetch_mail *mail, struct error *error);

#endif
