/* The KFD front: files, versions, memory, queues, events, and what it refuses. */
#include "tests/unit/mock/client.h"

static int count_name(void *user, const char *name)
{
    ++*(int *)user;
    return 0;
}

static void files_show_the_machine_and_the_host(void)
{
    struct client c;
    if (!client_open_config(
            &c, &(struct bw_mock_config){
                    .size = sizeof(struct bw_mock_config), .arch = "gfx1100", .gpu_count = 3, .threads = 1}))
        return;
    const struct bw_sys_ops *ops = c.sys->ops;
    const char *node = "/sys/devices/virtual/kfd/kfd/topology/nodes/1/properties";
    BW_EQ(client_property(&c, node, "gfx_target_version"), 110000);
    BW_EQ(client_property(&c, node, "simd_count"), 192);
    BW_EQ(client_property(&c, node, "drm_render_minor"), 128);
    BW_EQ(client_property(&c, node, "capability") >> 12 & 3, 2);
    BW_EQ(client_property(&c, "/sys/class/kfd/kfd/topology/nodes/3/properties", "drm_render_minor"), 130);
    BW_EQ(client_property(&c, "/sys/class/drm/renderD129/device/ip_discovery/die/0/11/0/major", NULL), 11);
    BW_EQ(client_property(&c, "/sys/class/drm//renderD129/device/mem_info_vram_total", NULL), 25753026560ull);
    int names = 0;
    BW_EQ(ops->list(c.sys, "/sys/devices/virtual/kfd/kfd/topology/nodes", count_name, &names), 0);
    BW_EQ(names, 4);
    names = 0;
    BW_EQ(ops->list(c.sys, "/dev/dri", count_name, &names), 0);
    BW_EQ(names, 3);
    names = 0;
    BW_EQ(ops->list(c.sys, "/sys/bus/pci/devices", count_name, &names), 0);
    BW_EQ(names, 3);
    BW_EQ(ops->open(c.sys, "/dev/dri/renderD131", O_RDWR), -ENOENT);
    int fd = ops->open(c.sys, "/proc/self/maps", O_RDONLY);
    BW_TRUE(fd >= 0);
    ops->close(c.sys, fd);
    client_close(&c);
}

#define NODES "/sys/devices/virtual/kfd/kfd/topology/nodes/"

/* Two sockets with two GPUs each: CPUs first, each GPU linked to its own, to the other one over that. */
static void sockets_come_first_and_have_their_gpus(void)
{
    static const struct {
        const char *path, *name;
        uint64_t value;
    } files[] = {
        {NODES "0/properties", "cpu_cores_count", 16},
        {NODES "1/properties", "io_links_count", 3},
        {NODES "1/properties", "p2p_links_count", 2},
        {NODES "1/io_links/0/properties", "node_to", 0},
        {NODES "1/io_links/0/properties", "type", 1},
        {NODES "1/io_links/0/properties", "weight", 32},
        {NODES "1/io_links/1/properties", "node_to", 4},
        {NODES "1/io_links/1/properties", "weight", 20},
        {NODES "1/p2p_links/1/properties", "node_to", 3},
        {NODES "1/p2p_links/1/properties", "weight", 52},
        {NODES "4/properties", "drm_render_minor", 130},
        {NODES "4/properties", "io_links_count", 1},
        {NODES "4/properties", "p2p_links_count", 4},
        {NODES "4/io_links/0/properties", "node_to", 1},
        {NODES "4/p2p_links/0/properties", "node_to", 0},
        {NODES "4/p2p_links/0/properties", "weight", 52},
        {NODES "4/p2p_links/1/properties", "node_to", 2},
        {NODES "4/p2p_links/1/properties", "weight", 72},
        {NODES "4/p2p_links/1/properties", "max_bandwidth", 0},
        {NODES "4/p2p_links/3/properties", "node_to", 5},
        {NODES "4/p2p_links/3/properties", "weight", 40},
        {NODES "4/p2p_links/3/properties", "max_bandwidth", 31504},
        {"/sys/class/drm/renderD129/device/numa_node", NULL, 0},
        {"/sys/class/drm/renderD130/device/numa_node", NULL, 1},
        {"/sys/devices/system/node/node1/cpulist", NULL, 16},
    };
    struct client c = {0};
    struct bw_mock_config config = {
        .size = sizeof config, .arch = "gfx1100", .gpu_count = 4, .threads = 1, .nodes = 2};
    struct bw_err err;
    if (!BW_OK(bw_mock_kfd_create(&config, &c.sys, &err), &err))
        return;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (!BW_EQ(client_property(&c, files[i].path, files[i].name), files[i].value))
            printf("      %s, %s\n", files[i].path, files[i].name ? files[i].name : "all");
    }
    bw_sys_destroy(c.sys);
    config.node_unknown = true; /* the kernel then says 0, and is wrong for half of them */
    if (!BW_OK(bw_mock_kfd_create(&config, &c.sys, &err), &err))
        return;
    BW_EQ(client_property(&c, "/sys/class/drm/renderD130/device/numa_node", NULL), (uint64_t)-1);
    BW_EQ(client_property(&c, NODES "4/io_links/0/properties", "node_to"), 0);
    BW_EQ(client_property(&c, NODES "0/properties", "io_links_count"), 5);
    bw_sys_destroy(c.sys);
}

