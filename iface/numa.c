/* See numa.h. */
#include "iface/numa.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "iface/sys_util.h"

#define MEMORY_NODES "/sys/devices/system/node/has_memory"

enum { NUMBER_BYTES_MAX = 64, LIST_BYTES_MAX = 4096 /* 1024 nodes, each named alone: less than a page */ };

/* A list of the kernel, "0-1,4": how many there are, and whether one is among them. */
static uint32_t list_look(const char *text, uint32_t node, bool *has_node)
{
    uint32_t count = 0;
    *has_node = false;
    for (const char *at = text; *at >= '0' && *at <= '9';) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (last < first || last >= BW_SYS_NODES_MAX)
            break;
        count += (uint32_t)(last - first + 1);
        *has_node |= first <= node && node <= last;
        at = *end == ',' ? end + 1 : end;
    }
    return count;
}

static void node_read(struct bw_sys *sys, uint32_t render_minor, struct bw_numa *numa)
{
    char path[96], *text, *end;
    snprintf(path, sizeof path, "/sys/class/drm/renderD%u/device/numa_node", render_minor);
    if (bw_sys_read_text(sys, path, NUMBER_BYTES_MAX, &text))
        return;
    long node = strtol(text, &end, 10); /* -1: not known */
    numa->known = end != text && node >= 0 && node < BW_SYS_NODES_MAX;
    numa->node = numa->known ? (uint32_t)node : 0;
    free(text);
}

static int ask(struct bw_sys *sys, enum bw_node_operation operation, int32_t node)
{
    struct bw_node_request request = {.operation = operation, .node = node};
    return sys->ops->node ? sys->ops->node(sys, &request) : -ENOSYS;
}

void bw_numa_read(struct bw_sys *sys, uint32_t render_minor, struct bw_numa *numa)
{
    char *text;
    *numa = (struct bw_numa){0};
    node_read(sys, render_minor, numa);
    if (!numa->known || bw_sys_read_text(sys, MEMORY_NODES, LIST_BYTES_MAX, &text))
        return;
    bool has_memory, several = list_look(text, numa->node, &has_memory) > 1;
    free(text);
    if (!several || !has_memory)
        return;
    int rc = ask(sys, BW_NODE_ASK, 0); /* filters of system calls refuse all of this family alike */
    numa->error = rc < 0 ? rc : 0;
    numa->choice = rc >= 0;
}

void bw_numa_properties(const struct bw_numa *numa, struct bw_iface_properties *properties)
{
    properties->has_numa_node = numa->known;
    properties->numa_node = numa->node;
    properties->numa_choice = numa->choice;
    properties->numa_error = numa->error;
}

static void refuse(struct bw_numa *numa)
{
    __atomic_store_n(&numa->refused, true, __ATOMIC_RELAXED);
}

bool bw_numa_begin(struct bw_sys *sys, struct bw_numa *numa)
{
    if (!numa->choice || __atomic_load_n(&numa->refused, __ATOMIC_RELAXED))
        return false;
    int rc = ask(sys, BW_NODE_ASK, 0);
    if (rc > 0)
        return false;
    rc = rc ? rc : ask(sys, BW_NODE_THREAD, (int32_t)numa->node);
    if (rc < 0)
        refuse(numa);
    return !rc;
}

void bw_numa_end(struct bw_sys *sys, struct bw_numa *numa)
{
    if (!ask(sys, BW_NODE_THREAD, BW_NODE_DEFAULT))
        return;
    refuse(numa); /* and once more, since the thread is not ours */
    (void)ask(sys, BW_NODE_THREAD, BW_NODE_DEFAULT);
}
