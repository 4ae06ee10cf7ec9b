/* The MessagePack note of a code object: see code_object.h. Keys: LLVM AMDGPUUsage, "Code Object V5
 * Metadata". */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/code_object.h"

enum { NOTE_TYPE_AMDGPU_METADATA = 32 };
static const char note_name[] = "AMDGPU";
static const char subsystem[] = "elf";

struct hidden_name {
    const char *name;
    enum bw_amd_hidden kind;
    uint8_t size_bytes; /* 0: any */
};

static const struct hidden_name hidden_names[] = {
    {"hidden_block_count_x", BW_AMD_HIDDEN_BLOCK_COUNT_X, 4},
    {"hidden_block_count_y", BW_AMD_HIDDEN_BLOCK_COUNT_Y, 4},
    {"hidden_block_count_z", BW_AMD_HIDDEN_BLOCK_COUNT_Z, 4},
    {"hidden_group_size_x", BW_AMD_HIDDEN_GROUP_SIZE_X, 2},
    {"hidden_group_size_y", BW_AMD_HIDDEN_GROUP_SIZE_Y, 2},
    {"hidden_group_size_z", BW_AMD_HIDDEN_GROUP_SIZE_Z, 2},
    {"hidden_remainder_x", BW_AMD_HIDDEN_REMAINDER, 2},
    {"hidden_remainder_y", BW_AMD_HIDDEN_REMAINDER, 2},
    {"hidden_remainder_z", BW_AMD_HIDDEN_REMAINDER, 2},
    {"hidden_global_offset_x", BW_AMD_HIDDEN_GLOBAL_OFFSET, 8},
    {"hidden_global_offset_y", BW_AMD_HIDDEN_GLOBAL_OFFSET, 8},
    {"hidden_global_offset_z", BW_AMD_HIDDEN_GLOBAL_OFFSET, 8},
    {"hidden_grid_dims", BW_AMD_HIDDEN_GRID_DIMS, 2},
    {"hidden_dynamic_lds_size", BW_AMD_HIDDEN_DYNAMIC_LDS_SIZE, 4},
    {"hidden_private_base", BW_AMD_HIDDEN_PRIVATE_BASE, 4},
    {"hidden_shared_base", BW_AMD_HIDDEN_SHARED_BASE, 4},
    /* Listed at -O0 even by kernels that use none of them; one that follows such a pointer faults at address
       0. */
    {"hidden_none", BW_AMD_HIDDEN_ZERO, 0},
    {"hidden_printf_buffer", BW_AMD_HIDDEN_ZERO, 8},
    {"hidden_hostcall_buffer", BW_AMD_HIDDEN_ZERO, 8},
    {"hidden_default_queue", BW_AMD_HIDDEN_ZERO, 8},
    {"hidden_completion_action", BW_AMD_HIDDEN_ZERO, 8},
    {"hidden_multigrid_sync_arg", BW_AMD_HIDDEN_ZERO, 8},
    {"hidden_heap_v1", BW_AMD_HIDDEN_ZERO, 8},
    {"hidden_queue_ptr", BW_AMD_HIDDEN_ZERO, 8},
};

struct value_kind {
    const char *name;
    enum bw_argument_kind kind;
};
static const struct value_kind value_kinds[] = {
    {"global_buffer", BW_ARGUMENT_BUFFER},
    {"by_value", BW_ARGUMENT_VALUE},
    {"dynamic_shared_pointer", BW_ARGUMENT_VALUE}, /* an LDS offset, chosen by the caller */
};

/* MessagePack tags 0xc0 to 0xdf: bytes of length that follow the tag, fixed payload, elements per unit of
 * length. */
