#include "mock/node.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mock/machine.h"

enum { PAGE_BYTES = 4096, PAGES_AT_ONCE = 1024 };

/* The index of the calling thread's policy, or the count of all. */
static size_t thread_find(const struct bw_mock_policies *policies)
{
    int thread = (int)gettid();
    size_t i = 0;
    while (i < policies->threads.count && policies->threads.data[i].thread != thread)
        i++;
    return i;
}

static int thread_set(struct bw_mock_policies *policies, int32_t node)
{
    size_t i = thread_find(policies);
    if (node == BW_NODE_DEFAULT) {
        if (i < policies->threads.count)
            policies->threads.data[i] = policies->threads.data[--policies->threads.count];
        return 0;
    }
    if (i == policies->threads.count)
        return bw_vec_push(&policies->threads,
                           ((struct bw_mock_thread_policy){(int)gettid(), (uint32_t)node}));
    policies->threads.data[i].node = (uint32_t)node;
    return 0;
}

static int range_add(struct bw_mock_policies *policies, uint64_t start, uint64_t size, uint32_t node)
{
    return size ? bw_vec_push(&policies->ranges, ((struct bw_mock_range_policy){start, size, node})) : 0;
}

/* A policy moves no page that is there already (no MPOL_MF_MOVE). */
static int range_set(struct bw_mock_policies *policies, uint64_t start, uint64_t size, uint32_t node)
{
    unsigned char there[PAGES_AT_ONCE];
    int rc = 0;
    for (uint64_t at = start, end = start + size, fresh = 0; !rc && at < end;) {
        uint64_t pages = (end - at) / PAGE_BYTES;
        pages = pages < PAGES_AT_ONCE ? pages : PAGES_AT_ONCE;
        if (mincore((void *)(uintptr_t)at, pages * PAGE_BYTES, there))
            return -EFAULT;
        for (uint64_t i = 0; i < pages && !rc; i++, at += PAGE_BYTES) {
            fresh += there[i] & 1 ? 0 : PAGE_BYTES;
            bool ends = there[i] & 1 || at + PAGE_BYTES == end;
            uint64_t last = there[i] & 1 ? at : at + PAGE_BYTES;
            rc = ends ? range_add(policies, last - fresh, fresh, node) : 0;
            fresh = ends ? 0 : fresh;
        }
    }
    return rc;
}

int bw_mock_policy_call(struct bw_mock *machine, const struct bw_node_request *request)
{
    struct bw_mock_policies *policies = &machine->policies;
    bool to_default = request->operation == BW_NODE_THREAD && request->node == BW_NODE_DEFAULT;
    if (request->operation == BW_NODE_ASK)
        return thread_find(policies) < policies->threads.count;
    if (!to_default && (request->node < 0 || (uint32_t)request->node >= machine->node_count))
        return bw_mock_refuse(machine, -EINVAL, "memory policy: node %d of %u", request->node,
                              machine->node_count);
    if (request->operation == BW_NODE_THREAD)
        return thread_set(policies, request->node);
    uint64_t size = (request->size_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (request->address % PAGE_BYTES || request->address + size < request->address)
        return bw_mock_refuse(machine, -EINVAL, "mbind: 0x%llx bytes at 0x%llx",
                              (unsigned long long)request->size_bytes, (unsigned long long)request->address);
    return range_set(policies, request->address, size, (uint32_t)request->node);
}

uint32_t bw_mock_policy_node(const struct bw_mock_policies *policies)
{
    size_t i = thread_find(policies);
    return i < policies->threads.count ? policies->threads.data[i].node : 0;
}

uint32_t bw_mock_policy_range_node(const struct bw_mock_policies *policies, uint64_t address)
{
    uint32_t node = 0;
    for (size_t i = 0; i < policies->ranges.count; i++) {
        if (address >= policies->ranges.data[i].start &&
            address - policies->ranges.data[i].start < policies->ranges.data[i].size)
            node = policies->ranges.data[i].node;
    }
    return node;
}

void bw_mock_policy_forget(struct bw_mock_policies *policies, uint64_t start, uint64_t size)
{
    size_t kept = 0;
    for (size_t i = 0; i < policies->ranges.count; i++) {
        if (policies->ranges.data[i].start - start >= size)
            policies->ranges.data[kept++] = policies->ranges.data[i];
    }
    policies->ranges.count = kept;
}

void bw_mock_policies_free(struct bw_mock_policies *policies)
{
    bw_vec_free(&policies->threads);
    bw_vec_free(&policies->ranges);
}
