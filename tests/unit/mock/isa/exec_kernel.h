/* OpenCL C kernels compiled when the test runs, for gfx1100 (run on the emulator) and for the host (run as
 * they are). */
#ifndef BW_TESTS_EXEC_KERNEL_H
#define BW_TESTS_EXEC_KERNEL_H

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/mock/isa/exec_run.h"

/* What every source starts with: the same names for both targets. */
static const char exec_prelude[] =
    "typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned "
    "long ulong;\n"
    "#define G __global\n"
    "#define KERNEL __attribute__((reqd_work_group_size(64, 1, 1))) __kernel void\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
    "typedef half half2 __attribute__((ext_vector_type(2))); typedef short short2 "
    "__attribute__((ext_vector_type(2)));\n"
    "typedef float float4 __attribute__((ext_vector_type(4))); typedef int int3 "
    "__attribute__((ext_vector_type(3)));\n"
    "#ifdef __AMDGCN__\n"
    "#define LID ((int)__builtin_amdgcn_workitem_id_x())\n"
    "#define GRP ((int)__builtin_amdgcn_workgroup_id_x())\n"
    "#else\n"
    "__global int bw_host_local, bw_host_group;\n"
    "#define LID bw_host_local\n"
    "#define GRP bw_host_group\n"
    "#endif\n"
    "#define I (GRP * 64 + LID)\n";

/* AMDHSA kernel descriptor (LLVM AMDGPUUsage, "Kernel Descriptor"). */
struct exec_descriptor {
    uint32_t group_bytes, private_bytes, kernarg_bytes, reserved0;
    int64_t entry_offset;
    uint8_t reserved1[20];
    uint32_t rsrc3, rsrc1, rsrc2;
    uint16_t properties, preload;
    uint32_t reserved2;
};
_Static_assert(sizeof(struct exec_descriptor) == 64, "kernel descriptor");

static inline bool exec_have_compiler(void)
{
    return system("clang-19 --version >/dev/null 2>&1 && ld.lld-19 --version >/dev/null 2>&1") == 0 ||
           system("clang-19 --version >/dev/null 2>&1 && ld.lld --version >/dev/null 2>&1") == 0;
}

/* Starts directory/name.cl; the caller adds kernels and closes it. */
static inline FILE *exec_open_source(const char *directory, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.cl", directory, name);
    FILE *file = fopen(path, "w");
    if (file)
        fputs(exec_prelude, file);
    return file;
}

/* directory/name.cl -> directory/name.OUT; 0 when it compiled. */
static inline int exec_compile(const char *directory, const char *name, const char *out, const char *options)
{
    char command[2048];
    snprintf(command, sizeof command,
             "clang-19 -x cl -cl-std=CL2.0 -ffp-contract=off -cl-fp32-correctly-rounded-divide-sqrt "
             "-Wno-everything %s "
             "%s/%s.cl -o %s/%s.%s",
             options, directory, name, directory, name, out);
    return system(command);
}

static inline int exec_compile_gpu(const char *directory, const char *name, const char *out,
                                   const char *options)
{
    char all[512];
    snprintf(all, sizeof all, "-target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib %s", options);
    return exec_compile(directory, name, out, all);
}

static inline int exec_compile_host(const char *directory, const char *name)
{
    return exec_compile(directory, name, "so",
                        "-target x86_64-linux-gnu -march=native -O1 -fPIC -shared -nostdlib");
}

static inline uint8_t *exec_read_file(const char *path, size_t *size_bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size_bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*size_bytes);
    if (data && fread(data, 1, *size_bytes, file) != *size_bytes) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

/* Loads an image that the linker made and prepares the machine's dispatch for its kernel; arguments are put
 * by the caller at EXEC_ARGS. 0, or -1 when the kernel is not in it. */
