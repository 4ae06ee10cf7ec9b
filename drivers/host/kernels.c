/* Kernel records of host objects: see host.h for the format. */
#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "drivers/host/object.h"

static int record_broken(struct bw_err *err, uint64_t offset, const char *field, uint64_t observed)
{
    bw_fail(err, -EINVAL, "elf", "kernel record at offset 0x%llx of section %s: %s",
            (unsigned long long)offset, BW_HOST_KERNEL_SECTION, field);
    bw_err_observed(err, "%llu", (unsigned long long)observed);
    return -EINVAL;
}

/* Where the records are; an object without any has no kernels, which is refused: it was not meant for this
 * device. */
static int records_find(const struct bw_host_object *object, const struct bw_host_section **records,
                        struct bw_err *err)
{
    for (uint32_t i = 0; i < object->section_count; i++) {
        if (object->sections[i].type == SHT_PROGBITS && /* its bytes lie in the file */
            strcmp(object->sections[i].name, BW_HOST_KERNEL_SECTION) == 0) {
            *records = &object->sections[i];
            return 0;
        }
    }
    bw_fail(err, -EINVAL, "elf", "object has no section %s", BW_HOST_KERNEL_SECTION);
    bw_err_hint(err, "kernels for the host describe themselves there: drivers/host/host.h");
    return -EINVAL;
}

/* Checks one record whose header is at `offset` of the section; copies it out. */
static int record_read(const struct bw_host_object *object, const struct bw_host_section *section,
                       uint64_t offset, struct bw_host_kernel_record *record, struct bw_err *err)
{
    uint64_t left_bytes = section->size_bytes - offset;
    if (left_bytes < sizeof *record)
        return record_broken(err, offset, "bytes left", left_bytes);
    memcpy(record, object->image + section->offset + offset, sizeof *record);
    if (record->magic != BW_HOST_KERNEL_MAGIC)
        return record_broken(err, offset, "magic", record->magic);
    if (record->argument_count > BW_HOST_ARGUMENTS_MAX)
        return record_broken(err, offset, "argument count", record->argument_count);
    uint64_t wanted_bytes = sizeof *record + record->argument_count * sizeof(struct bw_host_argument_record);
    if (record->record_bytes != wanted_bytes || wanted_bytes > left_bytes)
        return record_broken(err, offset, "record size", record->record_bytes);
    if (record->argument_bytes > BW_HOST_ARGUMENT_BLOCK_BYTES_MAX)
        return record_broken(err, offset, "argument block size", record->argument_bytes);
    if (!memchr(record->symbol, 0, sizeof record->symbol) || !record->symbol[0])
        return record_broken(err, offset, "symbol without end or empty, first byte",
                             (uint8_t)record->symbol[0]);
    if (record->reserved)
        return record_broken(err, offset, "reserved", record->reserved);
    return 0;
}

static int argument_read(const struct bw_host_argument_record *raw, uint32_t argument_bytes,
                         struct bw_argument_info *argument, uint64_t offset, struct bw_err *err)
{
    bool buffer = raw->kind == BW_ARGUMENT_BUFFER;
    if (!buffer && raw->kind != BW_ARGUMENT_VALUE)
        return record_broken(err, offset, "argument kind", raw->kind);
    if (!bw_is_pow2(raw->size_bytes) || raw->size_bytes > 8 || (buffer && raw->size_bytes != 8))
        return record_broken(err, offset, "argument size", raw->size_bytes);
    if (raw->offset % raw->size_bytes || raw->offset > argument_bytes ||
        raw->size_bytes > argument_bytes - raw->offset)
        return record_broken(err, offset, "argument offset", raw->offset);
    if (!memchr(raw->name, 0, sizeof raw->name))
        return record_broken(err, offset, "argument name without end, first byte", (uint8_t)raw->name[0]);
    *argument = (struct bw_argument_info){
        .kind = (enum bw_argument_kind)raw->kind, .offset = raw->offset, .size_bytes = raw->size_bytes};
    memcpy(argument->name, raw->name, sizeof argument->name);
    return 0;
}

