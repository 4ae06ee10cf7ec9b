/* Arguments of `bellwire launch`: see launch.h. */
#include "tools/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/number.h"
#include "base/text.h"
#include "compiler/io_npy.h"
#include "tools/tool.h"

enum {
    LDS_BYTES_MAX = 1 << 20, /* above what any GPU has: the launch refuses by the device's own limit */
    LDS_ALIGN_BYTES = 16,    /* of the largest type that OpenCL has */
    LDS_POINTER_BYTES = 4,
    BUFFER_POINTER_BYTES = 8,
};

static const uint64_t BUFFER_BYTES_MAX = 1ull << 39; /* 512 GiB: above the memory of any GPU */

static int value_fail(const char *argument, const char *value, enum bw_dtype dtype)
{
    return bw_tool_usage("launch", "--arg %s: '%s' is not of type %s%s", argument, value,
                         bw_dtype_name(dtype), dtype == BW_BOOL ? ", which is 0 or 1" : "");
}

static int type_fail(const char *argument)
{
    struct bw_text known = {0};
    for (enum bw_dtype dtype = BW_BOOL; dtype < BW_DTYPE_COUNT; dtype++)
        bw_text_add(&known, "%s, ", bw_dtype_name(dtype));
    int status = bw_tool_usage("launch", "--arg %s: unknown type; there are: %sbuf, lds", argument,
                               bw_text_string(&known));
    bw_text_free(&known);
    return status;
}

static int parse_value(struct bw_launch_argument *argument, const char *text, const char *colon)
{
    enum bw_dtype dtype = bw_tool_dtype_named(text, (size_t)(colon - text));
    if (dtype == BW_VOID)
        return type_fail(text);
    argument->value_bytes = bw_dtype_bytes(dtype);
    if (bw_tool_element_parse(dtype, colon + 1, &argument->bits))
        return BW_TOOL_DONE;
    return value_fail(text, colon + 1, dtype);
}

static int zeros_make(struct bw_launch_argument *argument, enum bw_dtype dtype, uint64_t count)
{
    if (!count)
        return bw_tool_usage("launch", "--arg %s: no bytes", argument->text);
    void *data =
        count > BUFFER_BYTES_MAX / bw_dtype_bytes(dtype) ? NULL : calloc(count, bw_dtype_bytes(dtype));
    argument->value = (struct bw_value){
        .kind = BW_VALUE_ARRAY, .array = {.dtype = dtype, .rank = 1, .dims = {(int64_t)count}, .data = data}};
    return data ? BW_TOOL_DONE
                : bw_tool_usage("launch", "--arg %s: more than there is memory", argument->text);
}

/* "1,2,3" */
static int parse_elements(struct bw_launch_argument *argument, enum bw_dtype dtype, const char *text)
{
    char wrong[BW_TOOL_NUMBER_BYTES];
    int status = bw_tool_elements_parse(dtype, text, &argument->value, wrong);
    return !status ? BW_TOOL_DONE
           : status == -ENOMEM
               ? bw_tool_usage("launch", "--arg %s: more than there is memory", argument->text)
               : value_fail(argument->text, wrong, dtype);
}

/* "TYPE[COUNT]" or "TYPE:V,V,...": *taken, or it is none of them. */
static int parse_typed(struct bw_launch_argument *argument, const char *text, bool *taken)
{
    size_t length = strcspn(text, ":[");
    enum bw_dtype dtype = bw_tool_dtype_named(text, length);
    *taken = dtype != BW_VOID && text[length];
    if (!*taken)
        return BW_TOOL_DONE;
    if (text[length] == ':')
        return parse_elements(argument, dtype, text + length + 1);
    uint64_t count;
    text += length + 1;
    if (bw_number_take(&text, &count) || strcmp(text, "]") != 0)
        return bw_tool_usage("launch", "--arg %s: expected a number of elements, as in buf:f32[64]",
                             argument->text);
    return zeros_make(argument, dtype, count);
}

