/* The in-process host of mock PCI devices. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <bellwire/mock_device.h>

#include "base/bits.h"
#include "base/text.h"
#include "mock/pass.h"
#include "mock/pci/config.h"
#include "mock/space.h"
#include "mock/tree.h"

enum {
    FIRST_BUS = 1, /* a bus for each device, from this one on */
    PAGE = 4096,
    ERROR_BYTES = 256,
};

struct bw_mock_slot {
    struct machine *machine;
    const struct bw_mock_device_ops *ops;
    void *device;
    uint32_t index;
    pthread_mutex_t lock; /* one access at a time */
    struct bw_mock_config_space config;
    struct bw_mock_space windows;        /* what DMA reaches */
    int interrupts[BW_MOCK_VECTORS_MAX]; /* eventfds; -1: not asked for */
};

/* A descriptor of a config file. */
struct file {
    int fd;
    struct bw_mock_slot *slot;
    bool resource;
    uint32_t bar;
};

/* What a mapped BAR's region points at. */
struct window {
    struct bw_mock_slot *slot;
    uint32_t bar;
};

struct machine {
    struct bw_mock_base base;
    pthread_mutex_t lock; /* files and error */
    struct bw_mock_tree tree;
    uint32_t count;
    struct bw_mock_slot *slots;
    struct window *bars; /* BW_MOCK_BARS per slot */
    BW_VEC(struct file) files;
    char error[ERROR_BYTES];
};

static struct machine *machine_of(struct bw_sys *sys)
{
    return (struct machine *)sys;
}

void bw_mock_complain(struct bw_mock_slot *slot, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&slot->machine->lock);
    int used = snprintf(slot->machine->error, ERROR_BYTES, "device %u: ", slot->index);
    vsnprintf(slot->machine->error + used, ERROR_BYTES - (size_t)used, format, arguments);
    pthread_mutex_unlock(&slot->machine->lock);
    va_end(arguments);
}

void bw_mock_pci_error(struct bw_sys *sys, char *text, uint32_t text_size)
{
    struct machine *machine = machine_of(sys);
    pthread_mutex_lock(&machine->lock);
    snprintf(text, text_size, "%s", machine->error);
    pthread_mutex_unlock(&machine->lock);
}

static int dma_allowed(struct bw_mock_slot *slot, uint64_t address)
{
    if (bw_mock_config_bus_master(&slot->config))
        return 0;
    bw_mock_complain(slot, "DMA to 0x%llx with bus mastering off", (unsigned long long)address);
    return -EPERM;
}

static int dma_outcome(struct bw_mock_slot *slot, int rc, const struct bw_mock_violation *violation)
{
    if (rc)
        bw_mock_complain(slot, "DMA to 0x%llx: %s", (unsigned long long)violation->va,
                         violation->mapped ? "the window is read-only" : "no window is mapped there");
    return rc;
}

int bw_mock_dma_read(struct bw_mock_slot *slot, uint64_t address, void *data, uint64_t size_bytes)
{
    struct bw_mock_violation violation;
    int rc = dma_allowed(slot, address);
    return rc ? rc
              : dma_outcome(slot, bw_mock_space_read(&slot->windows, address, data, size_bytes, &violation),
                            &violation);
}

int bw_mock_dma_write(struct bw_mock_slot *slot, uint64_t address, const void *data, uint64_t size_bytes)
{
    struct bw_mock_violation violation;
    int rc = dma_allowed(slot, address);
    return rc ? rc
              : dma_outcome(slot, bw_mock_space_write(&slot->windows, address, data, size_bytes, &violation),
                            &violation);
}

void bw_mock_interrupt(struct bw_mock_slot *slot, uint32_t vector)
{
    uint64_t one = 1;
    int fd = vector < BW_MOCK_VECTORS_MAX ? __atomic_load_n(&slot->interrupts[vector], __ATOMIC_ACQUIRE) : -1;
    if (fd < 0)
        bw_mock_complain(slot, "interrupt vector %u, which nobody asked for", vector);
    else if (write(fd, &one, sizeof one) != sizeof one)
        bw_mock_complain(slot, "interrupt vector %u overflows", vector);
}