static inline int exec_load_image(struct exec_machine *machine, const uint8_t *file, const char *kernel)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%s.kd", kernel);
    const Elf64_Ehdr *header = (const void *)file;
    memset(machine->memory, 0, EXEC_ARGS);
    const Elf64_Phdr *segments = (const void *)(file + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz <= EXEC_ARGS)
            memcpy(machine->memory + segments[i].p_vaddr, file + segments[i].p_offset, segments[i].p_filesz);
    }
    const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
    uint64_t descriptor_at = 0;
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB && sections[i].sh_type != SHT_DYNSYM)
            continue;
        const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
        const char *names = (const char *)file + sections[sections[i].sh_link].sh_offset;
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++) {
            if (strcmp(names + symbols[k].st_name, wanted) == 0)
                descriptor_at = symbols[k].st_value;
        }
    }
    if (!descriptor_at)
        return -1;
    const struct exec_descriptor *d = (const void *)(machine->memory + descriptor_at);
    struct bw_isa_dispatch *dispatch = &machine->dispatch;
    dispatch->entry_va = EXEC_BASE + descriptor_at + (uint64_t)d->entry_offset;
    dispatch->rsrc1 = d->rsrc1;
    dispatch->rsrc2 = d->rsrc2;
    dispatch->rsrc3 = d->rsrc3;
    dispatch->wave_size = d->properties & 0x400 ? 32 : 64;
    dispatch->lds_bytes = d->group_bytes;
    dispatch->scratch_base = EXEC_BASE + EXEC_SCRATCH;
    uint64_t per_lane = (d->private_bytes + 3) & ~3u;
    if (d->properties & 0x800) /* dynamic stack */
        per_lane += 4096;
    dispatch->scratch_wave_bytes = (uint32_t)(per_lane * dispatch->wave_size);
    dispatch->scratch_wave_slots =
        per_lane ? (uint32_t)((EXEC_BYTES - EXEC_SCRATCH) / dispatch->scratch_wave_bytes) : 64;
    if (dispatch->scratch_wave_slots > 64)
        dispatch->scratch_wave_slots = 64;
    /* User SGPRs in the order of the property bits: buffer, dispatch ptr, queue ptr, kernarg ptr, dispatch
     * id, flat scratch, private size. */
    unsigned next = 0;
    static const uint8_t dwords[7] = {4, 2, 2, 2, 2, 2, 1};
    for (unsigned i = 0; i < 7; i++) {
        if (!(d->properties >> i & 1))
            continue;
        uint64_t pointer = i == 1 ? EXEC_BASE + EXEC_PACKET : i == 3 ? EXEC_BASE + EXEC_ARGS : 0;
        if (dwords[i] == 2) {
            dispatch->user_sgpr[next] = (uint32_t)pointer;
            dispatch->user_sgpr[next + 1] = (uint32_t)(pointer >> 32);
        }
        next += dwords[i];
    }
    return 0;
}

/* The same from directory/name.out. */
static inline int exec_load(struct exec_machine *machine, const char *directory, const char *name,
                            const char *out, const char *kernel)
{
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/%s.%s", directory, name, out);
    uint8_t *file = exec_read_file(path, &size);
    int rc = file ? exec_load_image(machine, file, kernel) : -1;
    free(file);
    return rc;
}

/* Sizes of the launch: into the dispatch, and into the AQL packet that some kernels read (workgroup sizes at
 * byte 4, grid sizes at byte 12). */
static inline void exec_set_size(struct exec_machine *machine, uint32_t groups, uint32_t items_per_group)
{
    uint16_t group_size[3] = {(uint16_t)items_per_group, 1, 1};
    uint32_t grid_size[3] = {groups * items_per_group, 1, 1};
    memcpy(machine->memory + EXEC_PACKET + 4, group_size, sizeof group_size);
    memcpy(machine->memory + EXEC_PACKET + 12, grid_size, sizeof grid_size);
    machine->dispatch.group_size[0] = items_per_group;
    machine->dispatch.group_count[0] = groups;
}

#endif