static int parse_buffer(struct bw_launch_argument *argument, const char *text)
{
    struct bw_err err = {0};
    uint64_t size_bytes = 0;
    bool taken;
    int status = parse_typed(argument, text, &taken);
    argument->kind = BW_LAUNCH_BUFFER;
    if (taken)
        return status;
    if (!*text)
        return bw_tool_usage(
            "launch", "--arg buf: expected buf:64K, buf:f32[64], buf:i32:1,2,3 or buf:FILE.npy behind it");
    if (!bw_size_parse(text, &size_bytes))
        return zeros_make(argument, BW_U8, size_bytes);
    if (bw_npy_read(text, &argument->value, &err)) {
        if (err.code == -ENOENT && !strchr(text, '.'))
            bw_err_hint(
                &err,
                "no such file, and no size either: buf:64K, buf:f32[64], buf:i32:1,2,3 or buf:FILE.npy");
        return bw_tool_fail(&err);
    }
    if (argument->value.kind != BW_VALUE_ARRAY)
        return bw_tool_usage("launch", "--arg %s: strings are not for kernels", argument->text);
    return BW_TOOL_DONE;
}

static int parse_lds(struct bw_launch_argument *argument, const char *text)
{
    argument->kind = BW_LAUNCH_LDS;
    if (!bw_size_parse(text, &argument->bits) && argument->bits && argument->bits <= LDS_BYTES_MAX)
        return BW_TOOL_DONE;
    return bw_tool_usage("launch", "--arg %s: expected bytes, at most %d", argument->text, LDS_BYTES_MAX);
}

int bw_launch_argument_parse(struct bw_launch_arguments *arguments, const char *text)
{
    if (arguments->count == BW_LAUNCH_ARGUMENTS_MAX)
        return bw_tool_usage("launch", "more than %d arguments", BW_LAUNCH_ARGUMENTS_MAX);
    struct bw_launch_argument *argument = &arguments->at[arguments->count++];
    const char *colon = strchr(text, ':');
    argument->text = text;
    if (!colon)
        return bw_tool_usage("launch", "--arg %s: expected TYPE:VALUE, buf:FILE.npy, buf:BYTES or lds:BYTES",
                             text);
    return !strncmp(text, "buf:", 4)   ? parse_buffer(argument, colon + 1)
           : !strncmp(text, "lds:", 4) ? parse_lds(argument, colon + 1)
                                       : parse_value(argument, text, colon);
}

/* ---- against the kernel ---- */

/* "0 x: buffer, 1: value of 4 bytes" */
static void arguments_hint(const struct bw_kernel_info *kernel, struct bw_err *err)
{
    struct bw_text text = {0};
    for (uint32_t i = 0; i < kernel->argument_count; i++) {
        const struct bw_argument_info *info = &kernel->arguments[i];
        bw_text_add(&text, "%s%u%s%s ", i ? ", " : "", i, info->name[0] ? " " : "", info->name);
        if (info->kind == BW_ARGUMENT_BUFFER)
            bw_text_add(&text, "buffer");
        else
            bw_text_add(&text, "value of %u bytes", info->size_bytes);
    }
    if (kernel->argument_count)
        bw_err_hint(err, "its arguments: %s", bw_text_string(&text));
    else if (kernel->undescribed_bytes)
        bw_err_hint(
            err,
            "the code object does not describe them: give such as fill its %u bytes, each at a multiple of "
            "its size, or add .amdgpu_metadata with .args",
            kernel->undescribed_bytes);
    bw_text_free(&text);
}

static bool argument_fits(const struct bw_launch_argument *argument, const struct bw_argument_info *info)
{
    if (info->kind == BW_ARGUMENT_BUFFER)
        return argument->kind == BW_LAUNCH_BUFFER;
    return argument->kind == BW_LAUNCH_LDS
               ? info->size_bytes == LDS_POINTER_BYTES
               : argument->kind == BW_LAUNCH_VALUE && argument->value_bytes == info->size_bytes;
}

static uint32_t packed_bytes(const struct bw_launch_argument *argument)
{
    return argument->kind == BW_LAUNCH_BUFFER ? BUFFER_POINTER_BYTES
           : argument->kind == BW_LAUNCH_LDS  ? LDS_POINTER_BYTES
                                              : argument->value_bytes;
}

