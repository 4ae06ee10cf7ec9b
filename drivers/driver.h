/* The device seam: what a GPU family (or the host, or `null`) implements, and what hcq/ calls.
 *
 * Commands are encoded into a template of 32-bit words plus patches. A patch names a symbol (a number that
 * hcq gives meaning to: a linked address, a replay input, a variable, a signal value) and where its value
 * goes; the driver never sees values at replay time, hcq never sees packet layouts. */
#ifndef BW_DRIVERS_DRIVER_H
#define BW_DRIVERS_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/device.h>
#include <bellwire/program.h>
#include <bellwire/region.h>
#include <bellwire/sys.h>

/* Beside enum bw_buffer_flags, for alloc of devices whose memory is the process's: the node of the machine's
 * memory that it is wanted on, plus 1; 0: no matter. Others allocate near their device anyway. */
enum { BW_ALLOC_NODE_SHIFT = 16, BW_ALLOC_NODE_MASK = 0x7ff /* up to BW_SYS_NODES_MAX */ };

/* A 64-bit quantity in a command: constant when symbol == BW_SYMBOL_NONE, else value(symbol) + addend. */
enum { BW_SYMBOL_NONE = 0xffffffff };
struct bw_operand {
    uint32_t symbol;
    bool shares_high; /* all operands of this symbol that say so have one high word at every replay */
    uint64_t addend;  /* or the constant */
};

static inline struct bw_operand bw_operand_constant(uint64_t value)
{
    return (struct bw_operand){.symbol = BW_SYMBOL_NONE, .addend = value};
}

static inline struct bw_operand bw_operand_symbol(uint32_t symbol, uint64_t addend)
{
    return (struct bw_operand){.symbol = symbol, .addend = addend};
}

/* words[word] |= low 32 bits of ((value + addend) >> shift) & mask, and when wide also words[word + 1] |= the
 * next 32. The template holds zero where a patch writes all bits. */
struct bw_patch {
    uint32_t word;
    uint32_t symbol;
    uint64_t addend;
    uint8_t shift;
    bool wide;     /* 64-bit value over two words */
    uint32_t mask; /* of the first (only) word; 0xffffffff when wide */
};

/* A command buffer in the making; owned by hcq. Encoders append through these calls only. */
struct bw_encoder {
    uint32_t *words;
    uint32_t count, capacity;
    struct bw_patch *patches;
    uint32_t patch_count, patch_capacity;
    uint32_t packets; /* statistics: packets and cache operations emitted */
    uint32_t cache_operations;
    int failed;  /* -ENOMEM, sticky */
    void *state; /* one allocation of the driver between encode_begin and the end, freed with the encoder */
};

/* In drivers/encoder.c. After a failure they do nothing; the caller looks at `failed` once at the end. */
void bw_encoder_word(struct bw_encoder *encoder, uint32_t word);
/* One word / two words holding (operand >> shift); constants are stored, symbols recorded as patches. */
void bw_encoder_operand32(struct bw_encoder *encoder, struct bw_operand operand, unsigned shift,
                          uint32_t mask, uint32_t base);
void bw_encoder_operand64(struct bw_encoder *encoder, struct bw_operand operand, unsigned shift);
/* A patch of a word that was, or will be, appended otherwise: arguments inside a block that a driver wrote.
 */
void bw_encoder_patch(struct bw_encoder *encoder, const struct bw_patch *patch);
void bw_encoder_free(struct bw_encoder *encoder);

/* Device memory as drivers hand it out. */
struct bw_memory {
    uint64_t address; /* in the device's address space */
    uint64_t size_bytes;
    struct bw_region cpu; /* size 0: no CPU view */
    uint32_t flags;       /* enum bw_buffer_flags */
    void *private_data;
};

enum bw_queue_kind { BW_QUEUE_COMPUTE, BW_QUEUE_COPY };

struct bw_queue {
    struct bw_device *device;
    enum bw_queue_kind kind;
    uint32_t index; /* among queues of this kind */
};

struct bw_dispatch {
    struct bw_operand group_count[3]; /* workgroups */
    uint32_t group_size[3];
    uint32_t dynamic_lds_bytes;
    struct bw_operand argument_block; /* its address, aligned to 64 bytes */
};

enum bw_barrier_flags {
    BW_BARRIER_EXECUTION =
        1, /* earlier kernels of this queue are done, and its later ones see what they wrote (on AMD:
            * CS_PARTIAL_FLUSH and the invalidation of the CUs' own caches, never of L2) */
    BW_BARRIER_ACQUIRE = 2, /* later reads see all that is over by now: what other agents (host, copy engines)
                             * wrote, and this queue's own kernels */
    BW_BARRIER_RELEASE = 4, /* other agents see what earlier kernels wrote */
    BW_BARRIER_CODE = 8,    /* instruction caches are invalidated */
};

