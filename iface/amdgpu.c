/* Requests for memory, render nodes, and marketing names from libdrm's amdgpu.ids:
 * "DEVICE,<tab>REVISION,<tab>NAME" per line, both numbers in hexadecimal. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "iface/amdgpu.h"
#include "iface/iface.h"
#include "iface/sys_util.h"

#define IDS_PATH "/usr/share/libdrm/amdgpu.ids"

enum { IDS_BYTES_MAX = 1 << 20, NUMBER_BYTES_MAX = 64, BOARD_NAME_BYTES_MAX = 4096 };

/* What 48 bits of GPU address hold; keeps sums of sizes from wrapping. */
#define BUFFER_BYTES_MAX (1ull << 47)
enum { PAGE_BYTES = 4096 };

int bw_amdgpu_request_check(const char *subsystem, uint64_t size_bytes, uint32_t flags, uint64_t cpu_address,
                            struct bw_err *err)
{
    uint32_t kinds = flags & (BW_IFACE_VRAM | BW_IFACE_HOST | BW_IFACE_USER_POINTER);
    if (!bw_is_pow2(kinds))
        return bw_fail(err, -EINVAL, subsystem, "a buffer is VRAM, host memory or user memory (flags 0x%x)",
                       flags);
    if (!size_bytes || size_bytes > BUFFER_BYTES_MAX)
        return bw_fail(err, -EINVAL, subsystem, "a buffer of %" PRIu64 " bytes", size_bytes);
    bool user = kinds == BW_IFACE_USER_POINTER;
    if (user && (!cpu_address || cpu_address % PAGE_BYTES || cpu_address > UINT64_MAX - size_bytes))
        return bw_fail(err, -EINVAL, subsystem, "user memory at 0x%" PRIx64 " does not start at a page",
                       cpu_address);
    if (!user && cpu_address)
        return bw_fail(err, -EINVAL, subsystem, "a CPU address for memory that is not the caller's");
    return 0;
}

/* Parses one line; false when it is a comment, a version or malformed. */
static bool parse_line(const char *line, uint32_t *device_id, uint32_t *revision, const char **name)
{
    char *end;
    unsigned long device = strtoul(line, &end, 16);
    if (end == line || *end != ',' || device > UINT16_MAX)
        return false;
    const char *second = end + 1;
    unsigned long rev = strtoul(second, &end, 16);
    if (end == second || *end != ',' || rev > UINT8_MAX)
        return false;
    for (end++; *end == ' ' || *end == '\t'; end++)
        ;
    *device_id = (uint32_t)device;
    *revision = (uint32_t)rev;
    *name = end;
    return true;
}

bool bw_amdgpu_ids_find(const char *ids, uint32_t device_id, uint32_t revision, char *name,
                        uint32_t name_size)
{
    for (const char *line = ids; *line;) {
        size_t length = strcspn(line, "\n");
        uint32_t device, rev;
        const char *text;
        /* strtoul skips blanks, line ends too: only lines that start with a digit are entries. */
        if (isxdigit((unsigned char)*line) && parse_line(line, &device, &rev, &text) &&
            text <= line + length && device == device_id && rev == revision) {
            size_t name_length = (size_t)(line + length - text);
            while (name_length && isspace((unsigned char)text[name_length - 1]))
                name_length--;
            snprintf(name, name_size, "%.*s", (int)name_length, text);
            return name_length > 0;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

/* A number of one sysfs file; false when there is none. */
static bool read_number(struct bw_sys *sys, const char *path, uint32_t *number)
{
    char *text, *end;
    if (bw_sys_read_text(sys, path, NUMBER_BYTES_MAX, &text))
        return false;
    unsigned long value = strtoul(text, &end, 16);
    bool good = end != text && value <= UINT32_MAX;
    *number = (uint32_t)value;
    free(text);
    return good;
}

/* What the board's own EEPROM says: Instinct boards have one, and no line of amdgpu.ids that is older than
 * they are. */
static void read_board_name(struct bw_sys *sys, uint32_t render_minor, char *name, uint32_t name_size)
{
    char path[128], *text;
    snprintf(path, sizeof path, "/sys/class/drm/renderD%u/device/product_name", render_minor);
    if (bw_sys_read_text(sys, path, BOARD_NAME_BYTES_MAX, &text))
        return;
    snprintf(name, name_size, "%.*s", (int)strcspn(text, "\r\n"), text);
    free(text);
}

void bw_amdgpu_product(struct bw_sys *sys, uint32_t render_minor, uint32_t device_id, char *name,
                       uint32_t name_size)
{
    char path[128], *ids;
    uint32_t revision;
    bool found = false;
    name[0] = 0;
    snprintf(path, sizeof path, "/sys/class/drm/renderD%u/device/revision", render_minor);
    if (read_number(sys, path, &revision) && !bw_sys_read_text(sys, IDS_PATH, IDS_BYTES_MAX, &ids)) {
        found = bw_amdgpu_ids_find(ids, device_id, revision, name, name_size);
        free(ids);
    }
    if (!found)
        read_board_name(sys, render_minor, name, name_size);
}

int bw_amdgpu_fail_open(struct bw_err *err, int rc, const char *subsystem, const char *path)
{
    bool absent = rc == -ENOENT || rc == -ENXIO || rc == -ENODEV;
    int code = bw_fail(err, absent ? -ENODEV : rc, subsystem, "open %s", path);
    if (absent)
        bw_err_hint(
            err, "sysfs names this render node, but it is not here; in a container pass --device /dev/dri");
    else if (rc == -EACCES)
        bw_err_hint(err, "no permission: add the user to the group render (some systems: video) with "
                         "usermod -aG render,video USER and log in again");
    else if (rc == -EPERM)
        bw_err_hint(err, "the device cgroup forbids it; in a container pass --device %s", path);
    else if (rc == -EMFILE || rc == -ENFILE)
        bw_err_hint(err, "too many open files: raise ulimit -n");
    else if (rc == -EAGAIN)
        bw_err_hint(err, "the GPU is being reset: try again in a few seconds");
    return code;
}
