/* store_postgres.c - the store in PostgreSQL */
#include "store/backend.h"
struct backend *backend_postgres(const struct store_options *options, const struct schema *schema,
                                 const char *holder)
{
	(void)options;
	(void)schema;
	(void)holder;
	panic("not yet");
}
