/* Reading .npy: see io_npy.h. */
#include "compiler/io_npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/io.h"

static const uint64_t FILE_BYTES_MAX = 1ull << 36; /* 64 GiB: beyond the memory of what runs this */

enum {
    MAGIC_BYTES = 6,
    UCS4_BYTES = 4, /* of a character in a 'U' array */
    UTF8_BYTES_MAX = 4,
};

static const char magic[MAGIC_BYTES + 1] = "\x93NUMPY";

/* What the header says, and where reading stands. */
struct npy {
    const char *name;
    struct bw_err *err;
    const uint8_t *file, *at, *end; /* at: in the header first, then the elements up to end */
    char byte_order, type;
    uint64_t item_bytes;
    bool fortran_order;
    uint32_t rank;
    int64_t dims[BW_TENSOR_RANK_MAX];
    uint64_t elements;
    uint64_t unread_bytes; /* of the file, behind what is in memory */
};

static int damaged(const struct npy *npy, const char *what)
{
    return bw_fail(npy->err, -EBADMSG, "npy", "%s: byte %llu: %s", npy->name,
                   (unsigned long long)(npy->at - npy->file), what);
}

/* ---- the header: a Python dictionary of three entries ---- */

static void skip_space(struct npy *npy, const uint8_t *end)
{
    while (npy->at < end && (*npy->at == ' ' || *npy->at == '\n' || *npy->at == '\t'))
        npy->at++;
}

static bool accept(struct npy *npy, const uint8_t *end, char character)
{
    skip_space(npy, end);
    if (npy->at == end || *npy->at != (uint8_t)character)
        return false;
    npy->at++;
    return true;
}

static bool accept_word(struct npy *npy, const uint8_t *end, const char *word)
{
    size_t length = strlen(word);
    skip_space(npy, end);
    if ((size_t)(end - npy->at) < length || memcmp(npy->at, word, length) != 0)
        return false;
    npy->at += length;
    return true;
}

static int read_number(struct npy *npy, const uint8_t *end, uint64_t *number)
{
    const uint8_t *start = npy->at;
    uint64_t value = 0;
    for (; npy->at < end && *npy->at >= '0' && *npy->at <= '9'; npy->at++) {
        if (value > (uint64_t)INT64_MAX / 10 - 1)
            return damaged(npy, "a number too large");
        value = value * 10 + (uint64_t)(*npy->at - '0');
    }
    *number = value;
    return npy->at == start ? damaged(npy, "expected a number") : 0;
}

static int read_descr(struct npy *npy, const uint8_t *end)
{
    skip_space(npy, end);
    if (npy->at < end && *npy->at == '[')
        return bw_fail(npy->err, -ENOTSUP, "npy", "%s: an array of structures", npy->name);
    char quote = npy->at < end && *npy->at == '"' ? '"' : '\'';
    if (!accept(npy, end, quote) || end - npy->at < 3)
        return damaged(npy, "expected an element type in quotes");
    npy->byte_order = (char)*npy->at++;
    npy->type = (char)*npy->at++;
    if (!strchr("<>|=", npy->byte_order))
        return damaged(npy, "expected a byte order");
    int rc = npy->type == 'O' ? 0 : read_number(npy, end, &npy->item_bytes);
    if (!rc && !accept(npy, end, quote))
        rc = bw_fail(npy->err, -ENOTSUP, "npy", "%s: element type '%c' with a unit", npy->name, npy->type);
    return rc;
}

static int read_shape(struct npy *npy, const uint8_t *end)
{
    if (!accept(npy, end, '('))
        return damaged(npy, "expected a shape");
    npy->rank = 0;
    while (!accept(npy, end, ')')) {
        uint64_t dim = 0;
        skip_space(npy, end);
        if (npy->rank == BW_TENSOR_RANK_MAX)
            return bw_fail(npy->err, -E2BIG, "npy", "%s: rank above %d", npy->name, BW_TENSOR_RANK_MAX);
        int rc = read_number(npy, end, &dim);
        if (rc)
            return rc;
        npy->dims[npy->rank++] = (int64_t)dim;
        if (!accept(npy, end, ',')) {
            if (!accept(npy, end, ')'))
                return damaged(npy, "expected ',' or ')'");
            break;
        }
    }
    return 0;
}