static struct bw_mock_slot *slot_at(struct bw_sys *sys, uint32_t device)
{
    struct machine *machine = machine_of(sys);
    return device < machine->count ? &machine->slots[device] : NULL;
}

int bw_mock_dma_map(struct bw_sys *sys, uint32_t device, uint64_t address, void *memory, uint64_t size_bytes,
                    bool writable)
{
    struct bw_mock_slot *slot = slot_at(sys, device);
    if (!slot || !memory || !size_bytes || size_bytes % PAGE || address % PAGE ||
        address + size_bytes <= address)
        return -EINVAL;
    return bw_mock_space_map(&slot->windows, &(struct bw_mock_mapping){
                                                 .va = address,
                                                 .size = size_bytes,
                                                 .host = memory,
                                                 .access = BW_MOCK_READ | (writable ? BW_MOCK_WRITE : 0),
                                             });
}

int bw_mock_dma_unmap(struct bw_sys *sys, uint32_t device, uint64_t address)
{
    struct bw_mock_slot *slot = slot_at(sys, device);
    return slot ? bw_mock_space_unmap(&slot->windows, address) : -ENOENT;
}

int bw_mock_interrupt_fd(struct bw_sys *sys, uint32_t device, uint32_t vector)
{
    struct bw_mock_slot *slot = slot_at(sys, device);
    if (!slot || vector >= BW_MOCK_VECTORS_MAX)
        return -EINVAL;
    pthread_mutex_lock(&slot->machine->lock);
    int fd = slot->interrupts[vector];
    if (fd < 0) {
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        __atomic_store_n(&slot->interrupts[vector], fd, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&slot->machine->lock);
    return fd < 0 ? -errno : fd;
}

static uint64_t bar_read(void *user, uint64_t offset, uint32_t width_bytes)
{
    const struct window *window = user;
    struct bw_mock_slot *slot = window->slot;
    uint64_t value = UINT64_MAX; /* what a device that does not decode memory leaves on the bus */
    pthread_mutex_lock(&slot->lock);
    if (bw_mock_config_memory(&slot->config))
        value = slot->ops->bar_read(slot->device, window->bar, offset, width_bytes);
    pthread_mutex_unlock(&slot->lock);
    return width_bytes == 4 ? (uint32_t)value : value;
}

static void bar_write(void *user, uint64_t offset, uint32_t width_bytes, uint64_t value)
{
    const struct window *window = user;
    struct bw_mock_slot *slot = window->slot;
    pthread_mutex_lock(&slot->lock);
    if (bw_mock_config_memory(&slot->config))
        slot->ops->bar_write(slot->device, window->bar, offset, width_bytes, value);
    pthread_mutex_unlock(&slot->lock);
}

static const struct bw_region_ops bar_ops = {bar_read, bar_write};

static bool file_at(struct machine *machine, int fd, struct file *found)
{
    bool any = false;
    pthread_mutex_lock(&machine->lock);
    for (size_t i = 0; i < machine->files.count && !any; i++) {
        any = machine->files.data[i].fd == fd;
        if (any)
            *found = machine->files.data[i];
    }
    pthread_mutex_unlock(&machine->lock);
    return any;
}

/* CONFIG and RESOURCE nodes have slot * BW_MOCK_BARS + BAR as their index. */
static int pci_open(struct bw_sys *sys, const char *path, int flags)
{
    struct machine *machine = machine_of(sys);
    char resolved[BW_MOCK_PATH_BYTES];
    bw_mock_count(sys);
    if (!bw_mock_tree_resolve(&machine->tree, path, resolved))
        return -ENAMETOOLONG;
    if (!bw_mock_tree_owns(resolved))
        return machine->base.host->ops->open(machine->base.host, path, flags);
    const struct bw_mock_node *node = bw_mock_tree_find(&machine->tree, resolved);
    if (!node)
        return -ENOENT;
    int fd = bw_mock_open_text(node);
    if (fd < 0 || node->kind == BW_MOCK_NODE_TEXT)
        return fd;
    struct file file = {
        .fd = fd, .slot = &machine->slots[node->index / BW_MOCK_BARS], .bar = node->index % BW_MOCK_BARS};
    file.resource = node->kind == BW_MOCK_NODE_RESOURCE;
    pthread_mutex_lock(&machine->lock);
    int rc = bw_vec_push(&machine->files, file);
    pthread_mutex_unlock(&machine->lock);
    if (rc)
        close(fd);
    return rc ? rc : fd;
}

static int pci_close(struct bw_sys *sys, int fd)
{
    struct machine *machine = machine_of(sys);
    bw_mock_count(sys);
    pthread_mutex_lock(&machine->lock);
    for (size_t i = 0; i < machine->files.count; i++) {
        if (machine->files.data[i].fd == fd)
            machine->files.data[i] = machine->files.data[--machine->files.count];
    }
    pthread_mutex_unlock(&machine->lock);
    return machine->base.host->ops->close(machine->base.host, fd);
}

static int64_t pci_pread(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes, uint64_t offset)
{
    struct file file;
    if (!file_at(machine_of(sys), fd, &file) || file.resource)
        return bw_mock_pass_pread(sys, fd, data, size_bytes, offset);
    bw_mock_count(sys);
    pthread_mutex_lock(&file.slot->lock);
    int64_t done = bw_mock_config_read(&file.slot->config, data, size_bytes, offset);
    pthread_mutex_unlock(&file.slot->lock);
    return done;
}

static int64_t pci_pwrite(struct bw_sys *sys, int fd, const void *data, uint64_t size_bytes, uint64_t offset)
{
    struct file file;
    if (!file_at(machine_of(sys), fd, &file) || file.resource)
        return bw_mock_pass_pwrite(sys, fd, data, size_bytes, offset);
    bw_mock_count(sys);
    pthread_mutex_lock(&file.slot->lock);
    int64_t done = bw_mock_config_write(&file.slot->config, data, size_bytes, offset);
    pthread_mutex_unlock(&file.slot->lock);
    return done;
}

static int pci_map(struct bw_sys *sys, const struct bw_map_request *request, struct bw_region *region)
{
    struct machine *machine = machine_of(sys);
    struct file file;
    bw_mock_count(sys);
    if (request->fd < 0 || !file_at(machine, request->fd, &file))
        return machine->base.host->ops->map(machine->base.host, request, region);
    uint64_t bytes = file.resource ? file.slot->ops->bar_bytes[file.bar] : 0;
    if (request->offset || !request->size_bytes || request->size_bytes > bytes)
        return -EINVAL;
    *region = (struct bw_region){
        .size_bytes = request->size_bytes,
        .memory_type = BW_MEMORY_UNCACHED,
        .ops = &bar_ops,
        .user = &machine->bars[file.slot->index * BW_MOCK_BARS + file.bar],
    };
    return 0;
}

static int pci_unmap(struct bw_sys *sys, struct bw_region *region)
{
    struct machine *machine = machine_of(sys);
    bw_mock_count(sys);
    if (region->ops != &bar_ops)
        return machine->base.host->ops->unmap(machine->base.host, region);
    *region = (struct bw_region){0};
    return 0;
}

static int pci_list(struct bw_sys *sys, const char *path, int (*entry)(void *user, const char *name),
                    void *user)
{
    struct machine *machine = machine_of(sys);
    char resolved[BW_MOCK_PATH_BYTES];
    bw_mock_count(sys);
    if (!bw_mock_tree_resolve(&machine->tree, path, resolved))
        return -ENAMETOOLONG;
    if (!bw_mock_tree_owns(resolved))
        return machine->base.host->ops->list(machine->base.host, path, entry, user);
    return bw_mock_tree_list(&machine->tree, resolved, entry, user);
}

static int pci_scan(struct bw_sys *sys, int (*found)(void *user, const struct bw_pci_id *id), void *user)
{
    struct machine *machine = machine_of(sys);
    bw_mock_count(sys);
    for (uint32_t i = 0; i < machine->count; i++) {
        const struct bw_mock_device_ops *ops = machine->slots[i].ops;
        struct bw_pci_id id = {
            .bus = (uint8_t)(FIRST_BUS + i),
            .vendor_id = ops->vendor_id,
            .device_id = ops->device_id,
            .subsystem_vendor_id = ops->subsystem_vendor_id,
            .subsystem_id = ops->subsystem_id,
            .revision = ops->revision,
            .class_code = ops->class_code,
        };
        int rc = found(user, &id);
        if (rc)
            return rc;
    }
    return 0;
}

static void machine_free(struct machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        struct bw_mock_slot *slot = &machine->slots[i];
        if (slot->device)
            slot->ops->destroy(slot->device);
        for (uint32_t v = 0; v < BW_MOCK_VECTORS_MAX; v++) {
            if (slot->interrupts[v] >= 0)
                close(slot->interrupts[v]);
        }
        bw_mock_space_fini(&slot->windows);
        pthread_mutex_destroy(&slot->lock);
    }
    for (size_t i = 0; i < machine->files.count; i++)
        close(machine->files.data[i].fd);
    bw_vec_free(&machine->files);
    bw_mock_tree_free(&machine->tree);
    if (machine->base.host)
        bw_sys_destroy(machine->base.host);
    pthread_mutex_destroy(&machine->lock);
    free(machine->slots);
    free(machine->bars);
    free(machine);
}