int bw_launch_arguments_describe(struct bw_launch_arguments *arguments, struct bw_kernel *kernel,
                                 struct bw_err *err)
{
    uint32_t wanted = bw_kernel_info(kernel)->undescribed_bytes, alignment = 1;
    uint64_t end = 0;
    for (uint32_t i = 0; i < arguments->count; i++) {
        uint32_t size_bytes = packed_bytes(&arguments->at[i]);
        uint64_t offset = bw_align_up(end, size_bytes);
        arguments->described[i] = (struct bw_argument_info){
            .kind = arguments->at[i].kind == BW_LAUNCH_BUFFER ? BW_ARGUMENT_BUFFER : BW_ARGUMENT_VALUE,
            .offset = (uint32_t)offset,
            .size_bytes = size_bytes,
        };
        end = offset + size_bytes;
        alignment = size_bytes > alignment ? size_bytes : alignment;
    }
    /* A segment may end like a structure, padded to the largest alignment in it. */
    if (!wanted || (end != wanted && bw_align_up(end, alignment) != wanted))
        return 0;
    return bw_kernel_describe(kernel, arguments->described, arguments->count, err);
}

int bw_launch_arguments_check(const struct bw_launch_arguments *arguments,
                              const struct bw_kernel_info *kernel, struct bw_err *err)
{
    if (arguments->count != kernel->argument_count || kernel->undescribed_bytes) {
        bw_fail(err, -EINVAL, "launch", "kernel %s: number of arguments", kernel->name);
        if (kernel->undescribed_bytes)
            bw_err_expected(err, "such as fill %u bytes", kernel->undescribed_bytes);
        else
            bw_err_expected(err, "%u", kernel->argument_count);
        bw_err_observed(err, "%u", arguments->count);
        arguments_hint(kernel, err);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < arguments->count; i++) {
        const struct bw_argument_info *info = &kernel->arguments[i];
        if (argument_fits(&arguments->at[i], info))
            continue;
        bw_fail(err, -EINVAL, "launch", "kernel %s: argument %u", kernel->name, i);
        if (info->kind == BW_ARGUMENT_BUFFER)
            bw_err_expected(err, "a buffer");
        else
            bw_err_expected(err, "a value of %u bytes", info->size_bytes);
        bw_err_observed(err, "%s", arguments->at[i].text);
        if (info->kind != BW_ARGUMENT_BUFFER && info->size_bytes > sizeof arguments->at[i].bits)
            bw_err_hint(err, "structures by value cannot be given here: pass a pointer to one, in a buffer");
        else
            arguments_hint(kernel, err);
        return -EINVAL;
    }
    return 0;
}

static uint64_t bytes_of(const struct bw_array *array)
{
    return (uint64_t)bw_array_elements(array) * bw_dtype_bytes(array->dtype);
}

/* LDS of the launch lies behind the kernel's own; the argument is where. */
static uint64_t lds_place(const struct bw_kernel_info *kernel, struct bw_launch *launch, uint64_t size_bytes)
{
    uint64_t offset = bw_align_up(kernel->group_memory_bytes + launch->dynamic_lds_bytes, LDS_ALIGN_BYTES);
    launch->dynamic_lds_bytes = (uint32_t)(offset + size_bytes - kernel->group_memory_bytes);
    return offset;
}

int bw_launch_arguments_upload(struct bw_launch_arguments *arguments, struct bw_device *device,
                               const struct bw_kernel_info *kernel, struct bw_launch *launch,
                               struct bw_argument *calls, struct bw_err *err)
{
    for (uint32_t i = 0; i < arguments->count; i++) {
        struct bw_launch_argument *argument = &arguments->at[i];
        calls[i] = (struct bw_argument){.source = BW_ARG_VALUE, .value = argument->bits};
        if (argument->kind == BW_LAUNCH_LDS)
            calls[i].value = lds_place(kernel, launch, argument->bits);
        if (argument->kind != BW_LAUNCH_BUFFER)
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
    launch->arguments = calls;
    launch->argument_count = arguments->count;
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