static int kernel_fill(struct bw_host_program *program, const struct bw_host_kernel_record *record,
                       const uint8_t *raw, uint64_t offset, struct bw_err *err)
{
    struct bw_host_kernel *kernel = &program->kernels[program->kernel_count];
    *kernel = (struct bw_host_kernel){.groups_per_task = record->groups_per_task};
    kernel->arguments =
        calloc(record->argument_count ? record->argument_count : 1, sizeof *kernel->arguments);
    if (!kernel->arguments)
        return bw_fail(err, -ENOMEM, "elf", "kernel %s", record->symbol);
    program->kernel_count++;
    memcpy(kernel->name, record->symbol, sizeof kernel->name);
    kernel->base.info = (struct bw_kernel_info){.argument_count = record->argument_count,
                                                .arguments = kernel->arguments,
                                                .argument_bytes = record->argument_bytes,
                                                .wave_size = 1,
                                                .group_size_max = 1};
    for (uint32_t i = 0; i < record->argument_count; i++) {
        struct bw_host_argument_record argument;
        memcpy(&argument, raw + i * sizeof argument, sizeof argument);
        int rc = argument_read(&argument, record->argument_bytes, &kernel->arguments[i], offset, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bw_host_kernels_read(const struct bw_host_object *object, struct bw_host_program *program,
                         struct bw_err *err)
{
    const struct bw_host_section *section = NULL;
    int rc = records_find(object, &section, err);
    if (rc)
        return rc;
    uint64_t capacity = section->size_bytes / sizeof(struct bw_host_kernel_record) + 1;
    program->kernels = calloc(capacity, sizeof *program->kernels);
    if (!program->kernels)
        return bw_fail(err, -ENOMEM, "elf", "%llu kernels", (unsigned long long)capacity);
    for (uint64_t offset = 0; offset < section->size_bytes && !rc;) {
        struct bw_host_kernel_record record;
        rc = record_read(object, section, offset, &record, err);
        if (!rc)
            rc = kernel_fill(program, &record, object->image + section->offset + offset + sizeof record,
                             offset, err);
        offset += record.record_bytes;
    }
    for (uint32_t i = 0; i < program->kernel_count; i++) { /* the array does not move any more */
        program->kernels[i].base.info.name = program->kernels[i].name;
        program->kernels[i].base.program = &program->base;
    }
    if (rc)
        bw_host_kernels_free(program);
    return rc;
}

void bw_host_kernels_free(struct bw_host_program *program)
{
    for (uint32_t i = 0; i < program->kernel_count; i++)
        free(program->kernels[i].arguments);
    free(program->kernels);
    program->kernels = NULL;
    program->kernel_count = 0;
}

static void kernels_hint(const struct bw_host_program *program, struct bw_err *err)
{
    struct bw_text names = {0};
    for (uint32_t i = 0; i < program->kernel_count; i++)
        bw_text_add(&names, "%s%s", i ? ", " : "", program->kernels[i].name);
    bw_err_hint(err, "the program has: %s", bw_text_string(&names));
    bw_text_free(&names);
}

int bw_host_program_kernel(struct bw_program *base, const char *name, struct bw_kernel **kernel,
                           struct bw_err *err)
{
    struct bw_host_program *program = (struct bw_host_program *)base;
    assert(kernel);
    for (uint32_t i = 0; i < program->kernel_count; i++) {
        bool only = !name && program->kernel_count == 1;
        if (only || (name && strcmp(program->kernels[i].name, name) == 0)) {
            *kernel = &program->kernels[i].base;
            return 0;
        }
    }
    bw_fail(err, -ENOENT, "host", "kernel %s", name ? name : "(the only one)");
    kernels_hint(program, err);
    return -ENOENT;
}
