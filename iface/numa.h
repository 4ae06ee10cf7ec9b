/* Host memory near its device, on a machine whose memory hangs on several nodes (NUMA: sockets).
 *
 * Which node: sysfs numa_node of the GPU's PCI device. The KFD's topology has it as the link of the GPU's
 * node to a CPU's, but with 0 where it is not known (kfd_crat.c, kfd_fill_gpu_direct_io_link_to_cpu; what the
 * KFD finds in the ACPI tables goes to numa_node as well, kfd_find_numa_node_in_srat), and it numbers CPU
 * nodes as it finds them.
 *
 * Who allocates: pages behind BW_IFACE_HOST (GTT) are the kernel's, taken inside the call that makes the
 * buffer (amdgpu_bo_create validates it into its domain, ttm_bo_handle_move_mem populates it). In Linux 6.1,
 * Debian 12's, that is alloc_pages(), which follows the policy of the calling thread; in newer ones
 * alloc_pages_node(dev_to_node(device)), which does not look at it: there the right node comes by itself and
 * the policy changes nothing (ttm_pool_alloc_page of ttm_pool.c, ttm_device_init of ttm_device.c). mbind(2)
 * of the mapping would do nothing in either. Rings, signals, command buffers and the staging memory of GPUs
 * are such buffers. The staging memory of a disk is the process's own: bw_host_memory_alloc gives it a policy
 * by mbind(2) before it is first touched. What else the host's queues have lies where its first writer runs.
 *
 * The node is preferred, never demanded: a full one is no error. Somebody else's policy of the calling thread
 * (numactl) is left as it is. A machine with one node is asked nothing but that. Any thread. */
#ifndef BW_IFACE_NUMA_H
#define BW_IFACE_NUMA_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/sys.h>

#include "iface/iface.h"

struct bw_numa {
    uint32_t node;
    bool known;
    bool choice;  /* several nodes have memory, this one among them, and the kernel answers */
    int error;    /* -errno of the kernel when it was asked at first */
    bool refused; /* atomic: it was, later; nothing is asked any more */
};

/* What sysfs says of a GPU. What cannot be read is not known: no error. */
void bw_numa_read(struct bw_sys *sys, uint32_t render_minor, struct bw_numa *numa);
void bw_numa_properties(const struct bw_numa *numa, struct bw_iface_properties *properties);

/* What the calling thread makes the kernel allocate from here on comes from the node. Whether it does:
 * then bw_numa_end follows, on the same thread. */
bool bw_numa_begin(struct bw_sys *sys, struct bw_numa *numa);
void bw_numa_end(struct bw_sys *sys, struct bw_numa *numa);

#endif
