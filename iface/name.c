/* Parser and printer of device names: see name.h. */
#include "iface/name.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/number.h"
#include "base/text.h"

/* Which interface serves which driver. Each also exists as a mock. */
static const struct {
    const char *iface, *driver;
} served_table[] = {
    {"kfd", "amd"}, {"drm", "amd"}, {"pci", "amd"}, {"vfio", "amd"},  {"usb", "amd"},
    {"rm", "nv"},   {"pci", "nv"},  {"vfio", "nv"}, {"kgsl", "qcom"}, {"msm", "qcom"},
};

static const char mock_prefix[] = "mock";

struct cursor {
    const char *text, *at;
    struct bw_err *err;
};

static int fail_at(const struct cursor *cursor, const char *at, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int fail_at(const struct cursor *cursor, const char *at, int code, const char *format, ...)
{
    char what[80];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return bw_fail(cursor->err, code, "name", "device name \"%.40s\", position %d: %s", cursor->text,
                   (int)(at - cursor->text) + 1, what);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* A word of lower-case letters, digits, _ and -. */
static int take_word(struct cursor *cursor, char *word, size_t size, const char *what)
{
    const char *start = cursor->at;
    while (is_word(*cursor->at))
        cursor->at++;
    size_t length = (size_t)(cursor->at - start);
    if (!length) {
        int rc = fail_at(cursor, start, -EINVAL, "%s is missing", what);
        bw_err_expected(cursor->err, "lower-case letters or digits");
        bw_err_observed(cursor->err, *start ? "'%c'" : "the end", *start);
        return rc;
    }
    if (length >= size)
        return fail_at(cursor, start, -ENAMETOOLONG, "%s is longer than %zu characters", what, size - 1);
    memcpy(word, start, length);
    word[length] = 0;
    return 0;
}

static int take_number(struct cursor *cursor, uint64_t minimum, uint64_t maximum, const char *what,
                       uint64_t *number)
{
    const char *start = cursor->at;
    uint64_t value;
    if (bw_number_take(&cursor->at, &value) || value < minimum || value > maximum) {
        int rc = fail_at(cursor, start, -EINVAL, "%s is not a number in range", what);
        bw_err_expected(cursor->err, "%" PRIu64 " to %" PRIu64, minimum, maximum);
        bw_err_observed(cursor->err, "\"%.20s\"", start);
        return rc;
    }
    *number = value;
    return 0;
}

static bool take(struct cursor *cursor, char c)
{
    if (*cursor->at != c)
        return false;
    cursor->at++;
    return true;
}

static int hex_digit(char c)
{
    if (isdigit((unsigned char)c))
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* DDDD:BB:DD.F; false and the cursor unmoved when the text there is anything else. */
static bool take_pci(struct cursor *cursor, struct bw_device_name *name)
{
    static const char pattern[] = "xxxx:xx:xx.x";
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof pattern - 1; i++) {
        int digit = hex_digit(cursor->at[i]);
        if (pattern[i] == 'x' ? digit < 0 : cursor->at[i] != pattern[i])
            return false;
        if (pattern[i] == 'x')
            bits = bits << 4 | (unsigned)digit;
    }
    unsigned function = bits & 0xf, device = (bits >> 4) & 0xff;
    if (function > 7 || device > 31)
        return false;
    name->pci_function = (uint8_t)function;
    name->pci_device = (uint8_t)device;
    name->pci_bus = (uint8_t)(bits >> 12);
    name->pci_domain = (uint16_t)(bits >> 20);
    cursor->at += sizeof pattern - 1;
    return true;
}

static int take_place(struct cursor *cursor, struct bw_device_name *name)
{
    bool gpu = strcmp(name->driver, "host") && strcmp(name->driver, "null");
    if (gpu && take_pci(cursor, name)) {
        name->where = BW_NAME_PCI;
        return 0;
    }
    const char *start = cursor->at;
    uint64_t index = 0;
    int rc = take_number(cursor, 0, UINT32_MAX, "the device index", &index);
    if (!rc && *cursor->at == ':')
        rc = fail_at(cursor, start, -EINVAL, "not a PCI address");
    if (rc) {
        bw_err_expected(cursor->err, gpu ? "an index, or a PCI address DDDD:BB:DD.F" : "an index");
        bw_err_observed(cursor->err, "\"%.24s\"", start);
        return rc;
    }
    name->where = BW_NAME_INDEX;
    name->index = (uint32_t)index;
    return 0;
}

static int take_path(struct cursor *cursor, struct bw_device_name *name)
{
    const char *start = cursor->at;
    size_t length = 0;
    for (; *cursor->at && *cursor->at != ','; cursor->at++) {
        if (*cursor->at == '\\' && (cursor->at[1] == ',' || cursor->at[1] == '\\'))
            cursor->at++;
        if (length + 1 >= sizeof name->path)
            return fail_at(cursor, start, -ENAMETOOLONG, "the path is longer than %zu bytes",
                           sizeof name->path - 1);
        name->path[length++] = *cursor->at;
    }
    name->path[length] = 0;
    return length ? 0 : fail_at(cursor, start, -EINVAL, "the path is missing");
}

static int take_size(struct cursor *cursor, const char *key, uint64_t *bytes)
{
    const char *start = cursor->at;
    char text[32];
    size_t length = strcspn(start, ",");
    int rc = -ERANGE;
    if (length < sizeof text) {
        memcpy(text, start, length);
        text[length] = 0;
        rc = bw_size_parse(text, bytes);
    }
    if (!rc && !*bytes)
        rc = -EINVAL;
    if (rc) {
        fail_at(cursor, start, -EINVAL, "%s is not a size", key);
        bw_err_expected(cursor->err, "bytes, or a number with K, M, G or T");
        bw_err_observed(cursor->err, "\"%.*s\"", (int)(length < 24 ? length : 24), start);
        return -EINVAL;
    }
    cursor->at = start + length;
    return 0;
}

/* Every key has a value other than 0. */
static bool is_set(const struct bw_device_name *name, const char *key)
{
    return !strcmp(key, "vram")     ? name->vram_bytes != 0
           : !strcmp(key, "bar")    ? name->bar_bytes != 0
           : !strcmp(key, "cu")     ? name->cu_count != 0
           : !strcmp(key, "seed")   ? name->seed != 0
           : !strcmp(key, "nodes")  ? name->nodes != 0
           : !strcmp(key, "xgmi")   ? name->xgmi_engines != 0
           : !strcmp(key, "jitter") ? name->jitter != 0
                                    : false;
}

static int take_option(struct cursor *cursor, struct bw_device_name *name)
{
    const char *start = cursor->at;
    char key[16];
    uint64_t number = 0;
    int rc = take_word(cursor, key, sizeof key, "the key");
    if (rc)
        return rc;
    if (!take(cursor, '='))
        return fail_at(cursor, cursor->at, -EINVAL, "= is missing after %s", key);
    if (!name->mock)
        return fail_at(cursor, start, -EINVAL, "only a mock takes %s=", key);
    if (is_set(name, key))
        return fail_at(cursor, start, -EINVAL, "%s= is given twice", key);
    if (!strcmp(key, "vram"))
        return take_size(cursor, key, &name->vram_bytes);
    if (!strcmp(key, "bar"))
        return take_size(cursor, key, &name->bar_bytes);
    if (!strcmp(key, "cu")) {
        rc = take_number(cursor, 1, UINT16_MAX, "cu", &number);
        name->cu_count = (uint32_t)number;
        return rc;
    }
    if (!strcmp(key, "seed"))
        return take_number(cursor, 1, UINT64_MAX, "seed", &name->seed);
    if (!strcmp(key, "jitter"))
        return take_number(cursor, 1, UINT64_MAX, "jitter", &name->jitter);
    if (!strcmp(key, "xgmi")) {
        rc = take_number(cursor, 1, BW_NAME_XGMI_ENGINES_MAX, "xgmi", &number);
        name->xgmi_engines = (uint32_t)number;
        return rc;
    }
    if (!strcmp(key, "nodes")) {
        rc = take_number(cursor, 1, BW_NAME_NODES_MAX, "nodes", &number);
        name->nodes = (uint32_t)number;
        return rc;
    }
    rc = fail_at(cursor, start, -EINVAL, "unknown key \"%s\"", key);
    bw_err_expected(cursor->err, "cu, vram, bar, xgmi, nodes, seed or jitter");
    return rc;
}

/* Whether ",key=" stands at the cursor: a comma that goes on with this name. */
static bool option_follows(const struct cursor *cursor)
{
    const char *at = cursor->at;
    if (*at++ != ',' || !is_word(*at))
        return false;
    while (is_word(*at))
        at++;
    return *at == '=';
}

/* What follows the @. */
static int take_gpu(struct cursor *cursor, struct bw_device_name *name)
{
    int rc = take_word(cursor, name->arch, sizeof name->arch, "the architecture");
    const char *star = cursor->at;
    if (!rc && take(cursor, '*')) {
        uint64_t count = 1;
        if (!name->mock)
            return fail_at(cursor, star, -EINVAL, "only a mock takes *count");
        rc = take_number(cursor, 1, BW_NAME_GPUS_MAX, "the count", &count);
        name->count = (uint32_t)count;
    }
    while (!rc && option_follows(cursor)) {
        cursor->at++;
        rc = take_option(cursor, name);
    }
    if (!rc && name->where == BW_NAME_INDEX && name->mock && name->index >= name->count) {
        rc = fail_at(cursor, star, -EINVAL, "index %u of a machine with %u GPUs", name->index, name->count);
        bw_err_hint(cursor->err, "write @%s*%u for that many", name->arch, name->index + 1);
    }
    return rc;
}

static int check_served(const struct cursor *cursor, const char *start, const struct bw_device_name *name)
{
    static const char *const plain[] = {"host", "disk", "null"};
    for (size_t i = 0; i < BW_COUNT_OF(plain); i++) {
        if (strcmp(name->driver, plain[i]))
            continue;
        return name->iface[0] ? fail_at(cursor, start, -EINVAL, "%s has no interface", name->driver) : 0;
    }
    const char *iface = name->iface + (name->mock ? sizeof mock_prefix - 1 : 0);
    bool driver_known = false, iface_known = !name->iface[0];
    for (size_t i = 0; i < BW_COUNT_OF(served_table); i++) {
        bool driver_fits = !strcmp(name->driver, served_table[i].driver);
        bool iface_fits = !strcmp(iface, served_table[i].iface);
        if (driver_fits && (iface_fits || !name->iface[0]))
            return 0;
        driver_known |= driver_fits;
        iface_known |= iface_fits;
    }
    int rc;
    if (!driver_known)
        rc = fail_at(cursor, start, -EINVAL, "unknown driver \"%s\"", name->driver);
    else if (!iface_known)
        rc = fail_at(cursor, start, -EINVAL, "unknown interface \"%s\"", name->iface);
    else
        rc = fail_at(cursor, start, -EINVAL, "interface \"%s\" does not serve \"%s\"", name->iface,
                     name->driver);
    return rc;
}

/* One name; the cursor is left at the end of the text or at the comma before the next name. */
static int take_name(struct cursor *cursor, struct bw_device_name *name)
{
    const char *start = cursor->at;
    memset(name, 0, sizeof *name);
    name->count = 1;
    int rc = take_word(cursor, name->driver, sizeof name->driver, "the driver");
    if (rc)
        return rc;
    if (take(cursor, '+')) {
        memcpy(name->iface, name->driver, sizeof name->iface);
        rc = take_word(cursor, name->driver, sizeof name->driver, "the driver");
        if (rc)
            return rc;
    }
    name->mock = !strncmp(name->iface, mock_prefix, sizeof mock_prefix - 1);
    rc = check_served(cursor, start, name);
    if (rc)
        return rc;
    bool disk = !strcmp(name->driver, "disk"), null = !strcmp(name->driver, "null");
    bool host = !strcmp(name->driver, "host");
    if (disk)
        return take(cursor, ':') ? take_path(cursor, name)
                                 : fail_at(cursor, cursor->at, -EINVAL, "disk needs :PATH");
    if (!null && take(cursor, ':'))
        rc = take_place(cursor, name);
    if (!rc && !null && !host && take(cursor, '@'))
        rc = take_gpu(cursor, name);
    else if (!rc && name->mock)
        rc = fail_at(cursor, cursor->at, -EINVAL, "a mock needs @ARCH");
    return rc;
}

static int fail_trailing(const struct cursor *cursor)
{
    int rc = fail_at(cursor, cursor->at, -EINVAL, "the name should end here");
    bw_err_observed(cursor->err, "\"%.24s\"", cursor->at);
    return rc;
}

int bw_device_name_parse(const char *text, struct bw_device_name *name, struct bw_err *err)
{
    struct cursor cursor = {text, text, err};
    int rc = take_name(&cursor, name);
    return rc || !*cursor.at ? rc : fail_trailing(&cursor);
}

int bw_device_name_parse_list(const char *text, struct bw_device_name *names, uint32_t capacity,
                              uint32_t *count, struct bw_err *err)
{
    struct cursor cursor = {text, text, err};
    *count = 0;
    do {
        struct bw_device_name name;
        const char *start = cursor.at;
        if (*count == capacity)
            return fail_at(&cursor, cursor.at, -E2BIG, "more than %u devices", capacity);
        int rc = take_name(&cursor, &name);
        if (rc)
            return rc;
        bool all = name.where == BW_NAME_FIRST && name.count > 1;
        uint32_t more = all ? name.count : 1;
        if (more > capacity - *count)
            return fail_at(&cursor, start, -E2BIG, "more than %u devices", capacity);
        for (uint32_t i = 0; i < more; i++) {
            if (all) {
                name.where = BW_NAME_INDEX;
                name.index = i;
            }
            names[(*count)++] = name;
        }
    } while (take(&cursor, ','));
    return *cursor.at ? fail_trailing(&cursor) : 0;
}

int bw_device_name_parse_gpu(const char *text, struct bw_device_name *name, struct bw_err *err)
{
    struct cursor cursor = {text, text, err};
    memset(name, 0, sizeof *name);
    name->count = 1;
    name->mock = true;
    memcpy(name->iface, "mockkfd", sizeof "mockkfd");
    memcpy(name->driver, "amd", sizeof "amd");
    if (strncmp(text, "gfx", 3)) {
        int rc = fail_at(&cursor, text, -EINVAL, "not the architecture of a GPU that can be mocked");
        bw_err_expected(err, "gfx1100 or the like");
        return rc;
    }
    int rc = take_gpu(&cursor, name);
    return rc || !*cursor.at ? rc : fail_trailing(&cursor);
}

static void add_size(struct bw_text *text, const char *key, uint64_t bytes)
{
    static const char units[] = "KMGT";
    if (!bytes)
        return;
    unsigned steps = 0;
    while (steps < 4 && bytes % 1024 == 0) {
        bytes /= 1024;
        steps++;
    }
    bw_text_add(text, ",%s=%" PRIu64, key, bytes);
    if (steps)
        bw_text_add_bytes(text, &units[steps - 1], 1);
}

static void add_path(struct bw_text *text, const char *path)
{
    bw_text_add(text, ":");
    for (; *path; path++) {
        if (*path == ',' || *path == '\\')
            bw_text_add(text, "\\");
        bw_text_add_bytes(text, path, 1);
    }
}

int bw_device_name_format(const struct bw_device_name *name, char *text, size_t text_size)
{
    struct bw_text out = {0};
    bw_text_add(&out, "%s%s%s", name->iface, name->iface[0] ? "+" : "", name->driver);
    if (name->path[0])
        add_path(&out, name->path);
    if (name->where == BW_NAME_INDEX)
        bw_text_add(&out, ":%u", name->index);
    if (name->where == BW_NAME_PCI)
        bw_text_add(&out, ":%04x:%02x:%02x.%x", name->pci_domain, name->pci_bus, name->pci_device,
                    name->pci_function);
    if (name->arch[0])
        bw_text_add(&out, "@%s", name->arch);
    if (name->count > 1)
        bw_text_add(&out, "*%u", name->count);
    if (name->cu_count)
        bw_text_add(&out, ",cu=%u", name->cu_count);
    add_size(&out, "vram", name->vram_bytes);
    add_size(&out, "bar", name->bar_bytes);
    if (name->xgmi_engines)
        bw_text_add(&out, ",xgmi=%u", name->xgmi_engines);
    if (name->nodes)
        bw_text_add(&out, ",nodes=%u", name->nodes);
    if (name->seed)
        bw_text_add(&out, ",seed=%" PRIu64, name->seed);
    if (name->jitter)
        bw_text_add(&out, ",jitter=%" PRIu64, name->jitter);
    int length = out.failed ? out.failed : snprintf(text, text_size, "%s", bw_text_string(&out));
    bw_text_free(&out);
    return length;
}
