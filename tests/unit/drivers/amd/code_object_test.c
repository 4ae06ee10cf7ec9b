/* Goal: code objects as LLVM makes them load, relocatable and linked, and whatever else calls itself one is
 * refused with the place that is wrong. */
#include "drivers/amd/code_object.h"

#include <errno.h>

#include "base/bits.h"
#include "base/rng.h"
#include "tests/check.h"
#include "tests/unit/drivers/amd/elf_files.h"

static const uint64_t base = 0x7f4512345000;

static int load(struct bw_amd_code_object *object, const struct elf_file *file, struct bw_err *err)
{
    int rc = bw_amd_code_object_parse(object, bw_amd_arch_find("gfx1100"), file->data, file->size_bytes, err);
    return rc ? rc : bw_amd_code_object_link(object, base, err);
}

/* Loads and frees; the result, and the error's text in err. */
static int try_load(const struct elf_file *file, struct bw_err *err)
{
    struct bw_amd_code_object object;
    memset(err, 0, sizeof *err);
    int rc = load(&object, file, err);
    bw_amd_code_object_free(&object);
    return rc;
}

static uint64_t read64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t read32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void check_kernels(const struct bw_amd_code_object *object)
{
    if (!BW_EQ(object->kernel_count, 2))
        return;
    const struct bw_amd_code_kernel *add = &object->kernels[0], *empty = &object->kernels[1];
    BW_STR(add->name, "vector_add");
    BW_EQ(add->argument_count, 4);
    BW_STR(add->arguments[0].name, "a");
    BW_EQ(add->arguments[0].kind, BW_ARGUMENT_BUFFER);
    BW_STR(add->arguments[3].name, "count");
    BW_EQ(add->arguments[3].kind, BW_ARGUMENT_VALUE);
    BW_EQ(add->arguments[3].offset, 24);
    BW_EQ(add->arguments[3].size_bytes, 4);
    BW_EQ(add->hidden_count, 8);
    BW_EQ(add->hidden[3].kind, BW_AMD_HIDDEN_GROUP_SIZE_X);
    BW_EQ(add->hidden[3].offset, 44);
    BW_EQ(add->descriptor.argument_bytes, 56);
    BW_EQ(add->group_size_max, 256);
    BW_EQ(add->wave_size, 32);
    BW_EQ(add->descriptor.properties, BW_AMD_KERNEL_KERNARG_SEGMENT_PTR | BW_AMD_KERNEL_WAVEFRONT_SIZE32);
    BW_EQ(bw_amd_descriptor_user_sgprs(&add->descriptor), 2);
    BW_STR(empty->name, "empty");
    BW_EQ(empty->wave_size, 64);
    BW_EQ(empty->descriptor.group_bytes, 1024);
    BW_EQ(empty->descriptor.private_bytes, 48);
    BW_EQ(empty->group_size_required[0], 64);
    BW_EQ(empty->descriptor.properties, BW_AMD_KERNEL_DISPATCH_PTR | BW_AMD_KERNEL_QUEUE_PTR |
                                            BW_AMD_KERNEL_DISPATCH_ID | BW_AMD_KERNEL_PRIVATE_SEGMENT_SIZE |
                                            BW_AMD_KERNEL_USES_DYNAMIC_STACK);
    BW_EQ(bw_amd_descriptor_user_sgprs(&empty->descriptor), 7);
    /* s_load_b256 s[4:11], s[0:1], 0x0 and s_getpc_b64 s[2:3], as the disassembler shows them */
    BW_EQ(read32(object->image + add->entry_offset), 0xf40c0100);
    BW_EQ(read32(object->image + empty->entry_offset), 0xbe824700);
}

static void relocatable_objects_are_placed_and_relocated(void)
{
    struct elf_file file = elf_file_read("kernels.rel.elf");
    struct bw_amd_code_object object;
    struct bw_err err;
    if (BW_OK(load(&object, &file, &err), &err)) {
        check_kernels(&object);
        /* .text 0x158 at 0, .rodata 0x80 at 0x180, .data 0x1c at 0x200, .bss 4 at 0x21c: file order, own
         * alignment */
        const uint8_t *image = object.image;
        uint64_t counter = base + 0x21c, pointer = base + 0x200;
        BW_EQ(read64(image + 0x200), counter);
        BW_EQ(read64(image + 0x208), base);
        BW_EQ(read32(image + 0x210), (uint32_t)(counter - (base + 0x210)));
        BW_EQ(read32(image + 0x214), (uint32_t)pointer);
        BW_EQ(read32(image + 0x218), (uint32_t)(pointer >> 32));
        /* s_getpc at 0x100 returns 0x104; the two halves together reach counter from there. */
        uint64_t reach = read32(image + 0x108) | (uint64_t)read32(image + 0x110) << 32;
        BW_EQ(base + 0x104 + reach, counter);
        BW_EQ(read32(image + 0x21c), 0);
        BW_EQ(object.kernels[0].entry_offset, 0);
        BW_EQ(object.kernels[1].entry_offset, 0x100);
        /* Another base, same object. */
        BW_OK(bw_amd_code_object_link(&object, 0x1000, &err), &err);
        BW_EQ(read64(object.image + 0x200), 0x1000 + 0x21c);
    }
    bw_amd_code_object_free(&object);
    free(file.data);
}