static int read_entry(struct npy *npy, const uint8_t *end, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char quote = accept(npy, end, '"') ? '"' : '\'';
    if (quote == '\'' && !accept(npy, end, quote))
        return damaged(npy, "expected a key");
    unsigned key = 0;
    while (key < BW_COUNT_OF(keys) && !accept_word(npy, end, keys[key]))
        key++;
    if (key == BW_COUNT_OF(keys) || !accept(npy, end, quote) || !accept(npy, end, ':') || (*seen >> key & 1))
        return damaged(npy, "expected one of descr, fortran_order, shape");
    *seen |= 1u << key;
    if (key == 0)
        return read_descr(npy, end);
    if (key == 2)
        return read_shape(npy, end);
    npy->fortran_order = accept_word(npy, end, "True");
    return npy->fortran_order || accept_word(npy, end, "False") ? 0 : damaged(npy, "expected True or False");
}

static int read_dictionary(struct npy *npy, const uint8_t *end)
{
    unsigned seen = 0;
    if (!accept(npy, end, '{'))
        return damaged(npy, "expected '{'");
    while (!accept(npy, end, '}')) {
        int rc = read_entry(npy, end, &seen);
        if (rc)
            return rc;
        if (!accept(npy, end, ',') && (npy->at == end || *npy->at != '}'))
            return damaged(npy, "expected ',' or '}'");
    }
    return seen == 7 ? 0 : damaged(npy, "descr, fortran_order or shape is missing");
}

/* Moves to the elements. */
static int read_header(struct npy *npy)
{
    uint64_t size_bytes = (uint64_t)(npy->end - npy->file);
    if (size_bytes < MAGIC_BYTES + 4 || memcmp(npy->file, magic, MAGIC_BYTES) != 0)
        return bw_fail(npy->err, -EBADMSG, "npy", "%s is no .npy file", npy->name);
    uint8_t version = npy->file[MAGIC_BYTES];
    uint64_t length_bytes = version == 1 ? 2 : 4, header_bytes = 0;
    npy->at = npy->file + MAGIC_BYTES;
    if (version < 1 || version > 3)
        return bw_fail(npy->err, -ENOTSUP, "npy", "%s: format version %u", npy->name, version);
    npy->at += 2;
    if ((uint64_t)(npy->end - npy->at) < length_bytes)
        return damaged(npy, "the file ends in the header");
    for (uint64_t i = 0; i < length_bytes; i++)
        header_bytes |= (uint64_t)npy->at[i] << 8 * i;
    npy->at += length_bytes;
    if ((uint64_t)(npy->end - npy->at) < header_bytes)
        return npy->unread_bytes ? bw_fail(npy->err, -E2BIG, "npy", "%s: a header of %llu bytes", npy->name,
                                           (unsigned long long)header_bytes)
                                 : damaged(npy, "the file ends in the header");
    const uint8_t *header_end = npy->at + header_bytes;
    int rc = read_dictionary(npy, header_end);
    npy->at = header_end;
    return rc;
}

/* ---- elements ---- */

static int check_size(struct npy *npy)
{
    bool empty = false;
    npy->elements = 1;
    for (uint32_t i = 0; i < npy->rank; i++)
        empty |= npy->dims[i] == 0;
    for (uint32_t i = 0; i < npy->rank && !empty; i++)
        if (__builtin_mul_overflow(npy->elements, (uint64_t)npy->dims[i], &npy->elements))
            return damaged(npy, "a shape too large");
    npy->elements = empty ? 0 : npy->elements;
    uint64_t needed, have = (uint64_t)(npy->end - npy->at) + npy->unread_bytes;
    if (__builtin_mul_overflow(npy->elements, npy->item_bytes, &needed) || needed > have) {
        int rc = damaged(npy, "the file ends before the array does");
        bw_err_expected(npy->err, "%llu elements of %llu bytes", (unsigned long long)npy->elements,
                        (unsigned long long)npy->item_bytes);
        bw_err_observed(npy->err, "%llu bytes", (unsigned long long)have);
        return rc;
    }
    return 0;
}

