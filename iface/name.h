/* Names of devices:
 *
 *     [iface+]driver[:index or :DDDD:BB:DD.F][@arch[*count][,key=value]...]
 *
 * amd   amd:1   kfd+amd   drm+amd   pci+amd:0000:83:00.0   vfio+amd   rm+nv   kgsl+qcom   host   host:2
 * disk:PATH null mockkfd+amd@gfx1100   mockkfd+amd:3@gfx1100*8   mockkfd+amd@gfx1100,cu=2,vram=1G
 *
 * An interface whose name starts with "mock" is the same interface code on a mock GPU; only those take *count
 * (how many GPUs the mock machine has; index chooses one) and key=value: cu (compute units), vram and bar
 * (sizes), xgmi (copy engines for links between GPUs), nodes (of the
 * machine's memory, with their share of the GPUs each), seed, jitter (engines of random speed, of that seed).
 * On a real device @arch is a requirement. In the path of a disk, a comma is written \, and a backslash \\.
 */
#ifndef BW_IFACE_NAME_H
#define BW_IFACE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bellwire/err.h>

enum bw_name_where {
    BW_NAME_FIRST, /* no index given: the first that fits */
    BW_NAME_INDEX,
    BW_NAME_PCI,
};

enum {
    BW_NAME_GPUS_MAX =
        64, /* of one mock machine: more than any board, few enough to open them all in a test */
    BW_NAME_DEVICES_MAX = 64,      /* of one list */
    BW_NAME_XGMI_ENGINES_MAX = 14, /* the most that a GPU has: gfx942 */
    BW_NAME_NODES_MAX = 8,         /* of a machine's memory: two sockets, four nodes in each */
    BW_NAME_TEXT_MAX =
        640, /* of one canonical name with its NUL: a path of 255 bytes, all of them escaped, fits */
};

struct bw_device_name {
    char iface[16];  /* "kfd", "mockkfd", ...; empty: any */
    char driver[16]; /* "amd", "nv", "qcom", "host", "disk", "null" */
    bool mock;
    enum bw_name_where where;
    uint32_t index;
    uint16_t pci_domain;
    uint8_t pci_bus, pci_device, pci_function;
    char arch[24];     /* empty: any */
    uint32_t count;    /* GPUs of the mock machine, 1 unless said otherwise */
    uint32_t cu_count; /* this and the rest: 0 when not given */
    uint32_t xgmi_engines, nodes;
    uint64_t vram_bytes, bar_bytes, seed, jitter;
    char path[256]; /* of a disk */
};

/* The whole text is one name. -EINVAL: err says at which position (counted from 1) and what was expected;
 * -ENAMETOOLONG: a part does not fit. */
int bw_device_name_parse(const char *text, struct bw_device_name *name, struct bw_err *err);

/* Names separated by commas; a comma before key=value belongs to the name it follows. A mock with a count and
 * no index stands for all its GPUs, one name each. -E2BIG: more than capacity. */
int bw_device_name_parse_list(const char *text, struct bw_device_name *names, uint32_t capacity,
                              uint32_t *count, struct bw_err *err);

/* What the text of `bellwire mock --gpu` says, ARCH[*N][,key=value]..., as a name of interface "mockkfd" for
 * the driver that the architecture belongs to (gfx*: amd; others are refused). */
int bw_device_name_parse_gpu(const char *text, struct bw_device_name *name, struct bw_err *err);

/* Canonical text; parsing it gives the same name again. Returns the length needed, like snprintf, or -ENOMEM.
 */
int bw_device_name_format(const struct bw_device_name *name, char *text, size_t text_size);

#endif
