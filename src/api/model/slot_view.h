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
/* The model with that id or name, among those that the caller may see. A name is looked up in the
 * caller's tenant, then in the tenants below, then among shared models. So nobody can attract
 * another tenant's requests by taking a name. NULL if there is none, or, with `several` set, if the
 * name is ambiguous. The catalogue is locked. */
const struct model_record *slot_view_find_model(const struct catalogue *catalogue,
                                                const struct roster *roster,
                                                const struct identity *identity, struct text text,
                                                bool *several);
/* Writes the slot to the request's JSON, in an array, if it is there and the caller may see it.
 * The catalogue is locked. */
void slot_view_write(struct request *request, const struct catalogue *catalogue, int64_t slot_id);

#endif
