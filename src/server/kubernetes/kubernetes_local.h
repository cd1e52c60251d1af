/* kubernetes_local.h - the inside of the way to Kubernetes: what its files share */
#ifndef SERVER_KUBERNETES_KUBERNETES_LOCAL_H
#define SERVER_KUBERNETES_KUBERNETES_LOCAL_H

#include "apiserver/credentials.h"
#include "pods/pods.h"
#include "server/kubernetes/kubernetes.h"

enum { FOLLOWED_MAX = 24 };

/* A resource that is watched. */
struct followed {
	struct kubernetes *kubernetes;
	struct reflector reflector;
	struct client_call *call;
	int64_t retry_ms, wait_ms;
	bool optional;               /* a server need not have it */
	char reason[ERROR_TEXT_MAX]; /* why the data of this answer were given up; "" */
};

/* A request to the engine. */
struct asked {
	struct asked *next;        /* spare */
	struct asked *next_of_all; /* that were ever made */
	struct engine_request engine;
	struct kubernetes *kubernetes;
	int64_t ticket, job_id, viewer;
	bool is_submit, is_why;
};

struct kubernetes {
	struct engine_port *port;
	const struct config *config;
	struct engine_listener inner;
	struct credentials *credentials;
	/* Watches and writes have a connection each: lists do not hold up bindings. */
	struct client *watches, *writes;
	struct pods *pods;
	struct followed followed[FOLLOWED_MAX];
	size_t followed_count;
	uv_loop_t *loop;
	uv_timer_t timer;
	uv_prepare_t before_wait;
	bool begun, stopped, dirty, refused;
	int64_t whys; /* explanations that are being asked for */
	struct asked *spare, *all;
	const char **names; /* of the scheduler */
};

/* kubernetes_engine.c */
struct pods_port kubernetes_port(struct kubernetes *kubernetes);
/* What the core knows of jobs that are pods. */
void kubernetes_know(struct kubernetes *kubernetes);
void kubernetes_listen(struct kubernetes *kubernetes);
void kubernetes_ask_why(struct kubernetes *kubernetes);

/* kubernetes_follow.c */
void kubernetes_follow(struct kubernetes *kubernetes);
void kubernetes_follow_due(struct kubernetes *kubernetes);
void kubernetes_unfollow(struct kubernetes *kubernetes);
void kubernetes_write_due(struct kubernetes *kubernetes);

#endif