static void pci_destroy(struct bw_sys *sys)
{
    machine_free(machine_of(sys));
}

static const struct bw_sys_ops pci_sys_ops = {
    .open = pci_open,
    .close = pci_close,
    .read = bw_mock_pass_read,
    .write = bw_mock_pass_write,
    .pread = pci_pread,
    .pwrite = pci_pwrite,
    .ioctl = bw_mock_pass_ioctl,
    .map = pci_map,
    .unmap = pci_unmap,
    .protect = bw_mock_pass_protect,
    .poll = bw_mock_pass_poll,
    .list = pci_list,
    .clock_ns = bw_mock_pass_clock_ns,
    .sleep_ns = bw_mock_pass_sleep_ns,
    .lock = bw_mock_pass_lock,
    .pci_scan = pci_scan,
    .size = bw_mock_pass_size,
    .ring_open = bw_mock_pass_ring_open,
    .destroy = pci_destroy,
};

static int check_ops(const struct bw_mock_device_ops *ops, uint32_t index, struct bw_err *err)
{
    if (!ops || ops->size < sizeof *ops || !ops->create || !ops->destroy || !ops->reset || !ops->bar_read ||
        !ops->bar_write)
        return bw_fail(err, -EINVAL, "mock", "device %u: a function or the size is missing", index);
    for (uint32_t bar = 0; bar < BW_MOCK_BARS; bar++) {
        uint64_t bytes = ops->bar_bytes[bar];
        if (bytes && (!bw_is_pow2(bytes) || bytes < PAGE || bytes > BW_MOCK_BAR_BYTES_MAX))
            return bw_fail(err, -EINVAL, "mock", "device %u: BAR %u of 0x%llx bytes", index, bar,
                           (unsigned long long)bytes);
    }
    return 0;
}