struct bw_device_caps {
    uint32_t compute_queues, copy_queues;
    uint32_t xgmi_copy_queues; /* of the copy queues the last ones, whose engines serve links between GPUs */
    bool compute_copies;       /* compute queues take encode_copy, too */
    bool user_doorbell;        /* submit rings a doorbell: no system call */
    bool device_wait;          /* queues can wait for a memory word */
    bool submit_wait;    /* else: what a queue is given can wait for what others of this driver were given */
    bool device_wait_64; /* ... comparing all 64 bits */
    uint64_t copy_bytes_max;          /* of one copy packet */
    uint32_t command_words_max;       /* of one command buffer; 0: no limit */
    uint32_t command_alignment_words; /* command buffers are padded to this with NOPs by encode_end */
    uint64_t timestamp_hz;
    bool timestamp_is_clock; /* ... and timestamps are clock_ns of the context's bw_sys */
    bool host_addressable; /* the device can reach BW_BUFFER_HOST memory of any other device in the process */
    uint64_t file_address; /* of a file of info.file_bytes bytes in the device's address space, which only its
                              own queues reach, and only read; 0: it has none */
};

/* Implemented once per family. Unless said otherwise: 0 or -errno, any thread. */
struct bw_driver_ops {
    const char *name;

    void (*close)(struct bw_device *device);

    int (*alloc)(struct bw_device *device, uint64_t size_bytes, uint32_t flags, struct bw_memory *memory,
                 struct bw_err *err);
    void (*free)(struct bw_device *device, struct bw_memory *memory);
    /* What the topology says about the way from `device` to memory of `owner`, a device of the same driver;
     * kind NONE: nothing. NULL: the driver's devices have no memory of their own. */
    int (*link)(struct bw_device *device, struct bw_device *owner, struct bw_link *link, struct bw_err *err);
    /* Lets `device` reach memory that belongs to `owner`, at the same address. -EOPNOTSUPP: must be bounced.
     */
    int (*map_peer)(struct bw_device *device, struct bw_device *owner, struct bw_memory *memory,
                    struct bw_err *err);

    /* The owner is about to free that memory, which map_peer let `device` reach. NULL: nothing to do. */
    void (*unmap_peer)(struct bw_device *device, struct bw_device *owner, struct bw_memory *memory);

    int (*program_load)(struct bw_device *device, const void *image, uint64_t image_bytes,
                        struct bw_program **program, struct bw_err *err);
    void (*program_destroy)(struct bw_program *program);
    int (*program_kernel)(struct bw_program *program, const char *name, struct bw_kernel **kernel,
                          struct bw_err *err);
    /* Writes the constant part of an argument block: hidden arguments from the dispatch's fixed geometry.
     * block_cpu points at kernel info.argument_bytes bytes. Dimensions that are symbols: hidden counts are
     * recorded as patches of `encoder`-like list `patches` with word offsets inside the block. In terms of
     * `block`: appends exactly (info.argument_bytes + 3) / 4 words, visible arguments zero (hcq fills them
     * afterwards). */
    int (*argument_block)(struct bw_kernel *kernel, const struct bw_dispatch *dispatch,
                          struct bw_encoder *block, struct bw_err *err);

    int (*queue_create)(struct bw_device *device, enum bw_queue_kind kind, uint32_t index,
                        struct bw_queue **queue, struct bw_err *err);
    void (*queue_destroy)(struct bw_queue *queue);

    /* A command buffer begins: nothing is known of the queue's state, registers included. NULL: nothing to
     * do. */
    void (*encode_begin)(struct bw_queue *queue, struct bw_encoder *encoder);
    /* Encoders: append one operation for a queue of that kind. encode_copy returns in *done_bytes how much
     * one packet took. */
    int (*encode_kernel)(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_kernel *kernel,
                         const struct bw_dispatch *dispatch, struct bw_err *err);
    int (*encode_copy)(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand target,
                       struct bw_operand source, uint64_t size_bytes, uint64_t *done_bytes);
    /* Waits until the word at `address` has reached `value` (signed difference). */
    int (*encode_wait)(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address,
                       struct bw_operand value);
    /* Writes `value` (64-bit) after all earlier work of the queue is done and visible. Unless
     * caps.device_wait_64, all values of one word share their high half: it may be written in two parts. Once
     * the value can be seen, nothing of the command buffer up to here is read any more, and encode_end adds
     * nothing: a buffer that ends with its signal is free then. */
    int (*encode_signal)(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address,
                         struct bw_operand value, bool interrupt);
    /* Writes the 64-bit device clock after earlier work is done. */
    int (*encode_timestamp)(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address);
    int (*encode_barrier)(struct bw_queue *queue, struct bw_encoder *encoder, uint32_t flags);
    /* Pads and closes the command buffer. */
    int (*encode_end)(struct bw_queue *queue, struct bw_encoder *encoder);