static void unknown_arch_and_counts_are_refused(void)
{
    struct bw_sys *sys;
    struct bw_err err;
    struct bw_mock_config config = {.size = sizeof config, .arch = "gfx999"};
    BW_EQ(bw_mock_kfd_create(&config, &sys, &err), -ENODEV);
    config.arch = "gfx1100";
    config.cu_count = 97;
    BW_EQ(bw_mock_kfd_create(&config, &sys, &err), -EINVAL);
    config.cu_count = 2;
    config.nodes = 9;
    BW_EQ(bw_mock_kfd_create(&config, &sys, &err), -EINVAL);
    config.nodes = 0;
    config.gpu_count = 65;
    BW_EQ(bw_mock_kfd_create(&config, &sys, &err), -EINVAL);
}

static void a_packet_stream_writes_and_signals(void)
{
    struct client c;
    struct queue q;
    struct memory m;
    if (!client_open(&c) || !queue_create(&c, COMPUTE, &q) || !BW_EQ(memory_create(&c, PAGE, GTT, &m), 0))
        return;
    uint32_t words[] = {PM4(0x37, 5), 5u << 8 | 1u << 20, lo(m.va + 16),    hi(m.va),
                        0x12345678,   0x9abcdef0,         RELEASE(m.va, 77)};
    queue_submit(&c, &q, words, sizeof words / 4);
    BW_TRUE(wait_word(&c, m.cpu, 77));
    BW_EQ(((uint32_t *)m.cpu)[4], 0x12345678);
    BW_EQ(((uint32_t *)m.cpu)[5], 0x9abcdef0);
    BW_EQ(((uint32_t *)m.cpu)[6], 0);
    BW_EQ(queue_read_pointer(&q), sizeof words / 4);
    BW_EQ(memory_unmap(&c, &q.ring), -EBUSY);
    queue_destroy(&c, &q);
    BW_EQ(memory_destroy(&c, &m), 0);
    client_close(&c);
}

static void version_is_told_whatever_the_size(void)
{
    struct client c;
    uint32_t args[4] = {0, 0, 7, 7};
    if (!client_open(&c))
        return;
    BW_EQ(client_ioctl(&c, 0x01, args, 8), 0);
    BW_EQ(args[0], 1);
    BW_TRUE(args[1] >= 14);
    BW_EQ(client_ioctl(&c, 0x01, args, 16), 0);
    BW_EQ(args[2], 7);
    args[1] = 9;
    BW_EQ(client_ioctl(&c, 0x01, args, 4), 0);
    BW_EQ(args[1], 9);
    BW_EQ(client_ioctl(&c, 0x7f, args, 8), -ENOTTY);
    BW_EQ(client_ioctl(&c, 0x20, args, 16), -EINVAL);
    client_close(&c);
}

BW_TEST_MAIN("mock.kfd",
             {"files show the machine, and the host elsewhere", files_show_the_machine_and_the_host},
             {"sockets come first and have their GPUs", sockets_come_first_and_have_their_gpus},
             {"unknown arch and counts are refused", unknown_arch_and_counts_are_refused},
             {"a packet stream writes and signals", a_packet_stream_writes_and_signals},
             {"version is told whatever the size", version_is_told_whatever_the_size})
