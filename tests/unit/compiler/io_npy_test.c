/* Goal: arrays survive a round through .npy; every order, byte order and version is read; damage is named. */
#include <bellwire/err.h>

#include "tests/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/io.h"
#include "compiler/io_npy.h"

struct file {
    uint8_t bytes[512];
    uint64_t size_bytes;
};

static struct file file_make(uint8_t version, const char *header, const void *data, uint64_t data_bytes)
{
    struct file file = {.bytes = "\x93NUMPY"};
    uint64_t length = strlen(header), prefix = version == 1 ? 10 : 12;
    file.bytes[6] = version;
    file.bytes[8] = (uint8_t)length;
    memcpy(file.bytes + prefix, header, length);
    memcpy(file.bytes + prefix + length, data, data_bytes);
    file.size_bytes = prefix + length + data_bytes;
    return file;
}

static int parse(const struct file *file, struct bw_value *value, struct bw_err *err)
{
    uint8_t *exact = malloc(file->size_bytes); /* its own block: a sanitizer sees a read past the end */
    memcpy(exact, file->bytes, file->size_bytes);
    int rc = bw_npy_parse("x.npy", exact, file->size_bytes, value, err);
    free(exact);
    return rc;
}

static void test_orders(void)
{
    const int32_t c_order[] = {1, 2, 3, 4, 5, 6}, f_order[] = {1, 4, 2, 5, 3, 6};
    int32_t big_endian[6];
    for (int i = 0; i < 6; i++)
        big_endian[i] = (int32_t)__builtin_bswap32((uint32_t)c_order[i]);
    const struct file files[] = {
        file_make(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n", c_order, 24),
        file_make(2, "{'shape': (2,3), 'fortran_order': True, 'descr': '<i4'}", f_order, 24),
        file_make(3, "{\"descr\": \">i4\", \"fortran_order\": False, \"shape\": (2, 3)}  ", big_endian, 24),
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct bw_value value;
        struct bw_err err = {0};
        BW_OK(parse(&files[i], &value, &err), &err);
        BW_EQ(value.array.dtype, BW_I32);
        BW_EQ(value.array.rank, 2);
        BW_EQ(value.array.dims[0], 2);
        BW_EQ(value.array.dims[1], 3);
        BW_BYTES(value.array.data, c_order, sizeof c_order);
        bw_value_free(&value);
    }
}

static void test_shapes(void)
{
    struct bw_value value;
    struct bw_err err = {0};
    const double pi = 3.14;
    struct file scalar = file_make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &pi, 8);
    BW_OK(parse(&scalar, &value, &err), &err);
    BW_EQ(value.array.rank, 0);
    BW_BYTES(value.array.data, &pi, 8);
    bw_value_free(&value);
    struct file empty = file_make(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (3, 0, 2)}", "", 0);
    BW_OK(parse(&empty, &value, &err), &err);
    BW_EQ(value.array.rank, 3);
    BW_EQ(bw_array_elements(&value.array), 0);
    bw_value_free(&value);
    struct file vast = /* no elements, though its other dimensions multiply past 64 bits; found by fuzzing */
        file_make(1, "{'descr': '>U2', 'fortran_order': True, 'shape': (161000020615, 79643601, 0)}", "", 0);
    BW_OK(parse(&vast, &value, &err), &err);
    BW_EQ(bw_array_elements(&value.array), 0);
    bw_value_free(&value);
    struct file flags =
        file_make(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\x05\x01", 3);
    BW_OK(parse(&flags, &value, &err), &err);
    BW_BYTES(value.array.data, "\0\1\1", 3);
    bw_value_free(&value);
}

static void test_strings(void)
{
    struct bw_value value;
    struct bw_err err = {0};
    struct file bytes = file_make(1, "{'descr': '|S3', 'fortran_order': False, 'shape': (2,)}", "ab\0xyz", 6);
    BW_OK(parse(&bytes, &value, &err), &err);
    BW_EQ(value.kind, BW_VALUE_STRINGS);
    struct bw_string *strings = value.array.data;
    BW_EQ(strings[0].size_bytes, 2);
    BW_BYTES(strings[0].data, "ab", 2);
    BW_EQ(strings[1].size_bytes, 3);
    bw_value_free(&value);
    const uint32_t text[] = {0x41, 0xe9, 0x4e2d, 0x1f600, 0};
    struct file unicode = file_make(1, "{'descr': '<U5', 'fortran_order': False, 'shape': ()}", text, 20);
    BW_OK(parse(&unicode, &value, &err), &err);
    strings = value.array.data;
    BW_EQ(strings[0].size_bytes, 10);
    BW_BYTES(strings[0].data, "A\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", 10);
    bw_value_free(&value);
}

static void test_damage(void)
{
    static const struct {
        int code;
        const char *header;
    } rows[] = {
        {-EBADMSG, "{'descr': '<i4', 'fortran_order': False}"},
        {-EBADMSG, "{'descr': '<i4', 'fortran_order': Maybe, 'shape': (1,)}"},
        {-EBADMSG, "{'descr': '<i4', 'fortran_order': False, 'shape': (1,)"},
        {-EBADMSG, "{'descr': '<i4', 'fortran_order': False, 'shape': (1 2)}"},
        {-EBADMSG, "{'descr': '<i4', 'descr': '<i4', 'shape': (1,)}"},
        {-EBADMSG, "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}"},
        {-EBADMSG, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}"}, /* 8 bytes follow */
        {-EBADMSG, "{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"},
        {-EBADMSG, "{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}"},
        {-EBADMSG, "{'descr': '|S0', 'fortran_order': False, 'shape': (9999999999,)}"},
        {-ENOTSUP, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}"},
        {-ENOTSUP, "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)}"},
        {-ENOTSUP, "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"},
        {-ENOTSUP, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"},
        {-E2BIG, "{'descr': '<i4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,)}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bw_value value;
        struct bw_err err = {0};
        struct file file = file_make(1, rows[i].header, "12345678", 8);
        BW_EQ(parse(&file, &value, &err), rows[i].code);
        BW_TRUE(strstr(err.what, "x.npy") != NULL);
        BW_EQ(value.kind, BW_VALUE_NONE);
    }
}

static void test_every_truncation(void)
{
    const char *header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }";
    struct file file = file_make(1, header, "0123456789abcdef", 16), cut = file;
    for (cut.size_bytes = 0; cut.size_bytes < file.size_bytes; cut.size_bytes++) {
        struct bw_value value;
        BW_EQ(parse(&cut, &value, NULL), -EBADMSG);
    }
}

static void round_trip(const char *path, struct bw_value *value)
{
    struct bw_value back = {0};
    struct bw_err err = {0};
    BW_OK(bw_npy_write(path, value, &err), &err);
    BW_OK(bw_npy_read(path, &back, &err), &err);
    BW_EQ(back.kind, value->kind);
    BW_EQ(back.array.dtype, value->array.dtype);
    BW_EQ(back.array.rank, value->array.rank);
    BW_BYTES(back.array.dims, value->array.dims, sizeof back.array.dims);
    if (value->kind == BW_VALUE_ARRAY)
        BW_BYTES(back.array.data, value->array.data,
                 (size_t)bw_array_elements(&value->array) * bw_dtype_bytes(value->array.dtype));
    bw_value_free(&back);
}

static void test_write(void)
{
    char path[] = "/tmp/bw_npy_XXXXXX";
    int fd = mkstemp(path);
    BW_TRUE(fd >= 0);
    close(fd);
    uint8_t data[48];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + 1);
    for (enum bw_dtype dtype = BW_I8; dtype < BW_DTYPE_COUNT; dtype++)
        for (uint32_t rank = 0; rank <= 3; rank++) {
            struct bw_value value = {.kind = BW_VALUE_ARRAY,
                                     .array = {.dtype = dtype, .rank = rank, .data = data}};
            for (uint32_t i = 0; i < rank; i++)
                value.array.dims[i] = i + 1;
            round_trip(path, &value);
        }
    uint8_t *bytes = NULL;
    uint64_t size_bytes = 0;
    BW_OK(bw_file_read(path, 4096, &bytes, &size_bytes, NULL), (struct bw_err *)NULL);
    BW_EQ(size_bytes, 128 + 6 * 8); /* the elements start at a multiple of 64 */
    free(bytes);
    struct bw_string strings[] = {{(char[]){'a'}, 1}, {(char[]){'b', 'c'}, 2}};
    struct bw_value text = {.kind = BW_VALUE_STRINGS, .array = {.rank = 1, .dims = {2}, .data = strings}};
    round_trip(path, &text);
    struct bw_value none = {0};
    BW_EQ(bw_npy_write(path, &none, NULL), -EINVAL);
    unlink(path);
    text.array.rank = 1;
    BW_EQ(bw_npy_write("/nonexistent/x.npy", &text, NULL), -ENOENT);
}

BW_TEST_MAIN("compiler.io_npy", {"orders", test_orders}, {"shapes", test_shapes}, {"strings", test_strings},
             {"damage", test_damage}, {"every truncation", test_every_truncation}, {"write", test_write})
