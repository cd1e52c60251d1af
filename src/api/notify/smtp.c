/* smtp.c - one e-mail, handed to a mail server */
#include "api/notify/smtp.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/text/base64.h"
#include "base/buffer.h"
#include "base/calendar.h"
#include "fetch/mail.h"

enum { BASE64_LINE = 76 };

bool smtp_address_check(const char *address, struct error *error)
{
	const char *at = strchr(address, '@');
	bool ok = at && at != address && at[1] && !strchr(at + 1, '@') && strlen(address) <= 254;

	for (const char *c = address; ok && *c; c++)
		ok = isalnum((unsigned char)*c) || strchr("@.!#$%&'*+-/=?^_`{|}~", *c);
	return ok ||
	       error_set(error, ERROR_INVALID, "an e-mail address is such as name@example.org");
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
	buffer_text(to, "Date: ");
	calendar_print_mail(to, mail->unix_ms);
	buffer_print(to, " +0000\r\nFrom: gpu-scheduler <%s>\r\nTo: <%s>\r\n", mail->from,
	             mail->to);
	buffer_print(to, "Message-ID: <%lld.%lld@gpu-scheduler>\r\n", (long long)mail->unix_ms,
	             (long long)mail->number);
	write_subject(to, mail->subject);
	buffer_text(to,
	            "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
	            "Content-Transfer-Encoding: base64\r\nAuto-Submitted: auto-generated\r\n\r\n");
	write_base64(to, mail->body);
}

bool smtp_send(const struct smtp_mail *mail, struct error *error)
{
	static const int64_t ports[] = {
		[SMTP_STARTTLS] = 587, [SMTP_TLS] = 465, [SMTP_PLAIN] = 25
	};
	struct buffer text = { 0 }, url = { 0 }, server = { 0 };
	bool is_ipv6 = strchr(mail->host, ':') != NULL;

	if (!smtp_address_check(mail->from, error) || !smtp_address_check(mail->to, error))
		return false;
	if (mail->user && mail->security == SMTP_PLAIN)
		return error_set(error, ERROR_INVALID,
		                 "a password is not sent to a mail server in the clear");
	write_mail(&text, mail);
	/* The path is the name in EHLO. */
	buffer_print(&url, "%s://%s%s%s:%lld/gpu-scheduler",
	             mail->security == SMTP_TLS ? "smtps" : "smtp", is_ipv6 ? "[" : "", mail->host,
	             is_ipv6 ? "]" : "",
	             (long long)(mail->port ? mail->port : ports[mail->security]));
	buffer_print(&server, "the mail server %.100s", mail->host);
	bool sent =
	    fetch_mail_send(&(struct fetch_mail){ .url = url.data,
	                                          .server = server.data,
	                                          .needs_tls = mail->security == SMTP_STARTTLS,
	                                          .user = mail->user,
	                                          .password = mail->password,
	                                          .ca_file = mail->ca_path,
	                                          .from = mail->from,
	                                          .to = mail->to,
	                                          .text = text.data,
	                                          .text_size = text.size,
	                                          .total_ms = mail->timeout_ms,
	                                          .end_ms = mail->end_ms },
	                    error);
	buffer_free(&text);
	buffer_free(&url);
	buffer_free(&server);
	return sent;
}
