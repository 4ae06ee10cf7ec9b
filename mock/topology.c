/* The files of a machine with these GPUs: the KFD topology (kfd_topology.c of the kernel gives names and
 * order), DRM class devices and PCI devices as far as user space reads them. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "mock/link.h"
#include "mock/machine.h"

#define TOPOLOGY "/sys/devices/virtual/kfd/kfd/topology"

enum {
    VENDOR_AMD = 0x1002,
    SUBSYSTEM_DEVICE = 0x0e3b,
    CPU_CORES = 16,
    HEAP_SYSTEM = 0,
    HEAP_VRAM_PUBLIC = 1,
    HEAP_VRAM_PRIVATE = 2,
    LINK_HYPERTRANSPORT = 1, /* between AMD's sockets */
    LINK_PCIE = 2,
    LINK_XGMI = 11,
    LINK_WEIGHT_PCIE = 20,
    LINK_WEIGHT_SOCKETS = 32, /* node_distance: the firmware's table, as two-socket EPYC machines have it */
    LINK_WEIGHT_XGMI = 15,
    /* What 16 lanes carry, from the first to the fourth generation with one lane left out: amdgpu's range. */
    PCIE_MIN_MB_PER_S = 312,
    PCIE_MAX_MB_PER_S = 31504,
    /* capability: doorbell type 2 in bits 13:12, 2^2 watch points in bits 11:8 and 7 (kfd_sysfs.h) */
    CAPABILITY = 2 << 12 | 2 << 8 | 1 << 7,
    MEC_FIRMWARE = 0x1f7,
    SDMA_FIRMWARE = 0x18,
};

static void add(struct bw_mock *machine, struct bw_text *text, const char *path_format, const char *path_base,
                unsigned index)
{
    if (text->failed)
        machine->tree.failed = -ENOMEM;
    bw_mock_tree_add_text(&machine->tree, bw_text_string(text), path_format, path_base, index);
    bw_text_free(text);
    *text = (struct bw_text){0};
}

/* What a link file says; bandwidths in MB/s. */
struct link_file {
    const char *folder; /* io_links: a direct link; p2p_links: between GPUs over PCIe */
    unsigned index, from, to, type, weight, min_bandwidth, max_bandwidth;
};

static void add_link_file(struct bw_mock *machine, const char *node, const struct link_file *link)
{
    struct bw_text text = {0};
    char path[192];
    bw_text_add(&text, "type %u\nversion_major 0\nversion_minor 0\nnode_from %u\nnode_to %u\nweight %u\n",
                link->type, link->from, link->to, link->weight);
    bw_text_add(&text, "min_latency 0\nmax_latency 0\nmin_bandwidth %u\nmax_bandwidth %u\n",
                link->min_bandwidth, link->max_bandwidth);
    bw_text_add(&text, "recommended_transfer_size 0\nrecommended_sdma_engine_id_mask 0\nflags 1\n");
    snprintf(path, sizeof path, "%s/%s", node, link->folder);
    add(machine, &text, "%s/%u/properties", path, link->index);
}

static void add_pcie_link(struct bw_mock *machine, const char *node, unsigned index, unsigned from,
                          unsigned to)
{
    add_link_file(machine, node,
                  &(struct link_file){"io_links", index, from, to, LINK_PCIE, LINK_WEIGHT_PCIE,
                                      PCIE_MIN_MB_PER_S, PCIE_MAX_MB_PER_S});
}

/* Between a GPU and the CPU of another socket: over the GPU's own. How wide sockets are linked nobody knows,
 * and 0 is less than any width (kfd_create_indirect_link_prop). */
static void add_indirect_link(struct bw_mock *machine, const char *node, unsigned index, unsigned from,
                              unsigned to)
{
    add_link_file(machine, node,
                  &(struct link_file){"p2p_links", index, from, to, LINK_PCIE,
                                      LINK_WEIGHT_PCIE + LINK_WEIGHT_SOCKETS, 0, 0});
}

/* CPUs come first, numbered as the kernel numbers its nodes. */
static unsigned topology_node(const struct bw_mock *machine, uint32_t gpu)
{
    return machine->node_count + gpu;
}

/* With no node known the kernel says 0 (kfd_fill_gpu_direct_io_link_to_cpu). */
static unsigned cpu_of(const struct bw_mock *machine, uint32_t gpu)
{
    return machine->node_unknown ? 0 : machine->gpus[gpu].node;
}

