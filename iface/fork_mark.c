#include "iface/fork_mark.h"

#include <errno.h>

/* What the page holds; a child reads zero. */
#define FORK_MARK 0x6b6664u

enum { PAGE_BYTES = 4096 };

int bw_fork_mark_map(struct bw_sys *sys, struct bw_region *mark)
{
    struct bw_map_request request = {
        .fd = -1, .size_bytes = PAGE_BYTES, .writable = true, .wipe_on_fork = true};
    int rc = sys->ops->map(sys, &request, mark);
    if (!rc)
        bw_wr32(mark, 0, FORK_MARK);
    return rc;
}

bool bw_fork_mark_forked(const struct bw_region *mark)
{
    return bw_rd32(mark, 0) != FORK_MARK;
}

int bw_fork_mark_refuse(const char *subsystem, struct bw_err *err)
{
    int rc = bw_fail(err, -ESTALE, subsystem, "this device was opened before fork");
    bw_err_hint(
        err,
        "a forked child cannot use its parent's GPU: open it again, in a new context, after fork or exec");
    return rc;
}