static void linked_objects_load_alike(void)
{
    struct elf_file file = elf_file_read("kernels.dyn.elf");
    struct bw_amd_code_object object;
    struct bw_err err;
    if (BW_OK(load(&object, &file, &err), &err)) {
        check_kernels(&object);
        BW_EQ(object.image_bytes, 0x3b20);
        BW_EQ(object.kernels[0].entry_offset, 0x1900);
        BW_EQ(read64(object.image + 0x3b08), base + 0x3b1c);
        BW_EQ(read64(object.image + 0x3b10), base + 0x1900);
    }
    bw_amd_code_object_free(&object);
    free(file.data);
}

static void refused(struct elf_file *file, int code, const char *part)
{
    struct bw_err err;
    char line[512];
    BW_EQ(try_load(file, &err), code);
    bw_err_format(&err, line, sizeof line);
    if (!BW_TRUE(strstr(line, part) != NULL))
        printf("      \"%s\" is not in \"%s\"\n", part, line);
}

static void wrong_files_are_named(void)
{
    struct elf_file file = elf_file_read("kernels.rel.elf");
    Elf64_Ehdr *header = (Elf64_Ehdr *)file.data;
    header->e_flags = 0x4e;
    refused(&file, -ENOTSUP, "expected gfx1100, observed gfx1201");
    header->e_flags = 0x7f;
    refused(&file, -ENOTSUP, "an unknown machine");
    header->e_flags = 0x41;
    header->e_machine = EM_X86_64;
    refused(&file, -ENOTSUP, "e_machine at 0x12: expected 224 (AMDGPU), observed 62");
    header->e_machine = 224;
    header->e_ident[EI_ABIVERSION] = 4;
    refused(&file, -ENOTSUP, "OS ABI 64, version 4");
    header->e_ident[EI_ABIVERSION] = 3;
    header->e_ident[0] = 0;
    refused(&file, -EINVAL, "magic at 0x0");
    header->e_ident[0] = 0x7f;
    struct elf_file cut = {file.data, 63};
    refused(&cut, -EINVAL, "63 bytes: no room for an ELF header");
    elf_section(&file, ".text")->sh_offset = 1ull << 63;
    refused(&file, -EINVAL, "section 2: [0x8000000000000000, +0x158) is outside the file");
    free(file.data);
}

static void wrong_sections_are_named(void)
{
    struct elf_file file = elf_file_read("kernels.rel.elf");
    Elf64_Shdr *bss = elf_section(&file, ".bss"), saved = *bss;
    bss->sh_size = UINT64_MAX;
    refused(&file, -E2BIG, "at most 0x10000000 bytes (BW_AMD_IMAGE_BYTES_MAX)");
    *bss = saved;
    bss->sh_addralign = 8192;
    refused(&file, -E2BIG, "section 8 (.bss): alignment 0x2000, at most 4096 is kept");
    *bss = saved;
    bss->sh_addralign = 3;
    refused(&file, -EINVAL, "section 8: alignment 0x3 is no power of two");
    *bss = saved;
    bss->sh_flags |= SHF_TLS;
    refused(&file, -ENOTSUP, "section 8 (.bss): thread-local data");
    *bss = saved;
    Elf64_Sym *symbols = (Elf64_Sym *)elf_content(&file, ".symtab");
    Elf64_Sym *counter = &symbols[elf_symbol(&file, "counter")];
    counter->st_shndx = SHN_UNDEF;
    refused(&file, -EINVAL, "undefined symbol counter");
    counter->st_shndx = 0xff00;
    refused(&file, -ENOTSUP, "symbol counter lies in special section 0xff00");
    counter->st_shndx = 99;
    refused(&file, -EINVAL, "section 99 of 11");
    counter->st_shndx = 8;
    counter->st_value = 5;
    refused(&file, -EINVAL, "symbol counter at 0x5 is outside section .bss");
    counter->st_value = 0;
    symbols[elf_symbol(&file, "vector_add.kd")].st_name = 0xffff;
    refused(&file, -EINVAL, "its name is outside the string table");
    free(file.data);
}