static void add_memory_file(struct bw_mock *machine, const char *node, unsigned bank, unsigned heap,
                            uint64_t bytes, unsigned width, unsigned clock)
{
    struct bw_text text = {0};
    bw_text_add(&text, "heap_type %u\nsize_in_bytes %llu\nflags 0\nwidth %u\nmem_clk_max %u\n", heap,
                (unsigned long long)bytes, width, clock);
    add(machine, &text, "%s/mem_banks/%u/properties", node, bank);
}

static void add_cpu_properties(struct bw_mock *machine, const char *node, unsigned io_links,
                               unsigned p2p_links)
{
    struct bw_text text = {0};
    bw_text_add(&text,
                "cpu_cores_count %u\nsimd_count 0\nmem_banks_count 1\ncaches_count 0\nio_links_count %u\n",
                CPU_CORES, io_links);
    bw_text_add(
        &text,
        "p2p_links_count %u\ncpu_core_id_base 0\nsimd_id_base 0\nmax_waves_per_simd 0\nlds_size_in_kb "
        "0\n",
        p2p_links);
    bw_text_add(&text,
                "gds_size_in_kb 0\nnum_gws 0\nwave_front_size 0\narray_count 0\nsimd_arrays_per_engine 0\n");
    bw_text_add(
        &text,
        "cu_per_simd_array 0\nsimd_per_cu 0\nmax_slots_scratch_cu 0\ngfx_target_version 0\nvendor_id 0\n");
    bw_text_add(&text,
                "device_id 0\nlocation_id 0\ndomain 0\ndrm_render_minor 0\nhive_id 0\nnum_sdma_engines 0\n");
    bw_text_add(&text, "num_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine 0\nnum_cp_queues 0\n");
    bw_text_add(&text, "max_engine_clk_ccompute 4500\n");
    add(machine, &text, "%s/properties", node, 0);
}

/* The other sockets, then the GPUs of this one; those of others over these. */
static void add_cpu_node(struct bw_mock *machine, uint32_t cpu)
{
    char node[128];
    unsigned direct = 0, indirect = 0;
    snprintf(node, sizeof node, TOPOLOGY "/nodes/%u", cpu);
    for (uint32_t i = 0; i < machine->node_count; i++) {
        if (i != cpu)
            add_link_file(machine, node,
                          &(struct link_file){"io_links", direct++, cpu, i, LINK_HYPERTRANSPORT,
                                              LINK_WEIGHT_SOCKETS, 0, 0});
    }
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        if (cpu_of(machine, i) == cpu)
            add_pcie_link(machine, node, direct++, cpu, topology_node(machine, i));
        else
            add_indirect_link(machine, node, indirect++, cpu, topology_node(machine, i));
    }
    add_cpu_properties(machine, node, direct, indirect);
    bw_mock_tree_add_text(&machine->tree, "0\n", "%s/gpu_id", node);
    bw_mock_tree_add_text(&machine->tree, "\n", "%s/name", node);
    add_memory_file(machine, node, 0, HEAP_SYSTEM, machine->system.limit * 2 / machine->node_count, 64, 3200);
}

