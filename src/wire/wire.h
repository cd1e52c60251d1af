/* wire.h - HTTP/1.1, HTTP/2, WebSocket, gRPC and TLS for those who serve by them
 *
 * A loop is a thread's; listeners belong to it and hand complete requests to a handler:
 *
 *     static void answer(struct exchange *exchange)
 *     {
 *             exchange_respond(exchange, &(struct response){
 *                     .content_type = "text/plain", .body = TEXT("hello\n") });
 *     }
 *     static const struct handler handler = { .request = answer };
 *     ...
 *     struct limits limits = limits_default();
 *     struct loop *loop = loop_new(&limits);
 *     if (!listener_open(loop, &(struct listener_options){ .address = "127.0.0.1",
 *                        .port = 8080, .handler = &handler }, &error))
 *             ...
 *     loop_run(loop);
 *     loop_free(loop);
 *
 * An answer that needs another thread is given later: pass the exchange on, and have the
 * other thread loop_post() something that answers it (one post for many answers is best).
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include "base/text.h"
#include "wire/exchange.h"
#include "wire/grpc.h"
#include "wire/listener.h"
#include "wire/loop.h"
#include "wire/net/limits.h"
#include "wire/response.h"
#include "wire/text/json_writer.h"
#include "wire/text/query.h"
#include "wire/text/shared.h"
#include "wire/text/url.h"
#include "wire/tls.h"
#include "wire/websocket.h"
#include "json/json_reader.h"

#endif