static void wrong_relocations_are_named(void)
{
    struct elf_file file = elf_file_read("kernels.rel.elf");
    Elf64_Rela *relocations = (Elf64_Rela *)elf_content(&file, ".rela.data"), saved = relocations[2];
    relocations[2].r_info = ELF64_R_INFO(elf_symbol(&file, "counter"), 12);
    refused(&file, -ENOTSUP, ": type 12");
    relocations[2].r_info = ELF64_R_INFO(500, 3);
    refused(&file, -EINVAL, "symbol 500 of 9");
    relocations[2] = saved;
    relocations[2].r_offset = 0x1c - 3;
    refused(&file, -EINVAL, "place 0x19 is outside its 0x1c bytes");
    relocations[2].r_offset = UINT64_MAX;
    refused(&file, -EINVAL, "place 0xffffffffffffffff is outside its 0x1c bytes");
    relocations[2] = saved;
    relocations[2].r_info = ELF64_R_INFO(elf_symbol(&file, "counter"), 6);
    refused(&file, -ERANGE, "R_AMDGPU_ABS32 of 0x7f451234521c does not fit");
    relocations[2] = saved;
    relocations[2].r_addend = 1ll << 40;
    refused(&file, -ERANGE, "R_AMDGPU_REL32 of 0x1000000000c does not fit");
    free(file.data);
}

static void offset_table_serves_symbols_of_default_visibility(void)
{
    struct elf_file file = elf_file_read("kernels.rel.elf");
    Elf64_Rela *relocations = (Elf64_Rela *)elf_content(&file, ".rela.text");
    relocations[0].r_info = ELF64_R_INFO(elf_symbol(&file, "counter"), 8);
    relocations[1].r_info = ELF64_R_INFO(elf_symbol(&file, "counter"), 9);
    struct bw_amd_code_object object;
    struct bw_err err;
    if (BW_OK(load(&object, &file, &err), &err)) {
        uint64_t reach = read32(object.image + 0x108) | (uint64_t)read32(object.image + 0x110) << 32;
        uint64_t slot = 0x104 + reach;
        BW_EQ(object.got_count, 1);
        if (BW_TRUE(slot <= object.image_bytes - 8))
            BW_EQ(read64(object.image + slot), base + 0x21c);
    }
    bw_amd_code_object_free(&object);
    free(file.data);
}

/* Descriptor fields that must be refused: {offset in .rodata, value or-ed in, what the error names}. */
static void bad_descriptors_are_refused(void)
{
    static const struct {
        uint32_t offset, bits;
        int code;
        const char *part;
    } cases[] = {
        {12, 1, -EINVAL, "byte 12 is 0x01, and reserved"},
        {40, 1, -EINVAL, "byte 40 is 0x01, and reserved"},
        {60, 1, -EINVAL, "byte 60 is 0x01, and reserved"},
        {48, 1u << 20, -EINVAL, "descriptor of vector_add: COMPUTE_PGM_RSRC1"},
        {48, 1u << 10, -EINVAL, "COMPUTE_PGM_RSRC1"},
        {52, 1u << 31, -EINVAL, "COMPUTE_PGM_RSRC2"},
        {52, 1u << 15, -EINVAL, "COMPUTE_PGM_RSRC2"},
        {44, 1u << 14, -EINVAL, "COMPUTE_PGM_RSRC3"},
        {56, 1u << 7, -EINVAL, "kernel_code_properties"},
        {56, 1u << 0, -EINVAL, "asks for scratch SGPRs, which gfx1100 does not have"},
        {56, 1u << 1, -EINVAL, "2 user SGPRs: expected 4 to 16"},
        {52, 31u << 1, -EINVAL, "31 user SGPRs"},
        {0, 65537, -E2BIG, "static LDS of 65537 bytes: expected at most 65536 (lds_bytes of gfx1100)"},
        {8, 65536, -E2BIG, "arguments of 65592 bytes: expected at most 65536"},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct elf_file file = elf_file_read("kernels.rel.elf");
        uint32_t word = read32(elf_content(&file, ".rodata") + cases[i].offset) | cases[i].bits;
        memcpy(elf_content(&file, ".rodata") + cases[i].offset, &word, sizeof word);
        refused(&file, cases[i].code, cases[i].part);
        free(file.data);
    }
}

static void entry_must_be_aligned_code(void)
{
    struct elf_file file = elf_file_read("kernels.rel.elf");
    Elf64_Rela *relocations = (Elf64_Rela *)elf_content(&file, ".rela.rodata"), saved = relocations[0];
    relocations[0].r_addend += 4;
    refused(&file, -EINVAL, "kernel vector_add: entry at image offset 0x4 is not aligned code");
    relocations[0] = saved;
    relocations[0].r_addend += 0x1000;
    refused(&file, -EINVAL, "entry at image offset 0x1000 is not aligned code");
    relocations[0] = saved;
    relocations[0].r_addend = INT64_MIN;
    refused(&file, -EINVAL, "is not aligned code");
    free(file.data);
}

