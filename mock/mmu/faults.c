#include "mock/mmu/faults.h"

#include <assert.h>
#include <string.h>

/* VM_L2_PROTECTION_FAULT_STATUS, low bits of fields; alike in all generations but for VFID and what follows.
 */
enum {
    MORE_FAULTS = 1,
    WALKER_ERROR = 1,
    PERMISSION_FAULTS = 4,
    MAPPING_ERROR = 8,
    CID = 9,
    CID_BITS = 9,
    RW = 18,
    ATOMIC = 19,
    VMID = 20,
    VF = 24,
    VFID = 25,
    CLIENTS_WITH_A_BIT = 16, /* of CLIENT_ID_NO_RETRY_FAULT_INTERRUPT */
};

static const uint32_t vfid_bits[BW_MOCK_MMU_GENERATION_COUNT] = {
    [BW_MOCK_MMU_GFX9_4] = 4,
    [BW_MOCK_MMU_GFX11] = 4,
    [BW_MOCK_MMU_GFX12] = 5,
};

uint64_t bw_mock_mmu_fault_status(enum bw_mock_mmu_generation generation,
                                  const struct bw_mock_mmu_fault *fault,
                                  const struct bw_mock_mmu_client *client)
{
    bool atomic = fault->op == BW_MOCK_MMU_ATOMIC, writes = atomic || fault->op == BW_MOCK_MMU_WRITE;
    assert(generation < BW_MOCK_MMU_GENERATION_COUNT && fault->vmid < BW_MOCK_MMU_VMIDS);
    assert(client->cid >> CID_BITS == 0 && client->vfid >> vfid_bits[generation] == 0);
    return (uint64_t)fault->walker_error << WALKER_ERROR | (uint64_t)fault->permission << PERMISSION_FAULTS |
           (uint64_t)fault->mapping_error << MAPPING_ERROR | (uint64_t)client->cid << CID |
           (uint64_t)writes << RW | (uint64_t)atomic << ATOMIC | (uint64_t)fault->vmid << VMID |
           (uint64_t)client->vf << VF | (uint64_t)client->vfid << VFID;
}

bool bw_mock_mmu_faults_record(struct bw_mock_mmu_faults *faults,
                               const struct bw_mock_mmu_fault_control *control,
                               const struct bw_mock_mmu_fault *fault, const struct bw_mock_mmu_client *client)
{
    const uint32_t page_bits = 36;
    bool first = faults->status == 0;
    if (fault->violation == BW_MOCK_MMU_VA_HOLE)
        return false;
    if (!first && !control->allow_updates) {
        faults->status |= MORE_FAULTS;
        return false;
    }
    faults->status = bw_mock_mmu_fault_status(faults->generation, fault, client) | (first ? 0 : MORE_FAULTS);
    faults->page = (fault->va >> BW_MOCK_MMU_PAGE_SHIFT) & ((1ull << page_bits) - 1);
    return true;
}

void bw_mock_mmu_faults_clear(struct bw_mock_mmu_faults *faults)
{
    faults->status = 0;
    faults->page = 0;
}

uint32_t bw_mock_mmu_fault_kinds(const struct bw_mock_mmu_fault *fault)
{
    static const struct {
        enum bw_mock_mmu_permission missing;
        enum bw_mock_mmu_fault_kind kind;
    } rights[] = {
        {BW_MOCK_MMU_NOT_VALID, BW_MOCK_MMU_KIND_VALID},
        {BW_MOCK_MMU_NOT_READABLE, BW_MOCK_MMU_KIND_READ},
        {BW_MOCK_MMU_NOT_WRITABLE, BW_MOCK_MMU_KIND_WRITE},
        {BW_MOCK_MMU_NOT_EXECUTABLE, BW_MOCK_MMU_KIND_EXECUTE},
    };
    uint32_t kinds = 0;
    if (fault->walker_error != BW_MOCK_MMU_WALKED)
        return 1u << (BW_MOCK_MMU_KIND_RANGE + fault->walker_error - BW_MOCK_MMU_ERROR_RANGE);
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++)
        kinds |= fault->permission & rights[i].missing ? 1u << rights[i].kind : 0;
    return kinds;
}

void bw_mock_mmu_fault_respond(const struct bw_mock_mmu_fault_control *control,
                               const struct bw_mock_mmu_context_control *context,
                               const struct bw_mock_mmu_fault *fault, const struct bw_mock_mmu_client *client,
                               struct bw_mock_mmu_fault_response *response)
{
    const uint32_t of_directories = 1u << BW_MOCK_MMU_KIND_PDE0 | 1u << BW_MOCK_MMU_KIND_PDE1 |
                                    1u << BW_MOCK_MMU_KIND_PDE2 | 1u << BW_MOCK_MMU_KIND_FURTHER |
                                    1u << BW_MOCK_MMU_KIND_NACK;
    uint32_t kinds = bw_mock_mmu_fault_kinds(fault);
    uint32_t in_context = kinds & of_directories ? 1u << BW_MOCK_MMU_KIND_PDE0 : kinds;
    bool walked = fault->walker_error == BW_MOCK_MMU_WALKED;
    bool told = client->cid < CLIENTS_WITH_A_BIT ? control->interrupt_clients >> client->cid & 1
                                                 : control->interrupt_others;
    memset(response, 0, sizeof *response);
    if (fault->violation == BW_MOCK_MMU_VA_HOLE)
        return;
    response->retry = walked ? context->retry_permission : context->retry_other;
    response->interrupt =
        context->interrupt_kinds & in_context && (response->retry ? control->retry_interrupt : told);
    response->default_page =
        !response->retry && context->default_kinds & in_context && control->default_kinds & kinds;
    response->crash = response->retry ? control->crash_on_retry : control->crash_on_no_retry;
}
