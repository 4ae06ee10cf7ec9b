/* Links between the GPUs of a machine: who reaches whose VRAM, and what fault injection does to it. */
#ifndef BW_MOCK_LINK_H
#define BW_MOCK_LINK_H

#include "mock/engine/queue.h"

bool bw_mock_link_is_xgmi(const struct bw_mock_gpu *gpu);
/* Whether the kernel lets GPU `from` map VRAM of GPU `to`: one hive, or all of it behind its BAR
 * (amdgpu_device_is_peer_accessible). */
bool bw_mock_link_exists(const struct bw_mock *machine, uint32_t from, uint32_t to);

/* Names the sites of a machine with several GPUs to its fault injection. 0 or -ENOMEM. */
int bw_mock_link_sites(struct bw_mock *machine);
/* Site "link.I-J", I's accesses to VRAM of J. At a mapping: FAIL refuses it, DROP puts a private mirror in
 * the window's place (mapping->mirror), so that writes never arrive and reads do not see the owner's. 0 or
 * -errno. */
int bw_mock_link_map(struct bw_mock_context *context, uint32_t owner, struct bw_mock_mapping *mapping);
void bw_mock_link_mirror_free(const struct bw_mock_mapping *mapping);
/* At an access of a packet to va: DELAY and HANG strike. False: *progress is the outcome of this step.
 * Kernels pass unhindered. */
bool bw_mock_link_passes(struct bw_mock_queue *queue, uint64_t va, enum bw_mock_queue_progress *progress);

#endif
