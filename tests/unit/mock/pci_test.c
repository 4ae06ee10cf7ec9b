/* The host of mock PCI devices: configuration space, BARs, DMA windows, interrupts. */
#include <bellwire/err.h>
#include <bellwire/mock_device.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "tests/check.h"

/* A device that remembers: register 0 and 8 hold values; a write to 16 copies 8 bytes from one DMA address to
 * another. */
struct echo {
    struct bw_mock_slot *slot;
    uint64_t registers[2];
    int rc;
};

static int echo_create(struct bw_mock_slot *slot, void **device)
{
    struct echo *echo = calloc(1, sizeof *echo);
    if (!echo)
        return -ENOMEM;
    echo->slot = slot;
    *device = echo;
    return 0;
}

static void echo_reset(void *device)
{
    struct echo *echo = device;
    echo->registers[0] = echo->registers[1] = 7;
}

static uint64_t echo_read(void *device, uint32_t bar, uint64_t offset, uint32_t width_bytes)
{
    struct echo *echo = device;
    return offset < 16 ? echo->registers[offset / 8] >> offset % 8 * 8 : (uint64_t)(int64_t)echo->rc;
}

static void echo_write(void *device, uint32_t bar, uint64_t offset, uint32_t width_bytes, uint64_t value)
{
    struct echo *echo = device;
    uint64_t data;
    if (offset < 16) {
        echo->registers[offset / 8] = value;
        return;
    }
    echo->rc = bw_mock_dma_read(echo->slot, echo->registers[0], &data, sizeof data);
    if (!echo->rc)
        echo->rc = bw_mock_dma_write(echo->slot, echo->registers[1], &data, sizeof data);
    bw_mock_interrupt(echo->slot, (uint32_t)value);
}

static const struct bw_mock_device_ops echo_ops = {
    .size = sizeof echo_ops,
    .vendor_id = 0x1234,
    .device_id = 0x5678,
    .class_code = 0x0b4000,
    .bar_bytes = {4096, 0, 1 << 20},
    .create = echo_create,
    .destroy = free,
    .reset = echo_reset,
    .bar_read = echo_read,
    .bar_write = echo_write,
};

static struct bw_sys *open_machine(uint32_t count)
{
    const struct bw_mock_device_ops *devices[] = {&echo_ops, &echo_ops};
    struct bw_sys *sys;
    struct bw_err err = {0};
    return BW_OK(bw_mock_pci_create(devices, count, &sys, &err), &err) ? sys : NULL;
}

static uint32_t config_read(struct bw_sys *sys, int fd, uint64_t offset)
{
    uint32_t value = 0;
    BW_EQ(sys->ops->pread(sys, fd, &value, sizeof value, offset), sizeof value);
    return value;
}

static void config_write(struct bw_sys *sys, int fd, uint64_t offset, uint32_t value)
{
    BW_EQ(sys->ops->pwrite(sys, fd, &value, sizeof value, offset), sizeof value);
}

static int open_file(struct bw_sys *sys, const char *name)
{
    char path[80];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/0000:02:00.0/%s", name);
    return sys->ops->open(sys, path, O_RDWR);
}

static int count_device(void *user, const struct bw_pci_id *id)
{
    BW_EQ(id->vendor_id, 0x1234);
    BW_EQ(id->device_id, 0x5678);
    return ++*(int *)user, 0;
}

static void configuration_space(void)
{
    struct bw_sys *sys = open_machine(2);
    int devices = 0;
    if (!sys)
        return;
    sys->ops->pci_scan(sys, count_device, &devices);
    BW_EQ(devices, 2);
    int fd = open_file(sys, "config");
    BW_EQ(config_read(sys, fd, 0), 0x56781234);
    config_write(sys, fd, 0, 0); /* read only */
    BW_EQ(config_read(sys, fd, 0), 0x56781234);
    BW_EQ(config_read(sys, fd, 8) >> 8, 0x0b4000);
    /* sizing: all ones come back with the size's low bits zero */
    uint32_t bar = config_read(sys, fd, 0x18);
    config_write(sys, fd, 0x18, 0xffffffff);
    BW_EQ(config_read(sys, fd, 0x18), 0xfff00000);
    config_write(sys, fd, 0x18, bar);
    config_write(sys, fd, 0x14, 0xffffffff);
    BW_EQ(config_read(sys, fd, 0x14), 0);
    BW_EQ(sys->ops->pread(sys, fd, &bar, 4, 256), 0);
    BW_EQ(sys->ops->pread(sys, fd, &bar, 4, 254), 2);
    sys->ops->close(sys, fd);
    BW_EQ(open_file(sys, "resource1"), -ENOENT);
    bw_sys_destroy(sys);
}

