/* A complete mock device: a "GPU" whose only packet is a fence, and below it a client that drives it.
 *
 *     null_gpu          submits fences through the ring, prints what came back
 *
 * The device sees register accesses, DMA addresses and nothing else. */
#include <stdio.h>
#include <stdlib.h>

#include <bellwire/mock_device.h>

/* BAR 0. A packet is 16 bytes: opcode, value, address; a fence writes value at address when it retires. */
enum { REG_ID = 0, REG_STATUS = 4, REG_RING = 8, REG_PACKETS = 16, REG_READ = 20, REG_DOORBELL = 24 };
enum { ID = 0x4e554c4c, STATUS_ERROR = 1, OPCODE_FENCE = 1, PACKETS_MAX = 1 << 16, BAR_BYTES = 4096 };

struct packet {
    uint32_t opcode, value;
    uint64_t address;
};

struct gpu {
    struct bw_mock_slot *slot;
    uint64_t ring;
    uint32_t status, packets, read;
};

static int gpu_create(struct bw_mock_slot *slot, void **device)
{
    struct gpu *gpu = *device = calloc(1, sizeof *gpu);
    if (gpu)
        gpu->slot = slot;
    return gpu ? 0 : -1;
}

static void gpu_reset(void *device)
{
    struct gpu *gpu = device;
    *gpu = (struct gpu){.slot = gpu->slot};
}

/* Runs one packet; false stops the device, which shows an error until it is reset. */
static bool gpu_execute(struct gpu *gpu)
{
    struct packet packet;
    uint64_t at = gpu->ring + gpu->read % gpu->packets * sizeof packet;
    if (bw_mock_dma_read(gpu->slot, at, &packet, sizeof packet))
        return false;
    if (packet.opcode == OPCODE_FENCE)
        return !bw_mock_dma_write(gpu->slot, packet.address, &packet.value, sizeof packet.value);
    bw_mock_complain(gpu->slot, "packet %u: unknown opcode %u", gpu->read, packet.opcode);
    return false;
}

static void gpu_doorbell(struct gpu *gpu, uint32_t write)
{
    bool fits = gpu->packets && write - gpu->read <= gpu->packets, good = fits && !gpu->status;
    if (!fits)
        bw_mock_complain(gpu->slot, "doorbell %u: read %u of a ring of %u", write, gpu->read, gpu->packets);
    for (; good && gpu->read != write; gpu->read += good)
        good = gpu_execute(gpu);
    gpu->status = good ? 0 : STATUS_ERROR;
    bw_mock_interrupt(gpu->slot, 0);
}

static uint64_t gpu_read(void *device, uint32_t bar, uint64_t offset, uint32_t width_bytes)
{
    const struct gpu *gpu = device;
    return offset == REG_ID ? ID : offset == REG_STATUS ? gpu->status : offset == REG_READ ? gpu->read : 0;
}

static void gpu_write(void *device, uint32_t bar, uint64_t offset, uint32_t width_bytes, uint64_t value)
{
    struct gpu *gpu = device;
    if (offset == REG_RING && width_bytes == 8)
        gpu->ring = value;
    else if (offset == REG_PACKETS && value && value <= PACKETS_MAX)
        gpu->packets = (uint32_t)value;
    else if (offset == REG_DOORBELL)
        gpu_doorbell(gpu, (uint32_t)value);
    else
        bw_mock_complain(gpu->slot, "write of %u bytes to register 0x%x", width_bytes, (unsigned)offset);
}

static const struct bw_mock_device_ops null_gpu = {.size = sizeof null_gpu,
                                                   .vendor_id = 0x1234,
                                                   .device_id = 0x0001,
                                                   .class_code = 0x120000,
                                                   .bar_bytes = {BAR_BYTES},
                                                   .create = gpu_create,
                                                   .destroy = free,
                                                   .reset = gpu_reset,
                                                   .bar_read = gpu_read,
                                                   .bar_write = gpu_write};

/* ---- the client: finds it on PCI, maps BAR 0, gives it memory, rings its doorbell ---- */

enum { MEMORY_BYTES = 8192, FENCES_OFFSET = 4096, RING_PACKETS = 8, SUBMITS = 20, MEMORY_AND_MASTER = 6 };
#define DMA_ADDRESS 0x100000000ull

static int drive(struct bw_sys *sys, const struct bw_region *bar, struct packet *ring)
{
    volatile uint32_t *fence = (uint32_t *)((char *)ring + FENCES_OFFSET);
    bw_wr64(bar, REG_RING, DMA_ADDRESS);
    bw_wr32(bar, REG_PACKETS, RING_PACKETS);
    for (uint32_t i = 0; i < SUBMITS; i++) {
        ring[i % RING_PACKETS] = (struct packet){OPCODE_FENCE, i + 1, DMA_ADDRESS + FENCES_OFFSET};
        bw_wr32(bar, REG_DOORBELL, i + 1);
    }
    printf("null_gpu: id 0x%08x, %u of %u packets retired, fence %u\n", bw_rd32(bar, REG_ID),
           bw_rd32(bar, REG_READ), SUBMITS, *fence);
    ring[SUBMITS % RING_PACKETS].opcode = 99;
    bw_wr32(bar, REG_DOORBELL, SUBMITS + 1);
    char error[128];
    bw_mock_pci_error(sys, error, sizeof error);
    printf("null_gpu: status %u after a bad packet: %s\n", bw_rd32(bar, REG_STATUS), error);
    return *fence == SUBMITS && bw_rd32(bar, REG_STATUS) == STATUS_ERROR ? 0 : 1;
}

int main(void)
{
    const struct bw_mock_device_ops *devices[] = {&null_gpu};
    const uint16_t command = MEMORY_AND_MASTER;
    struct bw_sys *sys;
    struct bw_err err;
    struct bw_region bar, memory;
    if (bw_mock_pci_create(devices, 1, &sys, &err)) {
        char line[600];
        bw_err_format(&err, line, sizeof line);
        fprintf(stderr, "null_gpu: %s\n", line);
        return 1;
    }
    int config = sys->ops->open(sys, "/sys/bus/pci/devices/0000:01:00.0/config", 2);
    int resource = sys->ops->open(sys, "/sys/bus/pci/devices/0000:01:00.0/resource0", 2);
    struct bw_map_request whole_bar = {.fd = resource, .size_bytes = BAR_BYTES, .writable = true};
    struct bw_map_request pages = {.fd = -1, .size_bytes = MEMORY_BYTES, .writable = true};
    int rc = 1;
    if (sys->ops->pwrite(sys, config, &command, sizeof command, 4) == sizeof command &&
        !sys->ops->map(sys, &whole_bar, &bar) && !sys->ops->map(sys, &pages, &memory) &&
        !bw_mock_dma_map(sys, 0, DMA_ADDRESS, (void *)memory.base, MEMORY_BYTES, true) &&
        bw_mock_interrupt_fd(sys, 0, 0) >= 0)
        rc = drive(sys, &bar, (struct packet *)memory.base);
    sys->ops->close(sys, config);
    sys->ops->close(sys, resource);
    bw_sys_destroy(sys);
    return rc;
}
