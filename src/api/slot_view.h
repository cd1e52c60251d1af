/* slot_view.h - a loaded model as people read it */
#ifndef API_SLOT_VIEW_H
#define API_SLOT_VIEW_H

#include "api/call.h"
#include "api/catalogue.h"
#include "api/roster.h"

/* Whether who asks may know of the model: its own tenant's, or one that it may use. */
bool slot_view_may_see(const struct roster *roster, const struct identity *identity,
                       const struct model_record *model);
/* Writes the slot to the call's JSON, in an array, if it is there and the caller may see it.
 * The catalogue is locked. */
void slot_view_write(struct call *call, const struct catalogue *catalogue, int64_t slot_id);

#endif
