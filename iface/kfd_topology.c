/* Reading the KFD topology: see kfd_topology.h. Files and names follow the kernel's amdkfd/kfd_topology.c. */
#include "iface/kfd_topology.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/vec.h"
#include "iface/sys_util.h"

#define TOPOLOGY "/sys/devices/virtual/kfd/kfd/topology"

enum {
    PATH_BYTES = 160,
    /* A properties file is one page of sysfs; more is not one. */
    FILE_BYTES_MAX = 65536,
    /* Heap types of mem_banks (HSA_MEM_HEAP_TYPE_* of kfd_sysfs.h): VRAM behind the BAR, and the rest of it.
     */
    HEAP_FB_PUBLIC = 1,
    HEAP_FB_PRIVATE = 2,
    /* Link types (CRAT_IOLINK_TYPE_* of kfd_crat.h). */
    LINK_TYPE_PCIE = 2,
    LINK_TYPE_XGMI = 11,
};

struct number_list {
    BW_VEC(uint32_t) numbers;
};

/* For bw_sys list: names that are plain numbers. */
static int add_number(void *user, const char *name)
{
    struct number_list *list = user;
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    if (*end || end == name || number > UINT32_MAX)
        return 0;
    return bw_vec_push(&list->numbers, (uint32_t)number);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The numbered entries of a folder in numeric order. The caller frees the list, also after a failure. */
static int list_numbers(struct bw_sys *sys, const char *path, struct number_list *list)
{
    int rc = sys->ops->list(sys, path, add_number, list);
    if (!rc && list->numbers.count)
        qsort(list->numbers.data, list->numbers.count, sizeof list->numbers.data[0], by_value);
    return rc;
}

int bw_kfd_property(const char *text, const char *name, uint64_t *value)
{
    size_t length = strlen(name);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0) {
        if (strncmp(line, name, length) || line[length] != ' ')
            continue;
        const char *digits = line + length + 1;
        char *end;
        errno = 0;
        *value = strtoull(digits, &end, 10);
        return errno || end == digits || (*end && *end != '\n') || *digits == '-' ? -EPROTO : 0;
    }
    return -ENOENT;
}

struct field {
    const char *name;
    size_t offset;
    bool required;
};

#define FIELD(property, member, required)                        \
    {                                                            \
        property, offsetof(struct bw_kfd_node, member), required \
    }

/* Properties of a node that are 32-bit numbers. */
static const struct field fields[] = {
    FIELD("gfx_target_version", gfx_version, true),
    FIELD("vendor_id", vendor_id, true),
    FIELD("device_id", device_id, true),
    FIELD("location_id", location_id, false),
    FIELD("domain", domain, false),
    FIELD("drm_render_minor", render_minor, true),
    FIELD("simd_count", simd_count, true),
    FIELD("simd_per_cu", simd_per_cu, true),
    FIELD("array_count", array_count, true),
    FIELD("simd_arrays_per_engine", arrays_per_engine, true),
    FIELD("cu_per_simd_array", cu_per_array, true),
    FIELD("max_waves_per_simd", waves_per_simd, true),
    FIELD("max_slots_scratch_cu", scratch_slots_per_cu, true),
    FIELD("wave_front_size", wave_size, true),
    FIELD("lds_size_in_kb", lds_kib, true),
    FIELD("num_xcc", xcc_count, false),
    FIELD("num_sdma_engines", sdma_engines, false),
    FIELD("num_sdma_xgmi_engines", sdma_xgmi_engines, false),
    FIELD("num_sdma_queues_per_engine", sdma_queues_per_engine, false),
    FIELD("num_cp_queues", cp_queues, false),
    FIELD("max_engine_clk_fcompute", engine_clock_mhz, false),
    FIELD("cwsr_size", save_bytes, false),
    FIELD("ctl_stack_size", control_stack_bytes, false),
};

