/* orders.c - orders: taken in order, done once by reservation */
#include "node/local.h"

static struct turned_down *turned_down_find(const struct local_node *node, int64_t reservation_id)
{
	for (size_t i = 0; i < node->link.turned_down_count; i++)
		if (node->link.turned_down[i].reservation_id == reservation_id)
			return &node->link.turned_down[i];
	return NULL;
}

void orders_turn_down(struct local_node *node, int64_t reservation_id, int64_t change)
{
	struct link *link = &node->link;
	struct turned_down *known = turned_down_find(node, reservation_id);

	INVARIANT(reservation_id > 0 && change >= 0);
	if (link->state != LINK_UP)
		return; /* no order of the next connection is on its way */
	if (!known) {
		array_reserve(link->turned_down, link->turned_down_capacity,
		              link->turned_down_count + 1);
		known = &link->turned_down[link->turned_down_count++];
	}
	*known = (struct turned_down){ reservation_id, change };
}

void orders_acknowledged(struct local_node *node, int64_t change)
{
	struct link *link = &node->link;
	size_t left = 0;

	INVARIANT(link->turned_down_count <= link->turned_down_capacity);
	for (size_t i = 0; i < link->turned_down_count; i++)
		if (link->turned_down[i].change > change)
			link->turned_down[left++] = link->turned_down[i];
	link->turned_down_count = left;
}

/* The scheduler may have heard of the end before, and of this order has no hope:
 * or it has not, and learns it now. */
static void refuse_again(struct local_node *node, const struct node_order *order)
{
	struct change change = { .kind = CHANGE_REFUSED,
		                 .reservation_id = order->reservation_id,
		                 .slot = order->kind == ORDER_LOAD,
		                 .message = "it was refused, or ended, before",
		                 .address = "" };

	orders_turn_down(node, order->reservation_id, link_change(node, &change));
}

static void take_start(struct local_node *node, const struct node_order *order, int64_t number)
{
	if (work_find(node, order->reservation_id))
		return; /* done already, or being done: it is acknowledged and no more */
	if (turned_down_find(node, order->reservation_id)) {
		refuse_again(node, order);
		return;
	}
	struct work *work = work_add(node, order);
	work->kept.phase = WORK_WAITING;
	work->order_number = number;
	work->asked_ms = node->now_ms;
	if (order->kind == ORDER_WATCH)
		work_begin(node, work); /* it is bound: nobody asks whether it fits */
	else if (order->part_count > 0)
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
	INVARIANT(message->kind == MESSAGE_ORDER);
	if (node->link.state != LINK_UP)
		return;
	if (message->number != node->link.received + 1) {
		/* Had already, or too early: saying what was received brings the rest. */
		node->link.acknowledged = -1;
		return;
	}
	node->link.received++;
	switch (message->order.kind) {
	case ORDER_STOP:
		take_stop(node, &message->order);
		break;
	case ORDER_SUSPEND:
		suspend_order(node, message);
		break;
	case ORDER_RESUME:
		resume_order(node, message);
		break;
	default:
		take_start(node, &message->order, message->number);
	}
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