static void add_gpu_properties(struct bw_mock *machine, const struct bw_mock_gpu *gpu, const char *node)
{
    const struct bw_mock_chip *chip = gpu->chip;
    struct bw_text text = {0};
    uint32_t arrays = chip->shader_engines * chip->arrays_per_engine, peers = 0;
    bool xgmi = bw_mock_link_is_xgmi(gpu);
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        peers += i != gpu->index && bw_mock_link_exists(machine, gpu->index, i);
    bw_text_add(&text,
                "cpu_cores_count 0\nsimd_count %u\nmem_banks_count %u\ncaches_count 2\nio_links_count %u\n",
                gpu->cu_count * chip->simd_per_cu, gpu->visible_bytes < gpu->vram.limit ? 2 : 1,
                1 + (xgmi ? peers : 0));
    bw_text_add(&text, "p2p_links_count %u\ncpu_core_id_base 0\nsimd_id_base %u\nmax_waves_per_simd %u\n",
                machine->node_count - 1 + (xgmi ? 0 : peers), 0x80000000u + gpu->index * 0x1000,
                chip->waves_per_simd);
    bw_text_add(&text,
                "lds_size_in_kb %u\ngds_size_in_kb 0\nnum_gws 64\nwave_front_size %u\narray_count %u\n",
                chip->lds_kib, chip->wave_size, arrays);
    bw_text_add(&text,
                "simd_arrays_per_engine %u\ncu_per_simd_array %u\nsimd_per_cu %u\nmax_slots_scratch_cu %u\n",
                chip->arrays_per_engine, chip->cu_per_array, chip->simd_per_cu, chip->scratch_slots_per_cu);
    bw_text_add(&text, "gfx_target_version %u\nvendor_id %u\ndevice_id %u\nlocation_id %u\ndomain 0\n",
                chip->target_version, VENDOR_AMD, chip->device_id, gpu->bus << 8);
    bw_text_add(&text, "drm_render_minor %u\nhive_id %u\nnum_sdma_engines %u\nnum_sdma_xgmi_engines %u\n",
                gpu->render_minor, chip->sdma_xgmi_engines && machine->gpu_count > 1 ? 0x1234u : 0,
                chip->sdma_engines, chip->sdma_xgmi_engines);
    bw_text_add(&text, "num_sdma_queues_per_engine %u\nnum_cp_queues %u\nmax_engine_clk_fcompute %u\n",
                chip->sdma_queues_per_engine, BW_MOCK_COMPUTE_QUEUES, chip->engine_clock_mhz);
    bw_text_add(&text,
                "local_mem_size 0\nfw_version %u\ncapability %u\ndebug_prop 1495\nsdma_fw_version %u\n",
                MEC_FIRMWARE, CAPABILITY, SDMA_FIRMWARE);
    bw_text_add(&text, "unique_id %llu\nnum_xcc %u\nmax_engine_clk_ccompute 4500\n",
                0x5be11ull << 8 | gpu->index, chip->xcc_count);
    add(machine, &text, "%s/properties", node, 0);
}

static void add_cache_file(struct bw_mock *machine, const char *node, unsigned index, unsigned level,
                           unsigned kib)
{
    struct bw_text text = {0};
    bw_text_add(&text, "processor_id_low 0\nlevel %u\nsize %u\ncache_line_size 128\ncache_lines_per_tag 1\n",
                level, kib);
    bw_text_add(&text, "association 16\nlatency 0\ntype 9\nsibling_map 1\n");
    add(machine, &text, "%s/caches/%u/properties", node, index);
}

/* GPUs of one hive have direct links; the others see each other over PCIe where the kernel allows it
 * (kfd_add_peer_prop: weights of both sides' links to the CPU together, and of that between CPUs). */
static void add_peer_links(struct bw_mock *machine, const struct bw_mock_gpu *gpu, const char *node)
{
    unsigned direct = 1, peers = machine->node_count - 1; /* links to CPUs come first */
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        struct link_file link = {.from = topology_node(machine, gpu->index), .to = topology_node(machine, i)};
        if (i == gpu->index || !bw_mock_link_exists(machine, gpu->index, i))
            continue;
        if (bw_mock_link_is_xgmi(gpu)) {
            link.folder = "io_links";
            link.index = direct++;
            link.type = LINK_XGMI;
            link.weight = LINK_WEIGHT_XGMI;
            link.min_bandwidth = link.max_bandwidth = gpu->chip->xgmi_mb_per_s;
        } else {
            link.folder = "p2p_links";
            link.index = peers++;
            link.type = LINK_PCIE;
            link.weight = 2 * LINK_WEIGHT_PCIE;
            link.min_bandwidth = PCIE_MIN_MB_PER_S;
            link.max_bandwidth = PCIE_MAX_MB_PER_S;
            if (cpu_of(machine, gpu->index) != cpu_of(machine, i)) {
                link.weight += LINK_WEIGHT_SOCKETS;
                link.min_bandwidth = link.max_bandwidth = 0; /* as in add_indirect_link */
            }
        }
        add_link_file(machine, node, &link);
    }
}