static const struct {
    uint8_t length_bytes, payload, scale;
} tag_forms[] = {{0, 0, 0},  {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {4, 0, 0}, {1, 1, 0},
                 {2, 1, 0},  {4, 1, 0}, {0, 4, 0}, {0, 8, 0}, {0, 1, 0}, {0, 2, 0}, {0, 4, 0}, {0, 8, 0},
                 {0, 1, 0},  {0, 2, 0}, {0, 4, 0}, {0, 8, 0}, {0, 2, 0}, {0, 3, 0}, {0, 5, 0}, {0, 9, 0},
                 {0, 17, 0}, {1, 0, 0}, {2, 0, 0}, {4, 0, 0}, {2, 0, 1}, {4, 0, 1}, {2, 0, 2}, {4, 0, 2}};
enum {
    TAG_FIXMAP = 0x80,
    TAG_FIXARRAY = 0x90,
    TAG_FIXSTR = 0xa0,
    TAG_FORMS = 0xc0,
    TAG_UNUSED = 0xc1,
    TAG_NEGATIVE = 0xe0
};

/* Reads one tag at *at and moves past it and its payload; *elements: how many objects follow inside it. */
static bool skip_tag(const uint8_t *data, uint64_t size_bytes, uint64_t *at, uint64_t *elements)
{
    *elements = 0;
    if (*at >= size_bytes)
        return false;
    uint8_t tag = data[(*at)++];
    uint64_t payload = 0;
    if (tag >= TAG_FORMS && tag < TAG_NEGATIVE) {
        uint64_t length = 0, length_bytes = tag_forms[tag - TAG_FORMS].length_bytes;
        if (tag == TAG_UNUSED || length_bytes > size_bytes - *at)
            return false;
        for (uint64_t i = 0; i < length_bytes; i++)
            length = length << 8 | data[(*at)++];
        *elements = length * tag_forms[tag - TAG_FORMS].scale;
        payload = tag_forms[tag - TAG_FORMS].payload + (tag_forms[tag - TAG_FORMS].scale ? 0 : length);
    } else if (tag >= TAG_FIXSTR && tag < TAG_FORMS) {
        payload = tag - TAG_FIXSTR;
    } else if (tag >= TAG_FIXMAP && tag < TAG_FIXSTR) {
        *elements = tag < TAG_FIXARRAY ? 2u * (tag - TAG_FIXMAP) : (uint64_t)tag - TAG_FIXARRAY;
    }
    if (payload > size_bytes - *at)
        return false;
    *at += payload;
    return true;
}

/* libmsgpackc allocates arrays and maps by their declared length. This walk makes sure that every declared
 * element has at least one byte in the data, so that what it allocates is bounded by the file's size. */
static bool is_bounded(const uint8_t *data, uint64_t size_bytes)
{
    uint64_t at = 0, pending = 1, elements;
    while (pending) {
        if (!skip_tag(data, size_bytes, &at, &elements))
            return false;
        pending += elements - 1;
        if (pending > size_bytes - at)
            return false;
    }
    return true;
}

static const msgpack_object *map_get(const msgpack_object *map, const char *key)
{
    size_t length = strlen(key);
    for (uint32_t i = 0; map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size; i++) {
        const msgpack_object *name = &map->via.map.ptr[i].key;
        if (name->type == MSGPACK_OBJECT_STR && name->via.str.size == length &&
            memcmp(name->via.str.ptr, key, length) == 0)
            return &map->via.map.ptr[i].val;
    }
    return NULL;
}

/* The unsigned integer under key, `absent` when there is none. */
static int map_u32(const msgpack_object *map, const char *key, uint32_t absent, uint32_t *value,
                   const char *where, struct bw_err *err)
{
    const msgpack_object *found = map_get(map, key);
    *value = absent;
    if (!found)
        return 0;
    if (found->type != MSGPACK_OBJECT_POSITIVE_INTEGER || found->via.u64 > UINT32_MAX)
        return bw_fail(err, -EINVAL, subsystem, "metadata of %s: %s is not a 32-bit unsigned integer", where,
                       key);
    *value = (uint32_t)found->via.u64;
    return 0;
}

/* A NUL-terminated copy of the string under key; NULL when there is none or no memory. */
static char *map_string(const msgpack_object *map, const char *key, struct bw_arena *arena)
{
    const msgpack_object *found = map_get(map, key);
    if (!found || found->type != MSGPACK_OBJECT_STR)
        return NULL;
    char *copy = bw_arena_alloc(arena, (size_t)found->via.str.size + 1);
    if (copy)
        memcpy(copy, found->via.str.ptr, found->via.str.size);
    return copy;
}

static bool has_hidden(const struct bw_amd_code_kernel *kernel, enum bw_amd_hidden kind)
{
    for (uint32_t i = 0; i < kernel->hidden_count; i++)
        if (kernel->hidden[i].kind == kind)
            return true;
    return false;
}

static int add_hidden(struct bw_amd_code_kernel *kernel, const char *kind, uint32_t offset,
                      uint32_t size_bytes, struct bw_err *err)
{
    for (size_t i = 0; i < BW_COUNT_OF(hidden_names); i++) {
        const struct hidden_name *row = &hidden_names[i];
        if (strcmp(row->name, kind) != 0)
            continue;
        if (row->size_bytes && (row->size_bytes != size_bytes || offset % size_bytes))
            return bw_fail(err, -EINVAL, subsystem, "metadata of %s: %s of %u bytes at %u", kernel->name,
                           kind, size_bytes, offset);
        /* A count may be a patch of the block, and there is room for one of each. */
        if (row->kind >= BW_AMD_HIDDEN_BLOCK_COUNT_X && row->kind <= BW_AMD_HIDDEN_BLOCK_COUNT_Z &&
            has_hidden(kernel, row->kind))
            return bw_fail(err, -EINVAL, subsystem, "metadata of %s: %s twice", kernel->name, kind);
        kernel->hidden[kernel->hidden_count++] =
            (struct bw_amd_hidden_argument){row->kind, offset, size_bytes};
        return 0;
    }
    return bw_fail(err, -ENOTSUP, subsystem, "metadata of %s: hidden argument %s is not known", kernel->name,
                   kind);
}

static int add_visible(struct bw_amd_code_kernel *kernel, const char *kind, const char *name, uint32_t offset,
                       uint32_t size_bytes, struct bw_err *err)
{
    for (size_t i = 0; i < BW_COUNT_OF(value_kinds); i++) {
        if (strcmp(value_kinds[i].name, kind) != 0)
            continue;
        if (value_kinds[i].kind == BW_ARGUMENT_BUFFER &&
            (size_bytes != sizeof(uint64_t) || offset % sizeof(uint64_t)))
            return bw_fail(err, -EINVAL, subsystem, "metadata of %s: a buffer of %u bytes at %u",
                           kernel->name, size_bytes, offset);
        struct bw_argument_info *info = &kernel->arguments[kernel->argument_count++];
        info->kind = value_kinds[i].kind;
        info->offset = offset;
        info->size_bytes = size_bytes;
        snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, name ? name : "");
        return 0;
    }
    return bw_fail(err, -ENOTSUP, subsystem, "metadata of %s: argument kind %s is not supported",
                   kernel->name, kind);
}

