/* slot_view.h - a loaded model as people read it */
#ifndef API_MODEL_SLOT_VIEW_H
#define API_MODEL_SLOT_VIEW_H

#include "api/read/catalogue.h"
#include "api/read/roster.h"
#include "api/request/request.h"

/* Whether who asks may know of the model: its own tenant's, or one that it may use. */
bool slot_view_may_see(const struct roster *roster, const struct identity *identity,
                       const struct model_record *model);
/* Whether it is its own tenant's, or of one below: then it sees how the model is run, too. */
bool slot_view_owns(const struct roster *roster, const struct identity *identity,
                    const struct model_record *model);
/* The model that an id or a name stands for, among those that who asks may know of. A name is
 * looked for in its own tenant, then below that, then among those that it may use: so nobody
 * gets requests that are meant for another's model by taking its name. NULL where there is
 * none; where there are several, with `several` set. The catalogue is locked. */
const struct model_record *slot_view_find_model(const struct catalogue *catalogue,
                                                const struct roster *roster,
                                                const struct identity *identity, struct text text,
                                                bool *several);
/* Writes the slot to the request's JSON, in an array, if it is there and the caller may see it.
 * The catalogue is locked. */
void slot_view_write(struct request *request, const struct catalogue *catalogue, int64_t slot_id);

#endif
