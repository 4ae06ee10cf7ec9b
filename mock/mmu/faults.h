/* What a hub's registers say of faults, and what follows from one. Fields: umr's database/ip/gc_9_4_3.reg,
 * gc_11_0_0.reg and gc_12_0_0.reg, the same in mmhub_1_8_0, mmhub_3_0_0 and mmhub_4_1_0. */
#ifndef BW_MOCK_MMU_FAULTS_H
#define BW_MOCK_MMU_FAULTS_H

#include "mock/mmu/walk.h"

/* Who asked. */
struct bw_mock_mmu_client {
    uint32_t cid;  /* UTCL2 client, 9 bits: 4 CPF, 5 CPC, 8 TCP, ... */
    bool vf;       /* on behalf of a virtual function, */
    uint32_t vfid; /* this one */
};

/* What has a switch of its own, numbered as the fields of VM_L2_PROTECTION_FAULT_CNTL follow each other. */
enum bw_mock_mmu_fault_kind {
    BW_MOCK_MMU_KIND_RANGE,
    BW_MOCK_MMU_KIND_PDE0,
    BW_MOCK_MMU_KIND_PDE1,
    BW_MOCK_MMU_KIND_PDE2,
    BW_MOCK_MMU_KIND_FURTHER,
    BW_MOCK_MMU_KIND_NACK,
    BW_MOCK_MMU_KIND_DUMMY,
    BW_MOCK_MMU_KIND_VALID,
    BW_MOCK_MMU_KIND_READ,
    BW_MOCK_MMU_KIND_WRITE,
    BW_MOCK_MMU_KIND_EXECUTE,
};

/* Of the hub: VM_L2_PROTECTION_FAULT_CNTL and _CNTL2. */
struct bw_mock_mmu_fault_control {
    bool allow_updates;         /* ALLOW_SUBSEQUENT_PROTECTION_FAULT_STATUS_ADDR_UPDATES */
    uint32_t default_kinds;     /* bit n: *_PROTECTION_FAULT_ENABLE_DEFAULT of kind n */
    uint32_t interrupt_clients; /* CLIENT_ID_NO_RETRY_FAULT_INTERRUPT, bit n: CID n below 16 */
    bool interrupt_others;      /* OTHER_CLIENT_ID_NO_RETRY_FAULT_INTERRUPT */
    bool retry_interrupt;       /* ENABLE_RETRY_FAULT_INTERRUPT */
    bool crash_on_no_retry, crash_on_retry;
};

/* Of a context: VM_CONTEXTn_CNTL. It has one switch for the directories: kind PDE0 stands for all of them,
 * for FURTHER and for NACK. */
struct bw_mock_mmu_context_control {
    uint32_t interrupt_kinds,
        default_kinds;     /* bit n: *_PROTECTION_FAULT_ENABLE_{INTERRUPT,DEFAULT} of kind n */
    bool retry_permission; /* RETRY_PERMISSION_OR_INVALID_PAGE_FAULT */
    bool retry_other;      /* RETRY_OTHER_FAULT */
};

/* VM_L2_PROTECTION_FAULT_STATUS (bits 63:32: STATUS_HI32, which gfx12 has) and _ADDR. One thread at a time.
 */
struct bw_mock_mmu_faults {
    enum bw_mock_mmu_generation generation;
    uint64_t status;
    uint64_t page; /* address >> 12, 36 bits */
};

/* What of a fault the context and the hub make. */
struct bw_mock_mmu_fault_response {
    bool retry;        /* the client is told to ask again, instead of that it failed */
    bool interrupt;    /* an entry for the interrupt ring */
    bool default_page; /* the access goes to VM_L2_PROTECTION_FAULT_DEFAULT_ADDR; else reads give zeros and
                          writes go nowhere */
    bool crash;        /* the hub stops */
};

/* The word for a fault that is the first, MORE_FAULTS clear. */
uint64_t bw_mock_mmu_fault_status(enum bw_mock_mmu_generation generation,
                                  const struct bw_mock_mmu_fault *fault,
                                  const struct bw_mock_mmu_client *client);

/* The first fault since the last clear is kept, later ones set MORE_FAULTS, unless control->allow_updates
 * lets them replace it. True when this one is kept. A violation of an aperture is never seen (AMD's notes on
 * GPUVM). */
bool bw_mock_mmu_faults_record(struct bw_mock_mmu_faults *faults,
                               const struct bw_mock_mmu_fault_control *control,
                               const struct bw_mock_mmu_fault *fault,
                               const struct bw_mock_mmu_client *client);
/* CLEAR_PROTECTION_FAULT_STATUS_ADDR, of VM_L2_PROTECTION_FAULT_CNTL or of an invalidation. */
void bw_mock_mmu_faults_clear(struct bw_mock_mmu_faults *faults);

/* bit n: kind n */
uint32_t bw_mock_mmu_fault_kinds(const struct bw_mock_mmu_fault *fault);
void bw_mock_mmu_fault_respond(const struct bw_mock_mmu_fault_control *control,
                               const struct bw_mock_mmu_context_control *context,
                               const struct bw_mock_mmu_fault *fault, const struct bw_mock_mmu_client *client,
                               struct bw_mock_mmu_fault_response *response);

#endif
