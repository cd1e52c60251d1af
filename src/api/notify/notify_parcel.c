/* notify_parcel.c - notifications as they are kept until they are delivered */
#include "api/notify/notify_local.h"
#include "base/memory.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

/* Secrets are not kept with it: they are looked up again. */
void notify_parcel_write(const struct parcel *parcel, struct buffer *json)
{
	struct json_writer writer = json_writer_to(json);

	json_open_object(&writer, NULL);
	json_put_integer(&writer, "unix_ms", parcel->unix_ms);
	json_put_integer(&writer, "tenant_id", parcel->tenant_id);
	if (parcel->webhook)
		json_put_string(&writer, "webhook", parcel->webhook);
	if (parcel->email)
		json_put_string(&writer, "email", parcel->email);
	if (parcel->subject)
		json_put_string(&writer, "subject", parcel->subject);
	if (parcel->is_unsigned)
		json_put_flag(&writer, "unsigned", true);
	if (parcel->is_billing)
		json_put_flag(&writer, "billing", true);
	json_put_string(&writer, "event", parcel->event);
	json_put_string(&writer, "body", parcel->body);
	json_close(&writer);
	buffer_text(json, "");
}

static char *own(struct text text)
{
	return text.data ? memory_text(text.data) : NULL;
}

struct parcel *notify_parcel_read(const char *json, int64_t number)
{
	struct error error = { 0 };
	json_t *document = json_read(text_of(json), NULL, &error);
	struct json_reader reader = json_reader_of(document, "", &error);
	struct parcel *parcel = NEW(struct parcel);

	parcel->number = number;
	parcel->unix_ms = json_get_integer(&reader, "unix_ms", 0, TIME_MS_MAX, 0);
	parcel->tenant_id = json_get_integer(&reader, "tenant_id", 0, INT64_MAX, 0);
	parcel->webhook = own(json_get_text(&reader, "webhook", 4096));
	parcel->email = own(json_get_text(&reader, "email", 1024));
	parcel->subject = own(json_get_text(&reader, "subject", 4096));
	parcel->is_unsigned = json_is_true(json_object_get(document, "unsigned"));
	parcel->is_billing = json_is_true(json_object_get(document, "billing"));
	parcel->event = own(json_get_text(&reader, "event", 100));
	parcel->body = own(json_get_text(&reader, "body", 64 << 20));
	bool ok = document && !reader.failed && parcel->event && parcel->body &&
	          (parcel->webhook != NULL) != (parcel->email != NULL) &&
	          (!parcel->email || parcel->subject);
	json_decref(document);
	if (ok)
		return parcel;
	parcel_free(parcel);
	return NULL;
}