    /* Queues the command buffer at `address` (word_count words). No allocation, no lock, no system call when
     * caps.user_doorbell. One thread at a time per queue. The device may begin with it at once or at the next
     * flush. -EAGAIN: no room (never overruns); the caller flushes and waits. */
    int (*submit)(struct bw_queue *queue, uint64_t address, uint32_t word_count);
    /* Queues of `device`, another one of this driver and bw_sys, will be put after this queue's. Once for
     * each pair, and again when the queue was made anew; more do no harm. With caps.submit_wait; else NULL. 0
     * or -errno. */
    int (*follow)(struct bw_queue *queue, struct bw_device *device, struct bw_err *err);
    /* What the queue is given from here on begins when all is done that `producer`, another queue of this
     * device or of one as in follow, was given and told of, however that ended. Neither has anything that it
     * was not told of by flush. With caps.submit_wait; else NULL. 0; -EAGAIN: of another device's work only
     * what came since follow can be waited for so; -E2BIG: too many queues. */
    int (*after)(struct bw_queue *queue, struct bw_queue *producer);
    /* Rings the doorbell, or hands all that was queued to the kernel driver in one call. NULL: submit did.
     * 0 or -errno. */
    int (*flush)(struct bw_queue *queue);

    /* Changes whenever the queue moves, for hang detection: read pointer and, on a mock, packets executed and
     * waves ended. A GPU of the KFD shows its read pointer and what its command buffers tell: one of many
     * kernels moves with every few of them. What never counts is that a wave executes instructions: an
     * endless kernel does nothing else. */
    uint64_t (*queue_progress)(struct bw_queue *queue);
    /* What the queue is at, as far as it can be known, for the error of a wait that gave up. NULL: nothing is
     * known. 0 or -errno. */
    int (*queue_look)(struct bw_queue *queue, struct bw_queue_view *view);
    /* Sleeps up to timeout_ns for an interrupt of the device; returns early on any. */
    int (*wait_interrupt)(struct bw_device *device, uint64_t timeout_ns);
    /* Fills err (what faulted: queue, kernel, address, nearest buffer by device->describer) and returns -EIO
     * when the device is broken, 0 when healthy. */
    int (*query_fault)(struct bw_device *device, struct bw_err *err);
    /* Rebuilds queues after a fault or hang; outstanding work is lost. */
    int (*reset)(struct bw_device *device, struct bw_err *err);
};

/* Set by hcq for drivers' error texts: "12 bytes past the end of a freed 4096-byte buffer at 0x...". */
struct bw_address_describer {
    void (*describe)(void *user, uint64_t address, char *text, uint32_t text_size);
    void *user;
};

/* Drivers embed this first. hcq/ owns the fields behind `hcq`. */
struct bw_device {
    const struct bw_driver_ops *ops;
    struct bw_ctx *ctx;
    struct bw_device_info info;
    struct bw_device_caps caps;
    struct bw_address_describer describer;
    void *hcq; /* timelines, queues, allocation cache: hcq/device.c */
};

/* Programs and kernels embed these first. */
struct bw_program {
    struct bw_device *device;
    struct bw_program *detained_next; /* hcq's, once destroyed: see struct bw_hcq_device */
};
struct bw_kernel {
    struct bw_program *program;
    struct bw_kernel_info info;
};

/* Openers, one per driver; called by bw_device_open. They allocate and fill *device. */
struct bw_iface;
/* Whether bw_amd_open would take such a GPU: 0, or -ENOTSUP with what is wrong with it. */
struct bw_iface_properties;
int bw_amd_check(const struct bw_iface_properties *properties, struct bw_err *err);
/* Takes ownership of iface, also on failure. -ENOTSUP: as bw_amd_check says. */
int bw_amd_open(struct bw_ctx *ctx, struct bw_iface *iface, struct bw_device **device, struct bw_err *err);
/* A device of that architecture without a GPU, to encode for: programs are placed and never uploaded, submit
 * gives -ENODEV. sys: whose clock it has. -ENOTSUP: no such architecture. */
int bw_amd_open_unfed(struct bw_ctx *ctx, struct bw_sys *sys, const char *arch, struct bw_device **device,
                      struct bw_err *err);
int bw_host_open(struct bw_ctx *ctx, uint32_t index, struct bw_device **device, struct bw_err *err);
int bw_null_open(struct bw_ctx *ctx, struct bw_device **device, struct bw_err *err);
/* `name` is what the device is called; the file's errors are those of opening it, -EISDIR and -ESPIPE. */
int bw_disk_device_open(struct bw_ctx *ctx, const char *name, const char *path, struct bw_device **device,
                        struct bw_err *err);

#endif
