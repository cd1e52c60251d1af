/* agents_none.c - stands in for the agents until they are here */
#include "api/agents.h"

struct agents *agents_new(struct desk *desk, const struct agents_settings *settings)
{
	(void)desk;
	(void)settings;
	return NULL;
}
void agents_free(struct agents *agents)
{
	(void)agents;
}
void agents_begin(struct agents *agents)
{
	(void)agents;
}
void agents_order(struct agents *agents, const struct effect *effect)
{
	(void)agents;
	(void)effect;
}
void agents_given_up(struct agents *agents, const char *node, const char *reason)
{
	(void)agents;
	(void)node;
	(void)reason;
}
bool agents_sample(const struct agents *agents, const char *uuid, struct agents_sample *sample)
{
	(void)agents;
	(void)uuid;
	(void)sample;
	return false;
}
int64_t agents_slot_active(const struct agents *agents, int64_t slot_id)
{
	(void)agents;
	(void)slot_id;
	return -1;
}
bool agents_is_connected(const struct agents *agents, const char *node)
{
	(void)agents;
	(void)node;
	return false;
}