static uint8_t *find_text(const struct elf_file *file, const char *text)
{
    return memmem(file->data, file->size_bytes, text, strlen(text));
}

static void wrong_metadata_is_named(void)
{
    struct elf_file file = elf_file_read("kernels.rel.elf");
    uint8_t *kind = find_text(&file, "hidden_grid_dims");
    memcpy(kind, "hidden_grid_dimz", 16);
    refused(&file, -ENOTSUP, "metadata of vector_add: hidden argument hidden_grid_dimz is not known");
    memcpy(kind, "queue_grid_dims_", 16);
    refused(&file, -ENOTSUP, "argument kind queue_grid_dims_ is not supported");
    memcpy(kind, "hidden_grid_dims", 16);
    uint8_t *symbol = find_text(&file, "vector_add.kd");
    symbol[0] = 'w';
    refused(&file, -EINVAL, "kernel vector_add: no symbol wector_add.kd");
    symbol[0] = 'v';
    uint8_t *wave = find_text(&file, ".wavefront_size");
    wave[15] = 64;
    refused(&file, -EINVAL, "metadata says waves of 64, the descriptor 32");
    wave[15] = 32;
    uint8_t *kernels = find_text(&file, "amdhsa.kernels");
    kernels[14] = 0xdd; /* array 32: the next four bytes become its length */
    refused(&file, -EINVAL, "not MessagePack");
    free(file.data);
}

static void kernels_without_metadata_have_unknown_arguments(void)
{
    struct elf_file file = elf_file_read("kernels.rel.elf");
    elf_section(&file, ".note")->sh_type = SHT_PROGBITS;
    struct bw_amd_code_object object;
    struct bw_err err;
    if (BW_OK(load(&object, &file, &err), &err) && BW_EQ(object.kernel_count, 2)) {
        BW_STR(object.kernels[0].name, "vector_add");
        BW_EQ(object.kernels[0].argument_count, 0);
        BW_EQ(object.kernels[0].descriptor.argument_bytes, 56);
        BW_EQ(object.kernels[0].wave_size, 32);
    }
    bw_amd_code_object_free(&object);
    free(file.data);
}

/* Every length of both files, and many files with a few bytes changed: each loads or is refused, nothing
 * else. */
static void hostile_files_never_do_harm(void)
{
    static const char *const names[] = {"kernels.rel.elf", "kernels.dyn.elf"};
    struct bw_rng rng = {7};
    uint64_t refusals = 0;
    for (size_t n = 0; n < BW_COUNT_OF(names); n++) {
        struct elf_file whole = elf_file_read(names[n]);
        for (uint64_t size = 0; size < whole.size_bytes; size++) {
            struct elf_file cut = {malloc(size ? size : 1), size};
            struct bw_err err;
            memcpy(cut.data, whole.data, size);
            int rc = try_load(&cut, &err);
            BW_TRUE(rc == 0 || err.what[0] != 0);
            free(cut.data);
        }
        for (int round = 0; round < 4000; round++) {
            struct elf_file changed = {malloc(whole.size_bytes), whole.size_bytes};
            struct bw_err err;
            memcpy(changed.data, whole.data, whole.size_bytes);
            for (int k = 0; k < 1 + round % 4; k++) {
                uint64_t at = bw_rng_below(&rng, whole.size_bytes);
                changed.data[at] = round % 3 ? (uint8_t)bw_rng_next(&rng) : 0xff;
            }
            int rc = try_load(&changed, &err);
            BW_TRUE(rc == 0 || (rc < 0 && err.code == rc && err.what[0] != 0));
            refusals += rc != 0;
            free(changed.data);
        }
        free(whole.data);
    }
    BW_TRUE(refusals > 1000);
}

BW_TEST_MAIN(
    "amd code object",
    {"relocatable_objects_are_placed_and_relocated", relocatable_objects_are_placed_and_relocated},
    {"linked_objects_load_alike", linked_objects_load_alike},
    {"wrong_files_are_named", wrong_files_are_named}, {"wrong_sections_are_named", wrong_sections_are_named},
    {"wrong_relocations_are_named", wrong_relocations_are_named},
    {"offset_table_serves_symbols_of_default_visibility", offset_table_serves_symbols_of_default_visibility},
    {"bad_descriptors_are_refused", bad_descriptors_are_refused},
    {"entry_must_be_aligned_code", entry_must_be_aligned_code},
    {"wrong_metadata_is_named", wrong_metadata_is_named},
    {"kernels_without_metadata_have_unknown_arguments", kernels_without_metadata_have_unknown_arguments},
    {"hostile_files_never_do_harm", hostile_files_never_do_harm})
