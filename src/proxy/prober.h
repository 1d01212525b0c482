/* proxy/prober.h - asks now and then, by each endpoint of the pools that say where, which address
 * it is seen with (exit_ip.probe). */
#ifndef WEIR_PROXY_PROBER_H
#define WEIR_PROXY_PROBER_H

#include <stdbool.h>

#include "core/governor.h"

struct worker;
struct prober;

/* For one worker, whose loop, upstream and configuration it uses. */
struct prober *prober_new(struct worker *w);
void prober_free(struct prober *p); /* after prober_stop; NULL is fine */

/* All are asked anew, under the worker's configuration as it is now. */
void prober_reload(struct prober *p);

/* Nothing is asked any more. */
void prober_stop(struct prober *p);

/* Is the decided ticket the prober's? Then it has been seen to. */
bool prober_turn(struct prober *p, struct ticket *t, enum ticket_reply reply);

#endif
