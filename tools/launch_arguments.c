/* Arguments of `bellwire launch`: see launch.h. */
#include "tools/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/io_npy.h"
#include "iface/name.h"
#include "tools/tool.h"

/* The text behind "TYPE:" as the bits of that type. */
static bool parse_bits(enum bw_dtype dtype, const char *text, uint64_t *bits)
{
    char *end = NULL;
    errno = 0;
    if (!*text || *text == ' ')
        return false;
    if (bw_dtype_is_float(dtype)) {
        double number = strtod(text, &end);
        float single = (float)number;
        uint16_t half = dtype == BW_BF16 ? bw_bf16_from_f64(number) : bw_f16_from_f64(number);
        const void *from = dtype == BW_F64   ? (void *)&number
                           : dtype == BW_F32 ? (void *)&single
                                             : (void *)&half;
        memcpy(bits, from, bw_dtype_bytes(dtype));
        return !*end;
    }
    unsigned width = 8 * bw_dtype_bytes(dtype);
    if (bw_dtype_is_signed(dtype)) {
        long long number = strtoll(text, &end, 0);
        *bits = (uint64_t)number & (width == 64 ? UINT64_MAX : (1ull << width) - 1);
        return !*end && !errno && number >= bw_dtype_int_min(dtype) && number <= bw_dtype_int_max(dtype);
    }
    unsigned long long number = strtoull(text, &end, 0);
    *bits = number;
    return !*end && !errno && *text != '-' && (width == 64 || number >> width == 0);
}

static int parse_value(struct bw_launch_argument *argument, const char *text, const char *colon)
{
    for (enum bw_dtype dtype = BW_BOOL; dtype < BW_DTYPE_COUNT; dtype++) {
        const char *name = bw_dtype_name(dtype);
        if (strlen(name) != (size_t)(colon - text) || strncmp(name, text, strlen(name)) != 0)
            continue;
        if (parse_bits(dtype, colon + 1, &argument->bits))
            return BW_TOOL_DONE;
        return bw_tool_usage("launch", "--arg %s: '%s' is not of type %s", text, colon + 1, name);
    }
    return bw_tool_usage("launch", "--arg %s: unknown type; i8 to i64, u8 to u64, f16, bf16, f32, f64, buf",
                         text);
}

static int parse_buffer(struct bw_launch_argument *argument, const char *text)
{
    struct bw_err err = {0};
    uint64_t size_bytes = 0;
    argument->is_buffer = true;
    if (bw_size_parse(text, &size_bytes)) {
        if (bw_npy_read(text, &argument->value, &err))
            return bw_tool_fail(&err);
        if (argument->value.kind != BW_VALUE_ARRAY)
            return bw_tool_usage("launch", "--arg buf:%s: strings are not for kernels", text);
        return BW_TOOL_DONE;
    }
    argument->value = (struct bw_value){
        .kind = BW_VALUE_ARRAY,
        .array = {.dtype = BW_U8, .rank = 1, .dims = {(int64_t)size_bytes}, .data = calloc(1, size_bytes)}};
    if (size_bytes && argument->value.array.data)
        return BW_TOOL_DONE;
    return bw_tool_usage("launch", "--arg buf:%s: %s", text,
                         size_bytes ? "more than there is memory" : "no bytes");
}

int bw_launch_argument_parse(struct bw_launch_arguments *arguments, const char *text)
{
    if (arguments->count == BW_LAUNCH_ARGUMENTS_MAX)
        return bw_tool_usage("launch", "more than %d arguments", BW_LAUNCH_ARGUMENTS_MAX);
    struct bw_launch_argument *argument = &arguments->at[arguments->count++];
    const char *colon = strchr(text, ':');
    if (!colon)
        return bw_tool_usage("launch", "--arg %s: expected TYPE:VALUE, buf:FILE.npy or buf:BYTES", text);
    return strncmp(text, "buf:", 4) ? parse_value(argument, text, colon) : parse_buffer(argument, colon + 1);
}

static uint64_t bytes_of(const struct bw_array *array)
{
    return (uint64_t)bw_array_elements(array) * bw_dtype_bytes(array->dtype);
}

int bw_launch_arguments_upload(struct bw_launch_arguments *arguments, struct bw_device *device,
                               struct bw_argument *calls, struct bw_err *err)
{
    for (uint32_t i = 0; i < arguments->count; i++) {
        struct bw_launch_argument *argument = &arguments->at[i];
        calls[i] = (struct bw_argument){.source = BW_ARG_VALUE, .value = argument->bits};
        if (!argument->is_buffer)
            continue;
        uint64_t size_bytes = bytes_of(&argument->value.array);
        if (!size_bytes)
            return bw_fail(err, -EINVAL, "launch", "argument %u: an array with no elements", i);
        int rc = bw_buffer_create(device, size_bytes, BW_BUFFER_DEVICE, &argument->buffer, err);
        if (!rc)
            rc = bw_buffer_write(argument->buffer, 0, argument->value.array.data, size_bytes, err);
        if (rc)
            return rc;
        calls[i] = (struct bw_argument){.source = BW_ARG_RANGE,
                                        .range = {argument->buffer, 0, 0, size_bytes},
                                        .access = BW_ACCESS_READ | BW_ACCESS_WRITE};
    }
    return 0;
}

int bw_launch_arguments_download(struct bw_launch_arguments *arguments, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < arguments->count && !rc; i++) {
        struct bw_launch_argument *argument = &arguments->at[i];
        if (argument->buffer)
            rc = bw_buffer_read(argument->buffer, 0, argument->value.array.data,
                                bytes_of(&argument->value.array), err);
    }
    return rc;
}

void bw_launch_arguments_free(struct bw_launch_arguments *arguments)
{
    for (uint32_t i = 0; i < arguments->count; i++) {
        bw_buffer_destroy(arguments->at[i].buffer);
        bw_value_free(&arguments->at[i].value);
    }
}
