/* Memory policies: the system calls themselves, which libc has no functions for. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "iface/sys_host.h"

enum { WORD_BITS = 8 * sizeof(unsigned long) };

/* The kernel takes the number of bits plus one (get_nodes of mm/mempolicy.c). */
static const unsigned long mask_bits = BW_SYS_NODES_MAX + 1;

static int preferred(int32_t node, unsigned long mask[BW_SYS_NODES_MAX / WORD_BITS])
{
    memset(mask, 0, BW_SYS_NODES_MAX / 8);
    if (node < 0 || node >= BW_SYS_NODES_MAX)
        return -EINVAL;
    mask[node / WORD_BITS] = 1ul << node % WORD_BITS;
    return 0;
}

static int thread_asks(void)
{
    int mode = MPOL_DEFAULT;
    long rc = syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul);
    return rc ? -errno : mode != MPOL_DEFAULT;
}

int bw_sys_host_node(const struct bw_node_request *request)
{
    unsigned long mask[BW_SYS_NODES_MAX / WORD_BITS];
    long rc;
    if (request->operation == BW_NODE_ASK)
        return thread_asks();
    if (request->operation == BW_NODE_THREAD && request->node == BW_NODE_DEFAULT)
        return syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0ul) ? -errno : 0;
    if (preferred(request->node, mask))
        return -EINVAL;
    if (request->operation == BW_NODE_THREAD)
        rc = syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask, mask_bits);
    else
        rc = syscall(SYS_mbind, request->address, request->size_bytes, MPOL_PREFERRED, mask, mask_bits, 0u);
    return rc ? -errno : 0;
}
