/* How to write a mock PCI device: a table of functions that answer register accesses, and the services that
 * its machine gives it. One message interface: config space, BARs, DMA, interrupts; no pointer of the
 * client's ever reaches the device. samples/null_gpu.c is a complete one.
 *
 * The machine is a struct bw_sys: its devices are found by pci_scan and below
 * /sys/bus/pci/devices/DDDD:BB:DD.F, where `config` is read and written with pread and pwrite, and
 * `resourceN` is mapped: accesses of the mapped region are calls into the device. */
#ifndef BW_MOCK_DEVICE_H
#define BW_MOCK_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>
#include <bellwire/sys.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BW_MOCK_BARS = 6,
    BW_MOCK_BAR_BYTES_MAX = 16 << 20, /* so that the BARs of all devices fit between 2 and 4 GiB */
    BW_MOCK_DEVICES_MAX = 16,         /* of one machine, for the same reason */
    BW_MOCK_VECTORS_MAX = 32,
};

/* The machine's side of a device: what it is given at creation, and hands to the services below. */
struct bw_mock_slot;

struct bw_mock_device_ops {
    uint64_t size; /* sizeof this struct */
    uint16_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
    uint8_t revision;
    uint32_t class_code;              /* 24 bits */
    uint64_t bar_bytes[BW_MOCK_BARS]; /* 0: none; else a power of two from 4 KiB up; 32-bit memory BARs */

    /* *device is handed to every other call. 0 or -errno. */
    int (*create)(struct bw_mock_slot *slot, void **device);
    void (*destroy)(void *device);
    /* Power-on state again: also called once after create. */
    void (*reset)(void *device);
    /* width_bytes is 4 or 8; offset is aligned to it and inside the BAR. Called on the client's thread, one
     * call at a time per device; it may use the services. */
    uint64_t (*bar_read)(void *device, uint32_t bar, uint64_t offset, uint32_t width_bytes);
    void (*bar_write)(void *device, uint32_t bar, uint64_t offset, uint32_t width_bytes, uint64_t value);
};

/* A machine with these devices, at 0000:01:00.0 and up. Ends with bw_sys_destroy, which destroys the devices.
 * -EINVAL names what is wrong with a device's table; what create returned. */
int bw_mock_pci_create(const struct bw_mock_device_ops *const *devices, uint32_t count, struct bw_sys **sys,
                       struct bw_err *err);

/* Services to the device. DMA needs bus mastering (command register) and a window that the client mapped.
 * -EFAULT: not mapped, or not with that right; -EPERM: bus mastering is off. Nothing is touched then, and the
 * error is recorded. */
int bw_mock_dma_read(struct bw_mock_slot *slot, uint64_t address, void *data, uint64_t size_bytes);
int bw_mock_dma_write(struct bw_mock_slot *slot, uint64_t address, const void *data, uint64_t size_bytes);
/* Raises vector: its counter goes up, and whoever polls the descriptor wakes. */
void bw_mock_interrupt(struct bw_mock_slot *slot, uint32_t vector);
/* Names what a client did wrong, for bw_mock_pci_error. */
void bw_mock_complain(struct bw_mock_slot *slot, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Services to the client, in the place of an IOMMU and of interrupt set-up; `device` is the index given at
 * creation. Maps size_bytes of the client's memory at the device's address. -EINVAL: not whole pages, or it
 * overlaps. */
int bw_mock_dma_map(struct bw_sys *sys, uint32_t device, uint64_t address, void *memory, uint64_t size_bytes,
                    bool writable);
/* The window that starts at address; no access is under way when this returns. -ENOENT: none. */
int bw_mock_dma_unmap(struct bw_sys *sys, uint32_t device, uint64_t address);
/* An eventfd that counts the vector's interrupts, for poll and read of the machine's sys. Owned by the
 * machine. -EINVAL. */
int bw_mock_interrupt_fd(struct bw_sys *sys, uint32_t device, uint32_t vector);
/* The last complaint, or "". Copied. */
void bw_mock_pci_error(struct bw_sys *sys, char *text, uint32_t text_size);

#ifdef __cplusplus
}
#endif
#endif
