/* pages.h - what is served as it is: the description of the interface, and the dashboard */
#ifndef API_SERVICE_PAGES_H
#define API_SERVICE_PAGES_H

#include "api/request/request.h"

/* All of them, made when the service is. */
struct pages;
struct pages *pages_new(void);
void pages_free(struct pages *pages);

void pages_openapi(struct request *request);
void pages_dashboard(struct request *request);
/* A file of the dashboard, by the name behind /assets/. */
void pages_asset(struct request *request);

#endif