/* The resource file: a line per BAR, first and last address and flags, as sysfs prints it. */
static void add_files(struct machine *machine, struct bw_mock_slot *slot)
{
    const struct bw_mock_device_ops *ops = slot->ops;
    struct bw_mock_tree *tree = &machine->tree;
    struct bw_text resource = {0};
    char device[64], text[32];
    const struct {
        const char *name, *format;
        unsigned value;
    } files[] = {
        {"vendor", "0x%04x\n", ops->vendor_id},
        {"device", "0x%04x\n", ops->device_id},
        {"subsystem_vendor", "0x%04x\n", ops->subsystem_vendor_id},
        {"subsystem_device", "0x%04x\n", ops->subsystem_id},
        {"revision", "0x%02x\n", ops->revision},
        {"class", "0x%06x\n", ops->class_code},
        {"enable", "%u\n", 0},
    };
    snprintf(device, sizeof device, "/sys/bus/pci/devices/0000:%02x:00.0", FIRST_BUS + slot->index);
    for (size_t i = 0; i < BW_COUNT_OF(files); i++) {
        snprintf(text, sizeof text, files[i].format, files[i].value);
        bw_mock_tree_add_text(tree, text, "%s/%s", device, files[i].name);
    }
    bw_mock_tree_add_device(tree, BW_MOCK_NODE_CONFIG, slot->index * BW_MOCK_BARS, "%s/config", device);
    for (uint32_t bar = 0; bar < BW_MOCK_BARS; bar++) {
        uint64_t base = bw_mock_config_bar(&slot->config, bar), bytes = ops->bar_bytes[bar];
        bw_text_add(&resource, "0x%016llx 0x%016llx 0x%016x\n", (unsigned long long)base,
                    (unsigned long long)(bytes ? base + bytes - 1 : 0), bytes ? 0x40200u : 0);
        if (bytes)
            bw_mock_tree_add_device(tree, BW_MOCK_NODE_RESOURCE, slot->index * BW_MOCK_BARS + bar,
                                    "%s/resource%u", device, bar);
    }
    bw_mock_tree_add_text(tree, bw_text_string(&resource), "%s/resource", device);
    bw_text_free(&resource);
}

