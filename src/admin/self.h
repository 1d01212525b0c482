/* admin/self.h - what the system says of this process. */
#ifndef WEIR_ADMIN_SELF_H
#define WEIR_ADMIN_SELF_H

#include "base/usec.h"

/* 0 where the system does not say. */
struct self_figures {
        double cpu_seconds; /* user and system */
        double resident_bytes, virtual_bytes;
        double open_fds, max_fds;
        double threads;
};

void self_look(struct self_figures *ret);

usec_t self_started(void); /* wall clock */

#endif
