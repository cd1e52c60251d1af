/* mail.c - e-mail, handed to a mail server by libcurl */
#include "fetch/mail.h"

#include <string.h>

#include "fetch/fetch_internal.h"

/* What is left to send. */
struct upload {
	const char *at;
	size_t size;
};

static size_t give_text(char *to, size_t one, size_t size, void *context)
{
	struct upload *upload = context;
	size_t part = upload->size < one * size ? upload->size : one * size;

	memcpy(to, upload->at, part);
	upload->at += part;
	upload->size -= part;
	return part;
}

static bool mail_begin(struct transfer *transfer, const struct fetch_mail *mail,
                       const struct fetch_request *request, struct upload *upload,
                       struct curl_slist *to, struct error *error)
{
	CURL *handle = transfer->handle;

	if (!transfer_begin(transfer, handle, request, NULL, error))
		return false;
	curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
	curl_easy_setopt(handle, CURLOPT_USE_SSL,
	                 (long)(mail->needs_tls ? CURLUSESSL_ALL : CURLUSESSL_NONE));
	if (mail->user) {
		curl_easy_setopt(handle, CURLOPT_USERNAME, mail->user);
		curl_easy_setopt(handle, CURLOPT_PASSWORD, mail->password ? mail->password : "");
	}
	curl_easy_setopt(handle, CURLOPT_SASL_IR, 1L);
	curl_easy_setopt(handle, CURLOPT_MAIL_FROM, mail->from);
	curl_easy_setopt(handle, CURLOPT_MAIL_RCPT, to);
	curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(handle, CURLOPT_READFUNCTION, give_text);
	curl_easy_setopt(handle, CURLOPT_READDATA, upload);
	return true;
}

/* The server's own refusal says more than libcurl's words; what it says about a password may
 * contain it. */
static void mail_explain(const struct transfer *transfer, struct error *error)
{
	long code = 0;

	curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &code);
	if (strstr(transfer->reason, "enied") || code == 535 || code == 534)
		error_set(error, ERROR_UNAVAILABLE, "the mail server rejects the sign-in");
	else if (code >= 500 && code < 600)
		error_set(error, ERROR_NOT_FOUND, "the mail server rejects the mail (%ld)", code);
	else if (code >= 400 && code < 500)
		error_set(error, ERROR_UNAVAILABLE,
		          "the mail server cannot take the mail now (%ld)", code);
}

bool fetch_mail_send(const struct fetch_mail *mail, struct error *error)
{
	struct upload upload = { mail->text, mail->text_size };
	struct fetch_request request = { .url = mail->url,
		                         .server = mail->server,
		                         .ca_file = mail->ca_file,
		                         .connect_ms = mail->total_ms,
		                         .total_ms = mail->total_ms,
		                         .is_direct = true,
		                         .end_ms = mail->end_ms };
	struct transfer transfer = { .handle = transfer_handle() };
	CURLM *multi = curl_multi_init();
	struct curl_slist *to = curl_slist_append(NULL, mail->to);
	bool good = false;

	if (!transfer.handle || !multi || !to)
		error_set(error, ERROR_UNAVAILABLE, "out of memory");
	else if (mail_begin(&transfer, mail, &request, &upload, to, error)) {
		good = transfer_run(&transfer, multi, error);
		if (!good)
			mail_explain(&transfer, error);
	}
	transfer_end(&transfer);
	curl_easy_cleanup(transfer.handle);
	curl_multi_cleanup(multi);
	curl_slist_free_all(to);
	return good;
}
