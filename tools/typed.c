/* Values typed on the command line: "i32:7", "f32:0.5,1,2". */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/model.h>

#include "base/number.h"
#include "tools/tool.h"

static bool float_parse(enum bw_dtype dtype, const char *text, uint64_t *bits)
{
    double number;
    if (bw_real_take(&text, &number))
        return false;
    float single = (float)number;
    if (dtype == BW_F32 && isinf(single) && !isinf(number))
        return false;
    uint16_t half = dtype == BW_BF16 ? bw_bf16_from_f64(number) : bw_f16_from_f64(number);
    const void *from = dtype == BW_F64 ? (void *)&number : dtype == BW_F32 ? (void *)&single : (void *)&half;
    memcpy(bits, from, bw_dtype_bytes(dtype));
    return !*text;
}

bool bw_tool_element_parse(enum bw_dtype dtype, const char *text, uint64_t *bits)
{
    unsigned width = 8 * bw_dtype_bytes(dtype);
    if (bw_dtype_is_float(dtype))
        return float_parse(dtype, text, bits);
    if (bw_dtype_is_signed(dtype)) {
        int64_t number = 0;
        int rc = bw_integer_parse(text, &number);
        *bits = (uint64_t)number & (width == 64 ? UINT64_MAX : (1ull << width) - 1);
        return !rc && number >= bw_dtype_int_min(dtype) && number <= bw_dtype_int_max(dtype);
    }
    return !bw_number_parse(text, bits) &&
           (dtype == BW_BOOL ? *bits <= 1 : width == 64 || *bits >> width == 0);
}

enum bw_dtype bw_tool_dtype_named(const char *text, size_t length)
{
    for (enum bw_dtype dtype = BW_BOOL; dtype < BW_DTYPE_COUNT; dtype++)
        if (strlen(bw_dtype_name(dtype)) == length && !strncmp(bw_dtype_name(dtype), text, length))
            return dtype;
    return BW_VOID;
}

int bw_tool_elements_parse(enum bw_dtype dtype, const char *text, struct bw_value *value,
                           char wrong[BW_TOOL_NUMBER_BYTES])
{
    uint64_t count = 1, bits = 0;
    for (const char *at = strchr(text, ','); at; at = strchr(at + 1, ','))
        count++;
    char *data = calloc(count, bw_dtype_bytes(dtype));
    if (!data)
        return -ENOMEM;
    for (uint64_t i = 0; i < count; i++, text += strcspn(text, ",") + 1) {
        int length = snprintf(wrong, BW_TOOL_NUMBER_BYTES, "%.*s", (int)strcspn(text, ","), text);
        if (length >= BW_TOOL_NUMBER_BYTES || !bw_tool_element_parse(dtype, wrong, &bits)) {
            free(data);
            return -EINVAL;
        }
        memcpy(data + i * bw_dtype_bytes(dtype), &bits, bw_dtype_bytes(dtype));
    }
    *value = (struct bw_value){.kind = BW_VALUE_ARRAY,
                               .array = {.dtype = dtype, .rank = 1, .dims = {(int64_t)count}, .data = data}};
    return 0;
}