static int open_slot(struct machine *machine, uint32_t index, struct bw_err *err)
{
    struct bw_mock_slot *slot = &machine->slots[index];
    bw_mock_config_init(&slot->config, slot->ops, index);
    int rc = slot->ops->create(slot, &slot->device);
    if (rc) {
        slot->device = NULL;
        return bw_fail(err, rc, "mock", "device %u: create", index);
    }
    slot->ops->reset(slot->device);
    add_files(machine, slot);
    return 0;
}

static struct machine *machine_create(const struct bw_mock_device_ops *const *devices, uint32_t count)
{
    struct machine *machine = calloc(1, sizeof *machine);
    struct bw_mock_slot *slots = calloc(count, sizeof *slots);
    struct window *bars = calloc((size_t)count * BW_MOCK_BARS, sizeof *bars);
    if (!machine || !slots || !bars) {
        free(machine);
        free(slots);
        free(bars);
        return NULL;
    }
    machine->base.sys.ops = &pci_sys_ops;
    machine->slots = slots;
    machine->bars = bars;
    machine->count = count;
    pthread_mutex_init(&machine->lock, NULL);
    for (uint32_t i = 0; i < count; i++) {
        slots[i].machine = machine;
        slots[i].ops = devices[i];
        slots[i].index = i;
        pthread_mutex_init(&slots[i].lock, NULL);
        bw_mock_space_init(&slots[i].windows, 0);
        memset(slots[i].interrupts, -1, sizeof slots[i].interrupts);
        for (uint32_t bar = 0; bar < BW_MOCK_BARS; bar++)
            bars[i * BW_MOCK_BARS + bar] = (struct window){&slots[i], bar};
    }
    return machine;
}

int bw_mock_pci_create(const struct bw_mock_device_ops *const *devices, uint32_t count, struct bw_sys **sys,
                       struct bw_err *err)
{
    *sys = NULL;
    if (!count || count > BW_MOCK_DEVICES_MAX)
        return bw_fail(err, -EINVAL, "mock", "%u devices, from 1 to %d", count, BW_MOCK_DEVICES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        int rc = check_ops(devices[i], i, err);
        if (rc)
            return rc;
    }
    struct machine *machine = machine_create(devices, count);
    if (!machine)
        return bw_fail(err, -ENOMEM, "mock", "machine");
    int rc = bw_sys_host_create(&machine->base.host);
    if (rc)
        bw_fail(err, rc, "mock", "host calls");
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = open_slot(machine, i, err);
    if (!rc && (rc = bw_mock_tree_finish(&machine->tree)))
        bw_fail(err, rc, "mock", "files");
    if (rc) {
        machine_free(machine);
        return rc;
    }
    *sys = &machine->base.sys;
    return 0;
}
