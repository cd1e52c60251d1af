/* smtp.c - one e-mail, handed to a mail server */
#include "api/smtp.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/base64.h"
#include "api/dial.h"

enum { LINE_MAX_BYTES = 1000, BASE64_LINE = 76 };

bool smtp_address_check(const char *address, struct error *error)
{
	const char *at = strchr(address, '@');
	bool ok = at && at != address && at[1] && !strchr(at + 1, '@') && strlen(address) <= 254;

	for (const char *c = address; ok && *c; c++)
		ok = isalnum((unsigned char)*c) || strchr("@.!#$%&'*+-/=?^_`{|}~", *c);
	return ok ||
	       error_set(error, ERROR_INVALID, "an e-mail address is such as name@example.org");
}

/* The last line of an answer begins with its code and a space. */
static bool expect(struct dial *dial, int wanted, struct error *error)
{
	char line[LINE_MAX_BYTES];

	do {
		if (!dial_line(dial, line, sizeof(line), error))
			return false;
	} while (strlen(line) > 3 && line[3] == '-');
	int code = (int)strtol(line, NULL, 10);
	if (code / 100 == wanted)
		return true;
	return error_set(error, code / 100 == 5 ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE,
	                 "the mail server answered: %.200s", line);
}

static bool say(struct dial *dial, int wanted, struct error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static bool say(struct dial *dial, int wanted, struct error *error, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list arguments;

	va_start(arguments, format);
	int size = vsnprintf(line, sizeof(line) - 2, format, arguments);
	va_end(arguments);
	if (size < 0 || (size_t)size >= sizeof(line) - 2)
		return error_set(error, ERROR_NOT_FOUND, "a line is too long for the mail server");
	line[size] = '\r';
	line[size + 1] = '\n';
	return dial_write(dial, (struct text){ line, (size_t)size + 2 }, error) &&
	       expect(dial, wanted, error);
}

static bool sign_in(struct dial *dial, const struct smtp_mail *mail, struct error *error)
{
	struct buffer plain = { 0 }, text = { 0 };

	if (!mail->user)
		return true;
	buffer_bytes(&plain, "", 1);
	buffer_text(&plain, mail->user);
	buffer_bytes(&plain, "", 1);
	buffer_text(&plain, mail->password ? mail->password : "");
	base64_write(&text, plain.data, plain.size);
	bool ok = say(dial, 2, error, "AUTH PLAIN %.*s", (int)text.size, text.data);
	buffer_free(&plain);
	buffer_free(&text);
	/* What the server says about a password may contain it. */
	return ok || error_set(error, ERROR_UNAVAILABLE, "the mail server refuses the sign-in");
}

/* Lines of base64, so that neither dots nor long lines need care. */
static void write_base64(struct buffer *to, const char *text)
{
	struct buffer whole = { 0 };

	base64_write(&whole, text, strlen(text));
	for (size_t at = 0; at < whole.size; at += BASE64_LINE) {
		size_t size = whole.size - at < BASE64_LINE ? whole.size - at : BASE64_LINE;
		buffer_bytes(to, whole.data + at, size);
		buffer_text(to, "\r\n");
	}
	buffer_free(&whole);
}

/* In words that fit on their lines: 45 bytes make 60 characters. */
static void write_subject(struct buffer *to, const char *subject)
{
	size_t left = strlen(subject);

	buffer_text(to, "Subject:");
	while (left > 0) {
		size_t size = left < 45 ? left : 45;
		while (size < left && size > 0 && ((unsigned char)subject[size] & 0xc0) == 0x80)
			size--;
		if (size == 0)
			size = left < 45 ? left : 45;
		buffer_text(to, " =?UTF-8?B?");
		base64_write(to, subject, size);
		buffer_text(to, "?=\r\n");
		subject += size;
		left -= size;
	}
}

static void write_mail(struct buffer *to, const struct smtp_mail *mail)
{
	time_t seconds = (time_t)(mail->unix_ms / 1000);
	struct tm parts;
	char date[64];

	gmtime_r(&seconds, &parts);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S +0000", &parts);
	buffer_print(to, "Date: %s\r\nFrom: gpu-scheduler <%s>\r\nTo: <%s>\r\n", date, mail->from,
	             mail->to);
	buffer_print(to, "Message-ID: <%lld.%lld@gpu-scheduler>\r\n", (long long)mail->unix_ms,
	             (long long)mail->number);
	write_subject(to, mail->subject);
	buffer_text(to,
	            "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
	            "Content-Transfer-Encoding: base64\r\nAuto-Submitted: auto-generated\r\n\r\n");
	write_base64(to, mail->body);
	buffer_text(to, ".\r\n");
}

static bool hand_over(struct dial *dial, const struct smtp_mail *mail, struct error *error)
{
	struct buffer text = { 0 };

	if (!say(dial, 2, error, "MAIL FROM:<%s>", mail->from) ||
	    !say(dial, 2, error, "RCPT TO:<%s>", mail->to) || !say(dial, 3, error, "DATA"))
		return false;
	write_mail(&text, mail);
	bool ok = dial_write(dial, (struct text){ text.data, text.size }, error) &&
	          expect(dial, 2, error);
	buffer_free(&text);
	return ok;
}

static bool greet(struct dial *dial, const struct smtp_mail *mail, struct error *error)
{
	if (!expect(dial, 2, error) || !say(dial, 2, error, "EHLO gpu-scheduler"))
		return false;
	if (mail->security != SMTP_STARTTLS)
		return true;
	return say(dial, 2, error, "STARTTLS") && dial_secure(dial, error) &&
	       say(dial, 2, error, "EHLO gpu-scheduler");
}

bool smtp_send(const struct smtp_mail *mail, struct error *error)
{
	static const int64_t ports[] = {
		[SMTP_STARTTLS] = 587, [SMTP_TLS] = 465, [SMTP_PLAIN] = 25
	};

	if (!smtp_address_check(mail->from, error) || !smtp_address_check(mail->to, error))
		return false;
	if (mail->user && mail->security == SMTP_PLAIN)
		return error_set(error, ERROR_INVALID,
		                 "a password is not sent to a mail server in the clear");
	struct dial *dial = dial_open(
	    &(struct dial_options){ .host = mail->host,
	                            .port = mail->port ? mail->port : ports[mail->security],
	                            .tls = mail->security == SMTP_TLS,
	                            .ca_path = mail->ca_path,
	                            .timeout_ms = mail->timeout_ms,
	                            .end_ms = mail->end_ms },
	    error);
	if (!dial)
		return false;
	struct error goodbye;
	bool ok =
	    greet(dial, mail, error) && sign_in(dial, mail, error) && hand_over(dial, mail, error);
	if (ok)
		say(dial, 2, &goodbye, "QUIT");
	dial_close(dial);
	return ok;
}
