/* field_request.h - the fields of a request, from the options that set them */
#ifndef CLI_JOB_FIELD_REQUEST_H
#define CLI_JOB_FIELD_REQUEST_H

#include "cli/session.h"
#include "resource/resource.h"

/* Reads the options of a field that needs more than its table says. */
typedef bool field_reader(struct session *session, const struct resource_field *field,
                          json_t *request, struct error *error);
struct special_field {
	const char *name;   /* of the field */
	field_reader *read; /* NULL: something else sets it */
};

/* Puts into `request` what the options of a resource's fields say; those not given stay out.
 * `special` ends with an entry without a name. False with a reason that names the option. */
bool field_request(struct session *session, const struct resource *resource,
                   const struct special_field *special, json_t *request, struct error *error);

/* A moment, or a duration from now: a field_reader. */
bool field_request_moment(struct session *session, const struct resource_field *field,
                          json_t *request, struct error *error);

/* NAME=VALUE, as often as given. With `from_here`, NAME alone takes the variable's value from
 * this process. */
bool field_request_pairs(struct session *session, const struct resource_field *field,
                         bool from_here, json_t *request, struct error *error);

/* Puts in a number of thousandths, as a whole number where it is one. */
void field_request_decimal(json_t *request, const char *name, int64_t thousandths);

#endif