static void a_bar_answers_when_memory_decodes(void)
{
    struct bw_sys *sys = open_machine(2);
    struct bw_region region;
    if (!sys)
        return;
    int config = open_file(sys, "config"), resource = open_file(sys, "resource0");
    struct bw_map_request request = {.fd = resource, .size_bytes = 8192, .writable = true};
    BW_EQ(sys->ops->map(sys, &request, &region), -EINVAL);
    request.size_bytes = 4096;
    if (!BW_EQ(sys->ops->map(sys, &request, &region), 0))
        return;
    BW_EQ(bw_rd32(&region, 0), 0xffffffff);
    BW_EQ(bw_rd64(&region, 8), UINT64_MAX);
    bw_wr64(&region, 0, 99);
    config_write(sys, config, 4, 2);
    BW_EQ(bw_rd64(&region, 0), 7);
    bw_wr64(&region, 8, 0x1122334455667788);
    BW_EQ(bw_rd32(&region, 12), 0x11223344);
    sys->ops->unmap(sys, &region);
    sys->ops->close(sys, resource);
    sys->ops->close(sys, config);
    bw_sys_destroy(sys);
}

static void dma_needs_a_window_and_the_bus(void)
{
    struct bw_sys *sys = open_machine(2);
    struct bw_region region;
    char error[256];
    static _Alignas(4096) const uint64_t source[512] = {0xfeed};
    static const uint64_t read_only = 0x20000;
    uint64_t *target = aligned_alloc(4096, 4096);
    if (!sys || !target)
        return;
    int config = open_file(sys, "config"), resource = open_file(sys, "resource0");
    struct bw_map_request request = {.fd = resource, .size_bytes = 4096, .writable = true};
    BW_EQ(sys->ops->map(sys, &request, &region), 0);
    config_write(sys, config, 4, 2);
    BW_EQ(bw_mock_dma_map(sys, 1, read_only, (void *)(uintptr_t)source, 4096, false), 0);
    BW_EQ(bw_mock_dma_map(sys, 1, 0x10000, target, 4096, true), 0);
    BW_EQ(bw_mock_dma_map(sys, 1, 0x10000, target, 4096, true), -EINVAL);
    BW_EQ(bw_mock_dma_map(sys, 1, 0x30010, target, 4096, true), -EINVAL);
    BW_EQ(bw_mock_dma_map(sys, 2, 0x30000, target, 4096, true), -EINVAL);
    int fd = bw_mock_interrupt_fd(sys, 1, 3);
    BW_TRUE(fd >= 0);
    BW_EQ(bw_mock_interrupt_fd(sys, 1, 32), -EINVAL);
    target[1] = 0;
    bw_wr64(&region, 0, read_only);
    bw_wr64(&region, 8, 0x10008);
    bw_wr32(&region, 16, 3);
    BW_EQ((int32_t)bw_rd32(&region, 16), -EPERM);
    config_write(sys, config, 4, 6);
    bw_wr32(&region, 16, 3);
    BW_EQ((int32_t)bw_rd32(&region, 16), 0);
    BW_EQ(target[1], 0xfeed);
    struct bw_poll_request poll = {.fd = fd, .events = POLLIN};
    BW_EQ(sys->ops->poll(sys, &poll, 1, 1000000000), 1);
    uint64_t interrupts = 0;
    BW_EQ(sys->ops->read(sys, fd, &interrupts, sizeof interrupts), 8);
    BW_EQ(interrupts, 2);
    bw_wr64(&region, 8, read_only + 8); /* to the read-only window */
    bw_wr32(&region, 16, 3);
    BW_EQ((int32_t)bw_rd32(&region, 16), -EFAULT);
    bw_mock_pci_error(sys, error, sizeof error);
    BW_STR(error, "device 1: DMA to 0x20008: the window is read-only");
    BW_EQ(bw_mock_dma_unmap(sys, 1, read_only), 0);
    BW_EQ(bw_mock_dma_unmap(sys, 1, read_only), -ENOENT);
    bw_wr32(&region, 16, 4);
    BW_EQ((int32_t)bw_rd32(&region, 16), -EFAULT);
    bw_mock_pci_error(sys, error, sizeof error);
    BW_STR(error, "device 1: interrupt vector 4, which nobody asked for");
    sys->ops->close(sys, resource);
    sys->ops->close(sys, config);
    bw_sys_destroy(sys);
    free(target);
}

static int refuse_create(struct bw_mock_slot *slot, void **device)
{
    return -ENODEV;
}

static void bad_devices_are_refused(void)
{
    struct bw_mock_device_ops bad[4] = {echo_ops, echo_ops, echo_ops, echo_ops};
    static const int codes[] = {-EINVAL, -EINVAL, -EINVAL, -ENODEV};
    struct bw_sys *sys;
    struct bw_err err;
    bad[0].bar_bytes[1] = 3 << 20;
    bad[1].bar_bytes[1] = 32 << 20;
    bad[2].bar_read = NULL;
    bad[3].create = refuse_create;
    for (int i = 0; i < 4; i++) {
        const struct bw_mock_device_ops *devices[] = {&echo_ops, &bad[i]};
        BW_EQ(bw_mock_pci_create(devices, 2, &sys, &err), codes[i]);
        BW_TRUE(strstr(err.what, "device 1") != NULL);
    }
    BW_EQ(bw_mock_pci_create(NULL, 0, &sys, &err), -EINVAL);
}

BW_TEST_MAIN("mock.pci", {"configuration space", configuration_space},
             {"a BAR answers when memory decodes", a_bar_answers_when_memory_decodes},
             {"DMA needs a window and the bus", dma_needs_a_window_and_the_bus},
             {"bad devices are refused", bad_devices_are_refused})