static int parse_fields(const char *text, const char *path, struct bw_kfd_node *node, struct bw_err *err)
{
    for (size_t i = 0; i < BW_COUNT_OF(fields); i++) {
        uint64_t value = 0;
        int rc = bw_kfd_property(text, fields[i].name, &value);
        if (rc == -ENOENT && !fields[i].required)
            continue;
        if (rc || value > UINT32_MAX) {
            bw_fail(err, -EPROTO, "kfd", "%s: %s", path, fields[i].name);
            bw_err_expected(err, "a 32-bit number");
            bw_err_observed(err, "%s", rc == -ENOENT ? "nothing" : "something else");
            return -EPROTO;
        }
        memcpy((char *)node + fields[i].offset, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    }
    if (!node->xcc_count)
        node->xcc_count = 1; /* kernels before multi-XCC parts do not name it */
    if (!node->simd_per_cu || !node->simd_count || !node->arrays_per_engine || !node->array_count)
        return bw_fail(err, -EPROTO, "kfd", "%s: a GPU with no SIMDs or shader arrays", path);
    return 0;
}

static int read_vram(struct bw_sys *sys, struct bw_kfd_node *node, struct bw_err *err)
{
    char path[PATH_BYTES];
    struct number_list banks = {0};
    snprintf(path, sizeof path, TOPOLOGY "/nodes/%u/mem_banks", node->number);
    int rc = list_numbers(sys, path, &banks);
    if (rc == -ENOENT)
        rc = 0;
    for (size_t i = 0; !rc && i < banks.numbers.count; i++) {
        char *text;
        uint64_t heap = 0, size = 0;
        snprintf(path, sizeof path, TOPOLOGY "/nodes/%u/mem_banks/%u/properties", node->number,
                 banks.numbers.data[i]);
        rc = bw_sys_read_text(sys, path, FILE_BYTES_MAX, &text);
        if (rc)
            break;
        if (bw_kfd_property(text, "heap_type", &heap) || bw_kfd_property(text, "size_in_bytes", &size))
            rc = -EPROTO;
        if (heap == HEAP_FB_PUBLIC || heap == HEAP_FB_PRIVATE)
            node->vram_bytes += size;
        if (heap == HEAP_FB_PUBLIC)
            node->visible_vram_bytes += size;
        free(text);
    }
    bw_vec_free(&banks.numbers);
    return rc ? bw_fail(err, rc, "kfd", "%s", path) : 0;
}

/* 1: a usable GPU node; 0: a CPU, or not for this process; -errno. */
static int read_node(struct bw_sys *sys, uint32_t number, struct bw_kfd_node *node, struct bw_err *err)
{
    char path[PATH_BYTES], *text;
    *node = (struct bw_kfd_node){.number = number};
    snprintf(path, sizeof path, TOPOLOGY "/nodes/%u/gpu_id", number);
    int rc = bw_sys_read_text(sys, path, FILE_BYTES_MAX, &text);
    if (rc == -EPERM)
        return 0; /* the device cgroup keeps this GPU from us (kfd_devcgroup_check_permission) */
    if (rc)
        return bw_fail(err, rc, "kfd", "%s", path);
    char *end;
    unsigned long gpu_id = strtoul(text, &end, 10);
    bool number_read = end != text && gpu_id <= UINT32_MAX;
    free(text);
    if (!number_read)
        return bw_fail(err, -EPROTO, "kfd", "%s: not a number", path);
    if (!gpu_id)
        return 0;
    node->gpu_id = (uint32_t)gpu_id;
    snprintf(path, sizeof path, TOPOLOGY "/nodes/%u/properties", number);
    rc = bw_sys_read_text(sys, path, FILE_BYTES_MAX, &text);
    if (rc == -EPERM)
        return 0;
    if (rc)
        return bw_fail(err, rc, "kfd", "%s", path);
    rc = parse_fields(text, path, node, err);
    free(text);
    if (!rc)
        rc = read_vram(sys, node, err);
    return rc ? rc : 1;
}

static int fail_no_topology(int rc, struct bw_err *err)
{
    if (rc != -ENOENT)
        return bw_fail(err, rc, "kfd", TOPOLOGY "/nodes");
    rc = bw_fail(err, -ENODEV, "kfd", "no KFD topology in " TOPOLOGY);
    bw_err_hint(err,
                "load the module amdgpu (modprobe amdgpu) on a kernel with CONFIG_HSA_AMD, and mount /sys");
    return rc;
}

int bw_kfd_topology_read(struct bw_sys *sys, struct bw_kfd_nodes *nodes, struct bw_err *err)
{
    struct number_list list = {0};
    memset(nodes, 0, sizeof *nodes);
    int rc = list_numbers(sys, TOPOLOGY "/nodes", &list);
    if (rc)
        rc = fail_no_topology(rc, err);
    else if (list.numbers.count > BW_KFD_NODES_MAX)
        rc = bw_fail(err, -EPROTO, "kfd", "more than %d topology nodes", BW_KFD_NODES_MAX);
    if (!rc && list.numbers.count) {
        nodes->at = calloc(list.numbers.count, sizeof *nodes->at);
        rc = nodes->at ? 0 : bw_fail(err, -ENOMEM, "kfd", "topology");
    }
    for (size_t i = 0; rc >= 0 && i < list.numbers.count; i++) {
        rc = read_node(sys, list.numbers.data[i], &nodes->at[nodes->count], err);
        nodes->count += rc > 0;
    }
    bw_vec_free(&list.numbers);
    if (rc < 0) {
        free(nodes->at);
        memset(nodes, 0, sizeof *nodes);
        return rc;
    }
    return 0;
}

static enum bw_iface_link_kind link_kind(uint64_t type)
{
    return type == LINK_TYPE_XGMI   ? BW_IFACE_LINK_XGMI
           : type == LINK_TYPE_PCIE ? BW_IFACE_LINK_PCIE
                                    : BW_IFACE_LINK_NONE;
}

/* One link file; of several ways to `to` the better kind stays. */
static int link_consider(struct bw_sys *sys, const char *path, uint32_t to, struct bw_iface_link *link)
{
    char *text;
    uint64_t node_to = 0, type = 0, weight = 0, bandwidth = 0;
    int rc = bw_sys_read_text(sys, path, FILE_BYTES_MAX, &text);
    if (rc)
        return rc;
    if (bw_kfd_property(text, "node_to", &node_to) || bw_kfd_property(text, "type", &type))
        rc = -EPROTO;
    /* Zero where the kernel does not know. */
    if (!rc && (bw_kfd_property(text, "weight", &weight) == -EPROTO ||
                bw_kfd_property(text, "max_bandwidth", &bandwidth) == -EPROTO))
        rc = -EPROTO;
    free(text);
    if (!rc && (weight > UINT32_MAX || bandwidth > UINT32_MAX))
        rc = -EPROTO;
    if (rc || node_to != to || link_kind(type) <= link->kind)
        return rc;
    *link = (struct bw_iface_link){link_kind(type), (uint32_t)weight, (uint32_t)bandwidth};
    return 0;
}

int bw_kfd_link_read(struct bw_sys *sys, uint32_t from, uint32_t to, struct bw_iface_link *link,
                     struct bw_err *err)
{
    static const char *const folders[] = {"io_links", "p2p_links"};
    char path[PATH_BYTES];
    int rc = 0;
    *link = (struct bw_iface_link){.kind = BW_IFACE_LINK_NONE};
    for (size_t i = 0; i < BW_COUNT_OF(folders) && !rc; i++) {
        struct number_list links = {0};
        snprintf(path, sizeof path, TOPOLOGY "/nodes/%u/%s", from, folders[i]);
        rc = list_numbers(sys, path, &links);
        if (rc == -ENOENT)
            rc = 0; /* kernels before 6.0 have no p2p_links */
        for (size_t k = 0; !rc && k < links.numbers.count; k++) {
            snprintf(path, sizeof path, TOPOLOGY "/nodes/%u/%s/%u/properties", from, folders[i],
                     links.numbers.data[k]);
            rc = link_consider(sys, path, to, link);
        }
        bw_vec_free(&links.numbers);
    }
    return rc ? bw_fail(err, rc, "kfd", "%s", path) : 0;
}

void bw_kfd_node_properties(const struct bw_kfd_node *node, struct bw_iface_properties *properties)
{
    memset(properties, 0, sizeof *properties);
    snprintf(properties->node_name, sizeof properties->node_name, "kfd node %u", node->number);
    properties->gfx_version = node->gfx_version;
    properties->vendor_id = (uint16_t)node->vendor_id;
    properties->device_id = (uint16_t)node->device_id;
    properties->vram_bytes = node->vram_bytes;
    properties->visible_vram_bytes = node->visible_vram_bytes;
    properties->gpu_id = node->gpu_id;
    properties->simd_count = node->simd_count;
    properties->simd_per_cu = node->simd_per_cu;
    properties->array_count = node->array_count;
    properties->cu_per_array = node->cu_per_array;
    properties->waves_per_simd_max = node->waves_per_simd;
    properties->scratch_slots_per_cu = node->scratch_slots_per_cu;
    properties->xcc_count = node->xcc_count;
    properties->shader_engines = node->array_count / node->arrays_per_engine;
    properties->lds_bytes = node->lds_kib << 10;
    properties->wave_size = node->wave_size;
    properties->sdma_engines = node->sdma_engines;
    properties->sdma_xgmi_engines = node->sdma_xgmi_engines;
    properties->sdma_queues_per_engine = node->sdma_queues_per_engine;
    properties->cp_queues = node->cp_queues;
    properties->engine_clock_mhz_max = node->engine_clock_mhz;
    /* The reference clock of every dGPU from gfx9 on (amdgpu's *_get_xclk; tools report 100 MHz for all of
     * them). */
    properties->timestamp_hz = 100000000;
}