static enum bw_dtype dtype_of(char type, uint64_t item_bytes)
{
    static const struct {
        char type;
        uint8_t item_bytes;
        enum bw_dtype dtype;
    } rows[] = {
        {'b', 1, BW_BOOL}, {'i', 1, BW_I8},  {'i', 2, BW_I16},  {'i', 4, BW_I32}, {'i', 8, BW_I64},
        {'u', 1, BW_U8},   {'u', 2, BW_U16}, {'u', 4, BW_U32},  {'u', 8, BW_U64}, {'f', 2, BW_F16},
        {'f', 4, BW_F32},  {'f', 8, BW_F64}, {'V', 2, BW_BF16}, {'V', 1, BW_U8},
    };
    for (size_t i = 0; i < BW_COUNT_OF(rows); i++)
        if (rows[i].type == type && rows[i].item_bytes == item_bytes)
            return rows[i].dtype;
    return BW_VOID;
}

/* Copies the elements to `to` in C order, each in the host's byte order (little endian). */
static void take_elements(const struct npy *npy, uint8_t *to, bool swap)
{
    uint64_t item = npy->item_bytes, stride[BW_TENSOR_RANK_MAX] = {0}, index[BW_TENSOR_RANK_MAX] = {0};
    uint64_t from = 0, step = 1;
    for (uint32_t i = 0; i < npy->rank; i++) {
        uint32_t axis = npy->fortran_order ? i : npy->rank - 1 - i;
        stride[axis] = step;
        step *= (uint64_t)npy->dims[axis];
    }
    for (uint64_t element = 0; element < npy->elements; element++) {
        const uint8_t *source = npy->at + from * item;
        for (uint64_t byte = 0; byte < item; byte++)
            to[element * item + byte] = source[swap ? item - 1 - byte : byte];
        for (uint32_t axis = npy->rank; axis-- > 0;) {
            from += stride[axis];
            if (++index[axis] < (uint64_t)npy->dims[axis])
                break;
            from -= stride[axis] * index[axis];
            index[axis] = 0;
        }
    }
}

static int read_numbers(struct npy *npy, enum bw_dtype dtype, struct bw_value *value)
{
    uint64_t size_bytes = npy->elements * npy->item_bytes;
    uint8_t *data = malloc(size_bytes ? size_bytes : 1);
    bool swap = npy->byte_order == '>' && npy->item_bytes > 1;
    if (!data)
        return bw_fail(npy->err, -ENOMEM, "npy", "%s: %llu bytes", npy->name, (unsigned long long)size_bytes);
    if (!swap && (!npy->fortran_order || npy->rank < 2)) {
        if (size_bytes)
            memcpy(data, npy->at, size_bytes);
    } else {
        take_elements(npy, data, swap);
    }
    for (uint64_t i = 0; dtype == BW_BOOL && i < size_bytes; i++)
        data[i] = data[i] != 0;
    value->kind = BW_VALUE_ARRAY;
    value->array.dtype = dtype;
    value->array.data = data;
    return 0;
}

/* One code point to UTF-8; what is none becomes U+FFFD. */
static uint64_t utf8_put(uint32_t point, char *to)
{
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        point = 0xfffd;
    if (point < 0x80)
        return to[0] = (char)point, 1;
    if (point < 0x800)
        return to[0] = (char)(0xc0 | point >> 6), to[1] = (char)(0x80 | (point & 63)), 2;
    uint64_t length = point < 0x10000 ? 3 : 4;
    to[0] = (char)(length == 3 ? 0xe0 | point >> 12 : 0xf0 | point >> 18);
    for (uint64_t i = 1; i < length; i++)
        to[i] = (char)(0x80 | (point >> 6 * (length - 1 - i) & 63));
    return length;
}

/* Strings are padded with zeros to the item's size, which their length does not count. */
static int read_string(const struct npy *npy, const uint8_t *item, struct bw_string *string)
{
    uint64_t unit = npy->type == 'U' ? UCS4_BYTES : 1, units = npy->item_bytes / unit;
    while (units && !memcmp(item + (units - 1) * unit, "\0\0\0", unit))
        units--;
    string->data = malloc(units ? units * (unit == 1 ? 1 : UTF8_BYTES_MAX) : 1);
    if (!string->data)
        return -ENOMEM;
    if (unit == 1) {
        memcpy(string->data, item, units);
        string->size_bytes = units;
    }
    for (uint64_t i = 0; unit > 1 && i < units; i++) {
        uint32_t point;
        memcpy(&point, item + i * unit, sizeof point);
        if (npy->byte_order == '>')
            point = __builtin_bswap32(point);
        string->size_bytes += utf8_put(point, string->data + string->size_bytes);
    }
    return 0;
}

