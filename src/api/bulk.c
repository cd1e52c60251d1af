/* bulk.c - many jobs in one request */
#include "api/jobs.h"
bool jobs_is_bulk(const struct call *call)
{
	(void)call;
	return false;
}
void jobs_submit_bulk(struct call *call)
{
	call_refuse(call, 400, "invalid", "not here");
}
