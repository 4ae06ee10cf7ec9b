/* Translations that a hub keeps: an L1 TLB in front of each client (UTCL1), one L2 for the pages (UTCL2,
 * "VML2") and a cache of directory entries in the walker. They are the point of it: what was cached is
 * served, true or not, until it is invalidated or happens to be evicted, so that a driver that forgets an
 * invalidation, or writes a fragment that lies, reads the wrong memory here as it would on a board.
 *
 * From AMD's notes on GPUVM and the comments of the kernel's amdgpu_vm_pt.c as tinygrad/7900xtx docs/VM.md
 * has them: an L1 entry covers the fragment of the entry, the L2 the page that the walker found. What
 * hardware does when caches are full is not documented: victims are drawn. */
#ifndef BW_MOCK_MMU_TLB_H
#define BW_MOCK_MMU_TLB_H

#include "mock/mmu/walk.h"

enum {
    BW_MOCK_TLB_CLIENTS_MAX = 512, /* as many as CID of VM_L2_PROTECTION_FAULT_STATUS tells apart */
    BW_MOCK_TLB_L1_MAX = 256,      /* entries of one L1: its hints are bytes */
    BW_MOCK_TLB_L2_MAX = 1 << 20,
};

/* Sizes are rounded up to a power of two; 0 is the default. */
struct bw_mock_tlb_config {
    uint32_t client_count; /* default 1 */
    uint32_t l1_entries;   /* of each client; default 32 */
    uint32_t l2_entries;   /* default 1024 */
    uint32_t pde_entries;  /* default 256 */
    bool negative;         /* invalid entries are kept like valid ones */
    uint32_t evict_every;  /* one in so many lookups evicts at random from each level; 0: none does */
    uint64_t seed;
};

struct bw_mock_tlb_counters {
    uint64_t l1_hits, l2_hits, walks;
    uint64_t negative_hits; /* of the hits */
    uint64_t pde_hits;      /* directory entries that the walker had */
    uint64_t words_read;    /* entries of 8 bytes read from memory */
    uint64_t evictions;     /* of evict_every */
};

/* What VM_INVALIDATE_ENGn_REQ asks for, or VM_L2_CNTL2 with all of it. */
struct bw_mock_tlb_invalidation {
    uint32_t vmids; /* bit n: VMID n */
    bool l1_ptes, l2_ptes;
    bool pde[3];          /* PDE0 to PDE2; of all addresses: the walker keeps them by where they lie */
    uint64_t first, last; /* bytes of address; what overlaps them goes */
};

struct bw_mock_tlb;

/* -ENOMEM; -EINVAL: more than a limit above. The caller ends it with bw_mock_tlb_close. */
int bw_mock_tlb_open(struct bw_mock_tlb **tlb, const struct bw_mock_tlb_config *config);
void bw_mock_tlb_close(struct bw_mock_tlb *tlb);

/* As bw_mock_mmu_walk, for a client, through its caches. result->fault is set only when -EFAULT is returned;
 * entries_read only when the tables were walked. One thread at a time for each TLB: the hub's lock. */
int bw_mock_tlb_translate(struct bw_mock_tlb *tlb, uint32_t client, const struct bw_mock_mmu_context *context,
                          uint64_t va, enum bw_mock_mmu_op op, struct bw_mock_mmu_result *result);

void bw_mock_tlb_invalidate(struct bw_mock_tlb *tlb, const struct bw_mock_tlb_invalidation *invalidation);

void bw_mock_tlb_counters_read(const struct bw_mock_tlb *tlb, struct bw_mock_tlb_counters *counters);

#endif
