/* The element types of ONNX: TensorProto.DataType of onnx.proto, ONNX 1.22. The one table of them. */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/proto.h"
#include "compiler/onnx/schema.h"

struct dtype_row {
    const char *name;
    enum bw_dtype dtype; /* BW_VOID: strings, and what is not supported */
    uint8_t bits;        /* of an element in a file; 0: no fixed number */
    char letter;         /* in schema_table.c */
};

/* By number. */
static const struct dtype_row rows[] = {
    {"UNDEFINED", BW_VOID, 0, 0},
    {"FLOAT", BW_F32, 32, 'f'},
    {"UINT8", BW_U8, 8, 'B'},
    {"INT8", BW_I8, 8, 'c'},
    {"UINT16", BW_U16, 16, 'H'},
    {"INT16", BW_I16, 16, 'h'},
    {"INT32", BW_I32, 32, 'i'},
    {"INT64", BW_I64, 64, 'l'},
    {"STRING", BW_VOID, 0, 's'},
    {"BOOL", BW_BOOL, 8, 'b'},
    {"FLOAT16", BW_F16, 16, 'e'},
    {"DOUBLE", BW_F64, 64, 'd'},
    {"UINT32", BW_U32, 32, 'I'},
    {"UINT64", BW_U64, 64, 'L'},
    {"COMPLEX64", BW_VOID, 64, 'z'},
    {"COMPLEX128", BW_VOID, 128, 'Z'},
    {"BFLOAT16", BW_BF16, 16, 'E'},
    {"FLOAT8E4M3FN", BW_F8E4M3FN, 8, 'm'},
    {"FLOAT8E4M3FNUZ", BW_F8E4M3FNUZ, 8, 'M'},
    {"FLOAT8E5M2", BW_F8E5M2, 8, 'n'},
    {"FLOAT8E5M2FNUZ", BW_F8E5M2FNUZ, 8, 'N'},
    {"UINT4", BW_U4, 4, 'J'},
    {"INT4", BW_I4, 4, 'j'},
    {"FLOAT4E2M1", BW_F4E2M1, 4, 'o'},
    {"FLOAT8E8M0", BW_F8E8M0, 8, 'x'},
    {"UINT2", BW_U2, 2, 'K'},
    {"INT2", BW_I2, 2, 'k'},
};

static const struct dtype_row *row_of(int64_t onnx_dtype)
{
    return onnx_dtype >= 0 && onnx_dtype < (int64_t)BW_COUNT_OF(rows) ? &rows[onnx_dtype] : NULL;
}

enum bw_dtype bw_onnx_dtype_of(int64_t onnx_dtype)
{
    const struct dtype_row *row = row_of(onnx_dtype);
    return row ? row->dtype : BW_VOID;
}

const char *bw_onnx_dtype_name(int64_t onnx_dtype)
{
    const struct dtype_row *row = row_of(onnx_dtype);
    return row ? row->name : NULL;
}

struct bw_onnx_text bw_onnx_dtype_text(int64_t onnx_dtype)
{
    struct bw_onnx_text text;
    const struct dtype_row *row = row_of(onnx_dtype);
    if (row)
        snprintf(text.text, sizeof text.text, "%s", row->name);
    else
        snprintf(text.text, sizeof text.text, "number %lld, which ONNX does not have", (long long)onnx_dtype);
    return text;
}

uint32_t bw_onnx_dtype_bits(int64_t onnx_dtype)
{
    const struct dtype_row *row = row_of(onnx_dtype);
    return row ? row->bits : 0;
}

int64_t bw_onnx_dtype_to(enum bw_dtype dtype)
{
    for (size_t i = 1; i < BW_COUNT_OF(rows); i++)
        if (rows[i].dtype == dtype && dtype != BW_VOID)
            return (int64_t)i;
    return BW_ONNX_UNDEFINED;
}

char bw_onnx_letter_of(enum bw_dtype dtype)
{
    return rows[dtype == BW_VOID ? BW_ONNX_STRING : bw_onnx_dtype_to(dtype)].letter;
}
