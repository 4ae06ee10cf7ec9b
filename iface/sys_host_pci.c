/* PCI enumeration through libpci. Its error callback must not return and is told of no caller. The scan
 * therefore runs on a thread whose stack we made: the callback finds the scan at the stack's far end and
 * jumps out, with no global and no exit. (pthread_exit would do, but needs libgcc_s at run time, which a
 * small guest lacks, and aborts without it.) */
#include "iface/sys_host.h"

#include <errno.h>
#include <pci/pci.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

#include "base/thread.h"
#include "base/vec.h"

/* libpci keeps a few KiB of path names on the stack; the sanitizers a good deal more. */
#define STACK_BYTES     (1u << 20)
#define STACK_ALIGNMENT 65536u /* the largest page size of any Linux */

struct scan {
    struct pci_access *access;
    jmp_buf failed;
    BW_VEC(struct bw_pci_id) found;
    int rc;
    bool finished;
};

static void scan_failed(char *message, ...) __attribute__((format(printf, 1, 2), noreturn));

static void scan_failed(char *message, ...)
{
    pthread_attr_t attributes;
    void *stack = NULL;
    size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &size);
    pthread_attr_destroy(&attributes);
    struct scan *scan = *(struct scan **)stack;
    longjmp(scan->failed, 1);
}

static void ignore_message(char *message, ...) __attribute__((format(printf, 1, 2)));

static void ignore_message(char *message, ...)
{
}

static bool to_id(struct pci_dev *device, struct bw_pci_id *id)
{
    pci_fill_info(device, PCI_FILL_IDENT | PCI_FILL_CLASS | PCI_FILL_CLASS_EXT | PCI_FILL_SUBSYS);
    /* Domains above 16 bits are made up by the VMD driver for storage behind it: no GPU is there. */
    if (device->domain < 0 || device->domain > UINT16_MAX)
        return false;
    *id = (struct bw_pci_id){
        .domain = (uint16_t)device->domain,
        .bus = device->bus,
        .device = device->dev,
        .function = device->func,
        .vendor_id = device->vendor_id,
        .device_id = device->device_id,
        .subsystem_vendor_id = device->subsys_vendor_id,
        .subsystem_id = device->subsys_id,
        .revision = device->rev_id,
        .class_code = (uint32_t)device->device_class << 8 | device->prog_if,
    };
    return true;
}

static void *scan_thread(void *argument)
{
    struct scan *scan = argument;
    if (setjmp(scan->failed))
        return NULL;
    pci_init(scan->access);
    pci_scan_bus(scan->access);
    for (struct pci_dev *device = scan->access->devices; device && !scan->rc; device = device->next) {
        struct bw_pci_id id;
        if (to_id(device, &id))
            scan->rc = bw_vec_push(&scan->found, id);
    }
    scan->finished = true;
    return NULL;
}

static uint64_t position(const struct bw_pci_id *id)
{
    return (uint64_t)id->domain << 24 | (uint64_t)id->bus << 16 | (uint64_t)id->device << 8 | id->function;
}

static int by_position(const void *a, const void *b)
{
    uint64_t x = position(a), y = position(b);
    return x < y ? -1 : x > y;
}

static int run_scan(struct scan *scan)
{
    struct scan **stack = aligned_alloc(STACK_ALIGNMENT, STACK_BYTES);
    pthread_attr_t attributes;
    pthread_t thread;
    if (!stack || pthread_attr_init(&attributes)) {
        free(stack);
        return -ENOMEM;
    }
    *stack = scan;
    int rc = -pthread_attr_setstack(&attributes, stack, STACK_BYTES);
    if (!rc)
        rc = bw_thread_create(&thread, &attributes, scan_thread, scan);
    if (!rc)
        rc = -pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    free(stack);
    /* Not finished: libpci found no way to look at the bus (/sys and /proc are missing), or a device went
     * away under it. */
    return rc || scan->finished ? rc : -ENODEV;
}

int bw_sys_host_pci_scan(int (*found)(void *user, const struct bw_pci_id *id), void *user)
{
    struct scan scan = {.access = pci_alloc()};
    if (!scan.access)
        return -ENOMEM;
    scan.access->error = scan_failed;
    scan.access->warning = ignore_message;
    scan.access->debug = ignore_message;
    int rc = run_scan(&scan);
    rc = rc ? rc : scan.rc;
    pci_cleanup(scan.access);
    if (!rc && scan.found.count)
        qsort(scan.found.data, scan.found.count, sizeof scan.found.data[0], by_position);
    for (size_t i = 0; !rc && i < scan.found.count; i++)
        rc = found(user, &scan.found.data[i]);
    bw_vec_free(&scan.found);
    return rc;
}
