#include "mock/link.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

enum { AT_MAPPING = 1 << BW_MOCK_FAULT_FAIL | 1 << BW_MOCK_FAULT_DROP };
enum { AT_ACCESS = 1 << BW_MOCK_FAULT_DELAY | 1 << BW_MOCK_FAULT_HANG };

bool bw_mock_link_is_xgmi(const struct bw_mock_gpu *gpu)
{
    return gpu->chip->xgmi_mb_per_s > 0;
}

bool bw_mock_link_exists(const struct bw_mock *machine, uint32_t from, uint32_t to)
{
    const struct bw_mock_gpu *owner = &machine->gpus[to];
    bool hive = bw_mock_link_is_xgmi(&machine->gpus[from]) && bw_mock_link_is_xgmi(owner);
    return from == to || hive || owner->visible_bytes == owner->vram.limit;
}

static void site_name(char *name, size_t size, uint32_t from, uint32_t to)
{
    snprintf(name, size, "link.%u-%u", from, to);
}

int bw_mock_link_sites(struct bw_mock *machine)
{
    int rc = 0;
    for (uint32_t from = 0; from < machine->gpu_count && !rc; from++) {
        for (uint32_t to = 0; to < machine->gpu_count && !rc; to++) {
            char name[32];
            site_name(name, sizeof name, from, to);
            if (from != to)
                rc = bw_mock_faults_site(&machine->faults, name, AT_MAPPING | AT_ACCESS, false);
        }
    }
    return rc;
}

static enum bw_mock_fault_action strike(struct bw_mock_context *context, uint32_t owner, uint32_t actions,
                                        struct bw_mock_fault *fault)
{
    char site[32];
    site_name(site, sizeof site, context->gpu->index, owner);
    return bw_mock_faults_check_for(&context->process->machine->faults, site, -1, actions, fault);
}

/* What lies behind a window that leads nowhere: it holds what is written, and held something before. */
static int mirror_make(struct bw_mock_mapping *mapping)
{
    void *mirror =
        mmap(NULL, mapping->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mirror == MAP_FAILED)
        return -errno;
    mapping->host = mapping->mirror = mirror;
    mapping->pool = NULL;
    return 0;
}

int bw_mock_link_map(struct bw_mock_context *context, uint32_t owner, struct bw_mock_mapping *mapping)
{
    struct bw_mock *machine = context->process->machine;
    struct bw_mock_fault fault;
    if (context->gpu->index == owner)
        return 0;
    if (!bw_mock_link_exists(machine, context->gpu->index, owner))
        return bw_mock_refuse(
            machine, -EINVAL,
            "MAP_MEMORY_TO_GPU: GPU %u has no way to the VRAM of GPU %u: no XGMI, and a BAR of "
            "0x%llx for 0x%llx bytes",
            context->gpu->index, owner, (unsigned long long)machine->gpus[owner].visible_bytes,
            (unsigned long long)machine->gpus[owner].vram.limit);
    mapping->peer = owner + 1;
    switch (strike(context, owner, AT_MAPPING, &fault)) {
    case BW_MOCK_FAULT_FAIL:
        return bw_mock_refuse(machine, -fault.error, "MAP_MEMORY_TO_GPU: injected failure of link %u-%u",
                              context->gpu->index, owner);
    case BW_MOCK_FAULT_DROP:
        return mirror_make(mapping);
    default:
        return 0;
    }
}

void bw_mock_link_mirror_free(const struct bw_mock_mapping *mapping)
{
    if (mapping->mirror)
        munmap(mapping->mirror, mapping->size);
}

bool bw_mock_link_passes(struct bw_mock_queue *queue, uint64_t va, enum bw_mock_queue_progress *progress)
{
    struct bw_mock *machine = queue->machine;
    struct bw_mock_mapping mapping;
    struct bw_mock_fault fault;
    if (!atomic_load_explicit(&machine->faults.count, memory_order_relaxed) ||
        !bw_mock_space_find(&queue->context->space, va, &mapping) || !mapping.peer)
        return true;
    switch (strike(queue->context, mapping.peer - 1, AT_ACCESS, &fault)) {
    case BW_MOCK_FAULT_DELAY:
        bw_mock_engine_delay(machine, fault.delay_ns);
        return true;
    case BW_MOCK_FAULT_HANG:
        *progress = bw_mock_queue_hang(queue, fault.site);
        return false;
    default:
        return true;
    }
}
