/* misreports.h - what nodes said about things that are not theirs: counted, logged, audited */
#ifndef API_SERVICE_MISREPORTS_H
#define API_SERVICE_MISREPORTS_H

#include "api/engine/audit.h"
#include "api/engine/engine_port.h"

/* A node that reports on another's work is misconfigured, or its token is in the wrong hands.
 * Every case is counted. Of one node, one a minute is logged and goes to the audit log, with
 * how many there were since. In the loop's thread alone. */
struct misreports;

struct misreports *misreports_new(struct engine_port *port, struct audit *audit);
void misreports_free(struct misreports *misreports);
/* `sentence` says what the node claimed. */
void misreports_note(struct misreports *misreports, const char *node, const char *sentence);
int64_t misreports_total(const struct misreports *misreports);

#endif