/* VRAM behind the BAR, and what no CPU reaches. */
static void add_vram_files(struct bw_mock *machine, const struct bw_mock_gpu *gpu, const char *node)
{
    uint64_t hidden = gpu->vram.limit - gpu->visible_bytes;
    const struct bw_mock_chip *chip = gpu->chip;
    add_memory_file(machine, node, 0, HEAP_VRAM_PUBLIC, gpu->visible_bytes, chip->memory_width_bits,
                    chip->memory_clock_mhz);
    if (hidden)
        add_memory_file(machine, node, 1, HEAP_VRAM_PRIVATE, hidden, chip->memory_width_bits,
                        chip->memory_clock_mhz);
}

static void add_gpu_node(struct bw_mock *machine, const struct bw_mock_gpu *gpu)
{
    char node[128], number[32];
    snprintf(node, sizeof node, TOPOLOGY "/nodes/%u", topology_node(machine, gpu->index));
    snprintf(number, sizeof number, "%u\n", gpu->gpu_id);
    add_gpu_properties(machine, gpu, node);
    bw_mock_tree_add_text(&machine->tree, number, "%s/gpu_id", node);
    bw_mock_tree_add_text(&machine->tree, "ip discovery\n", "%s/name", node);
    add_vram_files(machine, gpu, node);
    add_cache_file(machine, node, 0, 1, 32);
    add_cache_file(machine, node, 1, 2, gpu->chip->l2_kib);
    add_pcie_link(machine, node, 0, topology_node(machine, gpu->index), cpu_of(machine, gpu->index));
    for (uint32_t i = 0, index = 0; i < machine->node_count; i++) {
        if (i != cpu_of(machine, gpu->index))
            add_indirect_link(machine, node, index++, topology_node(machine, gpu->index), i);
    }
    add_peer_links(machine, gpu, node);
}

/* ip_discovery/die/0/<hardware id>/0/{major,minor,revision}; ids of soc15_hw_ip.h. */
static void add_ip(struct bw_mock *machine, const char *device, unsigned id,
                   struct bw_mock_ip_version version)
{
    const struct {
        const char *name;
        unsigned value;
    } fields[] = {{"major", version.major},
                  {"minor", version.minor},
                  {"revision", version.revision},
                  {"hw_id", id},
                  {"num_instance", 0},
                  {"harvest", 0}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u\n", fields[i].value);
        bw_mock_tree_add_text(&machine->tree, text, "%s/ip_discovery/die/0/%u/0/%s", device, id,
                              fields[i].name);
    }
}

static void add_numbers(struct bw_mock *machine, const struct bw_mock_gpu *gpu, const char *device)
{
    const struct {
        const char *name, *format;
        unsigned long long value;
    } files[] = {
        {"vendor", "0x%04llx\n", VENDOR_AMD},
        {"device", "0x%04llx\n", gpu->chip->device_id},
        {"subsystem_vendor", "0x%04llx\n", VENDOR_AMD},
        {"subsystem_device", "0x%04llx\n", SUBSYSTEM_DEVICE},
        {"revision", "0x%02llx\n", gpu->chip->revision},
        {"class", "0x%06llx\n", 0x030000},
        {"mem_info_vram_total", "%llu\n", gpu->vram.limit},
        {"mem_info_vis_vram_total", "%llu\n", gpu->visible_bytes},
        {"mem_info_gtt_total", "%llu\n", machine->system.limit},
        {"enable", "%llu\n", 1},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, files[i].format, files[i].value);
        bw_mock_tree_add_text(&machine->tree, text, "%s/%s", device, files[i].name);
    }
}