static int read_argument(struct bw_amd_code_object *object, struct bw_amd_code_kernel *kernel,
                         const msgpack_object *arg, struct bw_err *err)
{
    uint32_t offset, size_bytes;
    int rc = map_u32(arg, ".offset", 0, &offset, kernel->name, err);
    rc = rc ? rc : map_u32(arg, ".size", 0, &size_bytes, kernel->name, err);
    if (rc)
        return rc;
    if (size_bytes == 0 || size_bytes > kernel->metadata_argument_bytes ||
        offset > kernel->metadata_argument_bytes - size_bytes)
        return bw_fail(err, -EINVAL, subsystem, "metadata of %s: argument at %u of %u bytes in a block of %u",
                       kernel->name, offset, size_bytes, kernel->metadata_argument_bytes);
    const char *kind = map_string(arg, ".value_kind", &object->arena);
    if (!kind)
        return bw_fail(err, -EINVAL, subsystem, "metadata of %s: argument at %u has no .value_kind",
                       kernel->name, offset);
    if (strncmp(kind, "hidden_", strlen("hidden_")) == 0)
        return add_hidden(kernel, kind, offset, size_bytes, err);
    return add_visible(kernel, kind, map_string(arg, ".name", &object->arena), offset, size_bytes, err);
}

static int read_arguments(struct bw_amd_code_object *object, struct bw_amd_code_kernel *kernel,
                          const msgpack_object *map, struct bw_err *err)
{
    const msgpack_object *args = map_get(map, ".args");
    if (!args)
        return 0;
    if (args->type != MSGPACK_OBJECT_ARRAY || args->via.array.size > BW_AMD_ARGUMENTS_MAX)
        return bw_fail(err, -EINVAL, subsystem, "metadata of %s: .args is not an array of at most %u",
                       kernel->name, BW_AMD_ARGUMENTS_MAX);
    uint32_t count = args->via.array.size;
    kernel->arguments = bw_arena_alloc(&object->arena, count * sizeof *kernel->arguments);
    kernel->hidden = bw_arena_alloc(&object->arena, count * sizeof *kernel->hidden);
    if (!kernel->arguments || !kernel->hidden)
        return bw_fail(err, -ENOMEM, subsystem, "%u arguments", count);
    for (uint32_t i = 0; i < count; i++) {
        int rc = read_argument(object, kernel, &args->via.array.ptr[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_required_size(struct bw_amd_code_kernel *kernel, const msgpack_object *map,
                              struct bw_err *err)
{
    const msgpack_object *size = map_get(map, ".reqd_workgroup_size");
    if (!size)
        return 0;
    if (size->type != MSGPACK_OBJECT_ARRAY || size->via.array.size != 3)
        return bw_fail(err, -EINVAL, subsystem, "metadata of %s: .reqd_workgroup_size is not 3 numbers",
                       kernel->name);
    for (int i = 0; i < 3; i++) {
        const msgpack_object *item = &size->via.array.ptr[i];
        if (item->type != MSGPACK_OBJECT_POSITIVE_INTEGER || item->via.u64 < 1 ||
            item->via.u64 > BW_AMD_GROUP_SIZE_MAX)
            return bw_fail(err, -EINVAL, subsystem,
                           "metadata of %s: .reqd_workgroup_size[%d] is not in 1..%u", kernel->name, i,
                           BW_AMD_GROUP_SIZE_MAX);
        kernel->group_size_required[i] = (uint32_t)item->via.u64;
    }
    return 0;
}

static int read_kernel(struct bw_amd_code_object *object, struct bw_amd_code_kernel *kernel,
                       const msgpack_object *map, struct bw_err *err)
{
    kernel->name = map_string(map, ".name", &object->arena);
    kernel->symbol = map_string(map, ".symbol", &object->arena);
    kernel->has_metadata = true;
    if (!kernel->name || !kernel->symbol)
        return bw_fail(err, -EINVAL, subsystem, "metadata: kernel %td has no .name or .symbol",
                       kernel - object->kernels);
    int rc = map_u32(map, ".kernarg_segment_size", 0, &kernel->metadata_argument_bytes, kernel->name, err);
    rc = rc ? rc : map_u32(map, ".kernarg_segment_align", 8, &kernel->argument_alignment, kernel->name, err);
    rc = rc ? rc : map_u32(map, ".max_flat_workgroup_size", 0, &kernel->group_size_max, kernel->name, err);
    rc = rc ? rc
            : map_u32(map, ".wavefront_size", object->arch->wave_size, &kernel->wave_size, kernel->name, err);
    if (!rc &&
        (!bw_is_pow2(kernel->argument_alignment) || kernel->argument_alignment > BW_AMD_ARGUMENT_ALIGNMENT))
        rc = bw_fail(err, -E2BIG, subsystem, "metadata of %s: arguments aligned to %u, at most %u is kept",
                     kernel->name, kernel->argument_alignment, BW_AMD_ARGUMENT_ALIGNMENT);
    rc = rc ? rc : read_required_size(kernel, map, err);
    return rc ? rc : read_arguments(object, kernel, map, err);
}

static int read_kernels(struct bw_amd_code_object *object, const msgpack_object *root, struct bw_err *err)
{
    const msgpack_object *kernels = map_get(root, "amdhsa.kernels");
    if (!kernels || kernels->type != MSGPACK_OBJECT_ARRAY || kernels->via.array.size > BW_AMD_KERNELS_MAX)
        return bw_fail(err, -EINVAL, subsystem, "metadata: amdhsa.kernels is not an array of at most %u",
                       BW_AMD_KERNELS_MAX);
    uint32_t count = kernels->via.array.size;
    object->kernels = bw_arena_alloc(&object->arena, count * sizeof *object->kernels);
    if (!object->kernels)
        return bw_fail(err, -ENOMEM, subsystem, "%u kernels", count);
    for (uint32_t i = 0; i < count; i++) {
        int rc = read_kernel(object, &object->kernels[i], &kernels->via.array.ptr[i], err);
        if (rc)
            return rc;
        object->kernel_count++;
    }
    return 0;
}

static int read_messagepack(struct bw_amd_code_object *object, const uint8_t *data, uint64_t size_bytes,
                            uint64_t file_offset, struct bw_err *err)
{
    if (!is_bounded(data, size_bytes))
        return bw_fail(err, -EINVAL, subsystem, "metadata note at 0x%" PRIx64 ": not MessagePack",
                       file_offset);
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    msgpack_unpack_return rc = msgpack_unpack_next(&unpacked, (const char *)data, size_bytes, NULL);
    int result = rc == MSGPACK_UNPACK_SUCCESS || rc == MSGPACK_UNPACK_EXTRA_BYTES
                     ? read_kernels(object, &unpacked.data, err)
                     : bw_fail(err, -EINVAL, subsystem, "metadata note at 0x%" PRIx64 ": not MessagePack",
                               file_offset);
    msgpack_unpacked_destroy(&unpacked);
    return result;
}

/* Walks the notes of one section; *found when it held the metadata. */
static int read_note_section(struct bw_amd_code_object *object, const struct bw_amd_elf_section *section,
                             bool *found, struct bw_err *err)
{
    const uint8_t *data = bw_amd_elf_content(&object->elf, section);
    for (uint64_t at = 0; section->size_bytes - at >= sizeof(Elf64_Nhdr) && !*found;) {
        Elf64_Nhdr note;
        memcpy(&note, data + at, sizeof note);
        uint64_t left = section->size_bytes - at - sizeof note;
        /* Name and payload are each padded to 4 bytes; 64-bit arithmetic on 32-bit sizes cannot wrap. */
        uint64_t name_bytes = bw_align_up(note.n_namesz, 4), payload_bytes = bw_align_up(note.n_descsz, 4);
        if (name_bytes > left || note.n_descsz > left - name_bytes)
            return bw_fail(err, -EINVAL, subsystem, "note at 0x%" PRIx64 " is longer than its section %s",
                           section->offset + at, section->name);
        const uint8_t *name = data + at + sizeof note;
        if (note.n_type == NOTE_TYPE_AMDGPU_METADATA && note.n_namesz == sizeof note_name &&
            memcmp(name, note_name, sizeof note_name) == 0) {
            *found = true;
            return read_messagepack(object, name + name_bytes, note.n_descsz, section->offset + at, err);
        }
        uint64_t step = sizeof note + name_bytes + payload_bytes;
        at = step > section->size_bytes - at ? section->size_bytes : at + step;
    }
    return 0;
}

int bw_amd_metadata_read(struct bw_amd_code_object *object, struct bw_err *err)
{
    bool found = false;
    for (uint32_t i = 0; i < object->elf.section_count && !found; i++) {
        if (object->elf.sections[i].type != SHT_NOTE)
            continue;
        int rc = read_note_section(object, &object->elf.sections[i], &found, err);
        if (rc)
            return rc;
    }
    return 0;
}
