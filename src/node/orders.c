/* orders.c - orders: taken in order, done once by reservation */
#include "node/local.h"

static void take_start(struct local_node *node, const struct node_order *order, int64_t number)
{
	if (work_find(node, order->reservation_id))
		return; /* done already, or being done: it is acknowledged and no more */
	struct work *work = work_add(node, order);
	work->kept.phase = WORK_WAITING;
	work->order_number = number;
	work->asked_ms = node->now_ms;
	if (order->part_count > 0)
		work->asked = node_ask_measure(node);
	else
		admit_waiting(node);
}

/* Of what is not here, nothing is left. */
static void confirm_absent(struct local_node *node, int64_t reservation_id)
{
	struct change change = { .kind = CHANGE_RELEASED,
		                 .reservation_id = reservation_id,
		                 .message = "",
		                 .address = "" };

	link_change(node, &change);
}

static void take_stop(struct local_node *node, const struct node_order *order)
{
	struct work *work = work_find(node, order->reservation_id);

	if (work)
		work_stop(node, work, END_ORDERED, order->grace_ms, "");
	else
		confirm_absent(node, order->reservation_id);
}

void orders_take(struct local_node *node, const struct message *message)
{
	if (node->link.state != LINK_UP)
		return;
	if (message->number != node->link.received + 1) {
		/* Had already, or too early: saying what was received brings the rest. */
		node->link.acknowledged = -1;
		return;
	}
	node->link.received++;
	if (message->order.kind == ORDER_STOP)
		take_stop(node, &message->order);
	else
		take_start(node, &message->order, message->number);
}

int64_t orders_kept(const struct local_node *node)
{
	int64_t kept = node->link.received;

	for (size_t i = 0; i < node->work_count; i++)
		if (node->works[i]->kept.phase == WORK_WAITING)
			kept = min64(kept, node->works[i]->order_number - 1);
	return kept;
}

void orders_drop_waiting(struct local_node *node)
{
	for (size_t i = node->work_count; i-- > 0;)
		if (node->works[i]->kept.phase == WORK_WAITING)
			work_remove(node, node->works[i]);
}