static void add_pci_device(struct bw_mock *machine, const struct bw_mock_gpu *gpu)
{
    const struct bw_mock_chip *chip = gpu->chip;
    char address[32], device[128], text[256];
    snprintf(address, sizeof address, "0000:%02x:00.0", gpu->bus);
    snprintf(device, sizeof device, "/sys/devices/pci0000:00/%s", address);
    add_numbers(machine, gpu, device);
    snprintf(text, sizeof text, "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:%04X\nPCI_SLOT_NAME=%s\n",
             chip->device_id, address);
    bw_mock_tree_add_text(&machine->tree, text, "%s/uevent", device);
    snprintf(text, sizeof text, "%d\n", machine->node_unknown ? -1 : (int)gpu->node);
    bw_mock_tree_add_text(&machine->tree, text, "%s/numa_node", device);
    bw_mock_tree_add_text(&machine->tree, "auto\n", "%s/power_dpm_force_performance_level", device);
    snprintf(text, sizeof text, "%s\n", chip->product);
    bw_mock_tree_add_text(&machine->tree, text, "%s/product_name", device);
    add_ip(machine, device, 0x0b, chip->gc);
    add_ip(machine, device, 0x2a, chip->sdma);
    add_ip(machine, device, 0x22, chip->mmhub);
    add_ip(machine, device, 0x28, chip->osssys);
    add_ip(machine, device, 0x29, chip->hdp);
    add_ip(machine, device, 0x6c, chip->nbif);
    add_ip(machine, device, 0xff, chip->mp0);
    add_ip(machine, device, 0x01, chip->mp0);
    snprintf(text, sizeof text, "MAJOR=226\nMINOR=%u\nDEVNAME=dri/renderD%u\nDEVTYPE=drm_minor\n",
             gpu->render_minor, gpu->render_minor);
    bw_mock_tree_add_text(&machine->tree, text, "%s/drm/renderD%u/uevent", device, gpu->render_minor);
    snprintf(text, sizeof text, "226:%u\n", gpu->render_minor);
    bw_mock_tree_add_text(&machine->tree, text, "%s/drm/renderD%u/dev", device, gpu->render_minor);
    bw_mock_tree_add_link(&machine->tree, device, "%s/drm/renderD%u/device", device, gpu->render_minor);
    bw_mock_tree_add_link(&machine->tree, device, "/sys/bus/pci/devices/%s", address);
    bw_mock_tree_add_link(&machine->tree, device, "/sys/bus/pci/drivers/amdgpu/%s", address);
    char node[192];
    snprintf(node, sizeof node, "%s/drm/renderD%u", device, gpu->render_minor);
    bw_mock_tree_add_link(&machine->tree, node, "/sys/class/drm/renderD%u", gpu->render_minor);
    bw_mock_tree_add_link(&machine->tree, node, "/sys/dev/char/226:%u", gpu->render_minor);
    bw_mock_tree_add_device(&machine->tree, BW_MOCK_NODE_RENDER, gpu->index, "/dev/dri/renderD%u",
                            gpu->render_minor);
}

static void add_kfd(struct bw_mock *machine)
{
    struct bw_mock_tree *tree = &machine->tree;
    bw_mock_tree_add_device(tree, BW_MOCK_NODE_KFD, 0, "/dev/%s", "kfd");
    bw_mock_tree_add_text(tree, "2\n", "%s/generation_id", TOPOLOGY);
    bw_mock_tree_add_text(tree, "platform_oem 0\nplatform_id 0\nplatform_rev 0\n", "%s/system_properties",
                          TOPOLOGY);
    bw_mock_tree_add_link(tree, "/sys/devices/virtual/kfd/kfd", "/sys/class/kfd/%s", "kfd");
    for (uint32_t i = 0; i < machine->node_count; i++)
        add_cpu_node(machine, i);
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        add_gpu_node(machine, &machine->gpus[i]);
}

/* drivers/base/node.c of the kernel. */
static void add_memory_nodes(struct bw_mock *machine)
{
    static const char *const lists[] = {"possible", "online", "has_cpu", "has_memory"};
    const char *folder = "/sys/devices/system/node";
    char text[32];
    snprintf(text, sizeof text, machine->node_count > 1 ? "0-%u\n" : "%u\n", machine->node_count - 1);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        bw_mock_tree_add_text(&machine->tree, text, "%s/%s", folder, lists[i]);
    for (uint32_t i = 0; i < machine->node_count; i++) {
        snprintf(text, sizeof text, "%u-%u\n", i * CPU_CORES, (i + 1) * CPU_CORES - 1);
        bw_mock_tree_add_text(&machine->tree, text, "%s/node%u/cpulist", folder, i);
    }
}

int bw_mock_topology_build(struct bw_mock *machine)
{
    struct bw_mock_tree *tree = &machine->tree;
    bw_mock_tree_add_text(tree, "live\n", "/sys/module/amdgpu/%s", "initstate");
    bw_mock_tree_add_text(tree, "6.12.0\n", "/sys/module/amdgpu/%s", "version");
    add_memory_nodes(machine);
    if (!machine->kfd_absent)
        add_kfd(machine);
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        add_pci_device(machine, &machine->gpus[i]);
    return bw_mock_tree_finish(tree);
}