static int read_strings(struct npy *npy, struct bw_value *value)
{
    struct bw_string *strings = calloc(npy->elements ? npy->elements : 1, sizeof *strings);
    uint8_t *items = malloc(npy->elements * npy->item_bytes + 1);
    int rc = strings && items ? 0 : -ENOMEM;
    if (!rc)
        take_elements(npy, items, false);
    value->kind = BW_VALUE_STRINGS;
    value->array.data = strings;
    for (uint64_t i = 0; !rc && i < npy->elements; i++)
        rc = read_string(npy, items + i * npy->item_bytes, &strings[i]);
    free(items);
    return rc ? bw_fail(npy->err, rc, "npy", "%s: strings", npy->name) : 0;
}

int bw_npy_parse(const char *name, const uint8_t *data, uint64_t size_bytes, struct bw_value *value,
                 struct bw_err *err)
{
    struct npy npy = {.name = name, .err = err, .file = data, .at = data, .end = data + size_bytes};
    *value = (struct bw_value){0};
    int rc = read_header(&npy);
    if (rc)
        return rc;
    bool text = npy.type == 'S' || npy.type == 'U';
    if (npy.type == 'U' && __builtin_mul_overflow(npy.item_bytes, (uint64_t)UCS4_BYTES, &npy.item_bytes))
        return damaged(&npy, "a string too long");
    enum bw_dtype dtype = dtype_of(npy.type, npy.item_bytes);
    if (!text && dtype == BW_VOID)
        return bw_fail(err, -ENOTSUP, "npy", "%s: element type '%c%llu'", name, npy.type,
                       (unsigned long long)npy.item_bytes);
    rc = check_size(&npy);
    /* Strings of no bytes: nothing in the file bounds their number. */
    if (!rc && text && npy.item_bytes == 0 && npy.elements > size_bytes)
        rc = damaged(&npy, "more empty strings than the file has bytes");
    if (rc)
        return rc;
    value->array.rank = npy.rank;
    memcpy(value->array.dims, npy.dims, sizeof value->array.dims);
    rc = text ? read_strings(&npy, value) : read_numbers(&npy, dtype, value);
    if (rc)
        bw_value_free(value);
    return rc;
}

int bw_npy_layout(const char *name, const uint8_t *prefix, uint64_t prefix_bytes, uint64_t file_bytes,
                  struct bw_npy_layout *layout, struct bw_err *err)
{
    struct npy npy = {.name = name,
                      .err = err,
                      .file = prefix,
                      .at = prefix,
                      .end = prefix + prefix_bytes,
                      .unread_bytes = file_bytes - prefix_bytes};
    int rc = read_header(&npy);
    if (rc)
        return rc;
    enum bw_dtype dtype = dtype_of(npy.type, npy.item_bytes);
    bool swapped = npy.byte_order == '>' && npy.item_bytes > 1;
    if (dtype == BW_VOID || swapped)
        return bw_fail(err, -ENOTSUP, "npy", "%s: element type '%c%c%llu' is not read piece by piece", name,
                       npy.byte_order, npy.type, (unsigned long long)npy.item_bytes);
    rc = check_size(&npy);
    if (rc)
        return rc;
    *layout = (struct bw_npy_layout){.dtype = dtype,
                                     .rank = npy.rank,
                                     .fortran_order = npy.fortran_order,
                                     .offset = (uint64_t)(npy.at - npy.file),
                                     .size_bytes = npy.elements * npy.item_bytes};
    memcpy(layout->dims, npy.dims, sizeof layout->dims);
    return 0;
}

int bw_npy_read(const char *path, struct bw_value *value, struct bw_err *err)
{
    uint8_t *data = NULL;
    uint64_t size_bytes = 0;
    int rc = bw_file_read(path, FILE_BYTES_MAX, &data, &size_bytes, err);
    if (rc)
        return rc;
    rc = bw_npy_parse(path, data, size_bytes, value, err);
    free(data);
    return rc;
}
