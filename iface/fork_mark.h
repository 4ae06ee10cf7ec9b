/* A page that tells a forked child, which must not use its parent's devices, by reading as zero there. */
#ifndef BW_IFACE_FORK_MARK_H
#define BW_IFACE_FORK_MARK_H

#include <stdbool.h>

#include <bellwire/err.h>
#include <bellwire/sys.h>

/* 0 or -errno; ended by unmapping the region. */
int bw_fork_mark_map(struct bw_sys *sys, struct bw_region *mark);
bool bw_fork_mark_forked(const struct bw_region *mark);
/* -ESTALE, filled in. */
int bw_fork_mark_refuse(const char *subsystem, struct bw_err *err);

#endif
