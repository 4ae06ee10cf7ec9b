/* An x86-64 ELF relocatable object, read and checked: sections, symbols, kernel records. Nothing is placed or
 * relocated here; that is loader.c. `null` reads its kernels with this and needs no more. */
#ifndef BW_DRIVERS_HOST_OBJECT_H
#define BW_DRIVERS_HOST_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/driver.h"
#include "drivers/host/host.h"

struct bw_host_section {
    const char *name;
    uint32_t type, link, info;
    uint64_t flags, offset, size_bytes, alignment, entry_bytes;
    bool placed; /* loader.c: has memory at `address` */
    uint64_t address;
};

struct bw_host_symbol {
    const char *name;
    uint8_t type;     /* STT_* */
    uint16_t section; /* SHN_UNDEF, SHN_ABS, ... or an index */
    uint64_t value, size_bytes;
    uint32_t got_index;  /* loader.c: 1 + entry in the GOT, 0: none */
    uint32_t stub_index; /* loader.c: 1 + stub, 0: none */
};

/* Pointers go into `image`, which the caller keeps until bw_host_object_close. */
struct bw_host_object {
    const uint8_t *image;
    uint64_t image_bytes;
    struct bw_host_section *sections;
    uint32_t section_count;
    struct bw_host_symbol *symbols;
    uint32_t symbol_count;
};

/* -ENOEXEC: not an ELF object of this kind; -EINVAL: one that is damaged. The error names section or symbol
 * and offset. */
int bw_host_object_open(const void *image, uint64_t image_bytes, struct bw_host_object *object,
                        struct bw_err *err);
void bw_host_object_close(struct bw_host_object *object);

/* A defined symbol by name, or NULL. */
struct bw_host_symbol *bw_host_object_symbol(struct bw_host_object *object, const char *name);

/* What a kernel of the host (and of `null`) is. */
struct bw_host_kernel {
    struct bw_kernel base;
    bw_host_kernel_function *function; /* NULL on `null` */
    uint32_t groups_per_task;
    char name[BW_HOST_SYMBOL_BYTES_MAX];
    struct bw_argument_info *arguments;
};

struct bw_host_program {
    struct bw_program base;
    struct bw_host_kernel *kernels;
    uint32_t kernel_count;
    struct bw_region code, data;  /* size 0 on `null` */
    struct bw_host_program *next; /* of those that wait for a thread to end */
};

/* Reads the kernel records into program->kernels: names and arguments, functions left NULL. */
int bw_host_kernels_read(const struct bw_host_object *object, struct bw_host_program *program,
                         struct bw_err *err);
void bw_host_kernels_free(struct bw_host_program *program);

/* drivers' program_kernel. */
int bw_host_program_kernel(struct bw_program *program, const char *name, struct bw_kernel **kernel,
                           struct bw_err *err);

/* loader.c: places the object's sections in memory of `sys`, relocates, protects, and fills functions of
 * program->kernels. */
int bw_host_object_load(struct bw_sys *sys, struct bw_host_object *object, struct bw_host_program *program,
                        struct bw_err *err);
void bw_host_object_unload(struct bw_sys *sys, struct bw_host_program *program);

/* symbols_table.c: address of a name that objects may use, 0 when it is not one. */
uint64_t bw_host_symbol_lookup(const char *name);

#endif
