/* Finding code, translating it, and noticing when it changes. */
#include "mock/isa/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mock/isa/pool.h"
#include "mock/isa/translate.h"

struct found { /* an instruction that control flow reaches */
    uint64_t pc;
    uint8_t bytes; /* 0: none here */
    bool unmapped;
    uint8_t available; /* bytes, with unmapped */
    bool far;          /* farther from the entry than a uop can say */
    struct bw_inst inst;
};

struct discovery {
    struct bw_worker *worker;
    struct bw_program *program;
    struct found *found;
    size_t count, capacity;
    uint64_t *pending; /* branch targets to visit */
    size_t pending_count, pending_capacity;
    struct bw_map seen;
    struct bw_map targets; /* where control may arrive from elsewhere */
    bool failed;
};

static bool ends_flow(unsigned op)
{
    return op == BW_GFX11_S_BRANCH || op == BW_GFX11_S_SETPC_B64 || op == BW_GFX11_S_ENDPGM ||
           op == BW_GFX11_S_ENDPGM_SAVED || op == BW_GFX11_S_RFE_B64 || op == BW_GFX11_S_CODE_END;
}

/* Which source of a branch holds its distance; -1 when it is none. */
static int branch_source(const struct bw_inst *inst)
{
    for (int i = 0; i < 2; i++) {
        if (inst->src[i].type == BW_T_BRANCH)
            return i;
    }
    return -1;
}

static uint64_t branch_target(const struct bw_inst *inst, uint64_t pc)
{
    return pc + 4 + (uint64_t)((int64_t)(int16_t)inst->src[branch_source(inst)].index * 4);
}

static void visit_later(struct discovery *d, uint64_t pc)
{
    if (d->pending_count == d->pending_capacity) {
        size_t capacity = d->pending_capacity ? 2 * d->pending_capacity : 64;
        uint64_t *pending = realloc(d->pending, capacity * sizeof *pending);
        if (!pending) {
            d->failed = true;
            return;
        }
        d->pending = pending;
        d->pending_capacity = capacity;
    }
    d->pending[d->pending_count++] = pc;
    if (bw_map_set(&d->targets, pc, 1))
        d->failed = true;
}

static struct found *add_found(struct discovery *d, uint64_t pc)
{
    if (d->count == d->capacity) {
        size_t capacity = d->capacity ? 2 * d->capacity : 256;
        struct found *found =
            capacity > BW_CODE_INSTRUCTIONS_MAX ? NULL : realloc(d->found, capacity * sizeof *found);
        if (!found) {
            d->failed = true;
            return NULL;
        }
        d->found = found;
        d->capacity = capacity;
    }
    if (bw_map_set(&d->seen, pc, 1))
        d->failed = true;
    struct found *found = &d->found[d->count++];
    found->pc = pc;
    found->bytes = 0;
    found->unmapped = found->far = false;
    return found;
}

/* Up to size_bytes of code at pc into buffer; how many could be read. */
static uint64_t read_code(struct bw_worker *worker, uint64_t pc, uint8_t *buffer, uint64_t size_bytes)
{
    uint64_t done = 0;
    while (done < size_bytes) {
        uint64_t start, valid;
        const void *host =
            worker->memory.resolve(worker->memory.user, pc + done, BW_ISA_EXECUTE, &start, &valid);
        if (!host || !valid)
            break;
        uint64_t step = valid < size_bytes - done ? valid : size_bytes - done;
        memcpy(buffer + done, host, step);
        done += step;
    }
    return done;
}

/* The longest instruction: an 8-byte encoding and a literal. */
enum { INSTRUCTION_BYTES_MAX = 12 };

static void visit(struct discovery *d, uint64_t pc)
{
    uint64_t ignored;
    while (!d->failed && !bw_map_get(&d->seen, pc, &ignored) &&
           !bw_map_get(&d->program->uops, pc, &ignored)) {
        uint8_t code[INSTRUCTION_BYTES_MAX] = {0};
        struct found *found = add_found(d, pc);
        if (!found)
            return;
        uint64_t available = read_code(d->worker, pc, code, sizeof code);
        int64_t distance = (int64_t)(pc - d->program->code->entry_va);
        found->far = distance != (int32_t)distance;
        unsigned bytes = found->far ? 0 : bw_gfx11_decode(code, sizeof code, &found->inst);
        found->unmapped = available < 4 || bytes > available; /* its beginning is mapped, its end not */
        found->available = (uint8_t)available;
        if (found->unmapped)
            bytes = 0;
        found->bytes = (uint8_t)bytes;
        if (!bytes)
            return;
        if (branch_source(&found->inst) >= 0)
            visit_later(d, branch_target(&found->inst, pc));
        if (ends_flow(found->inst.op))
            return;
        pc += bytes;
        if (found->inst.op == BW_GFX11_S_SWAPPC_B64 || found->inst.op == BW_GFX11_S_CALL_B64)
            visit_later(d, pc); /* where the call returns to */
    }
}

static int by_pc(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return x->pc < y->pc ? -1 : x->pc > y->pc;
}

/* Remembers the bytes of [first, last) of the found instructions, which follow each other. */
static int remember_bytes(struct discovery *d, size_t first, size_t last)
{
    struct bw_code *code = d->program->code;
    const struct found *end = &d->found[last - 1];
    uint64_t va = d->found[first].pc, known;
    /* Of what is no instruction, all that was looked at: it may become one. */
    uint64_t wanted = end->pc - va + (end->bytes ? end->bytes : INSTRUCTION_BYTES_MAX);
    if (bw_map_get(&code->known_bytes, va, &known) && known >= wanted)
        return 0;
    struct bw_code_bytes *bytes = malloc(sizeof *bytes + wanted);
    if (!bytes)
        return -ENOMEM;
    bytes->va = va;
    bytes->wanted_bytes = wanted;
    bytes->size_bytes = read_code(d->worker, va, bytes->bytes, wanted);
    bytes->next = code->bytes;
    code->bytes = bytes;
    return bw_map_set(&code->known_bytes, va, wanted);
}

static int remember_all(struct discovery *d)
{
    size_t first = 0;
    for (size_t i = 1; i <= d->count; i++) {
        if (i < d->count && d->found[i].pc == d->found[i - 1].pc + d->found[i - 1].bytes)
            continue;
        int rc = remember_bytes(d, first, i);
        if (rc)
            return rc;
        first = i;
    }
    return 0;
}

struct fixup {
    size_t uop;
    uint64_t target;
};

struct emission {
    struct bw_translator t;
    struct discovery *d;
    struct fixup *fixups;
    size_t fixups_count;
    size_t *starts; /* first uop of each found instruction */
};

static void emit_link(struct emission *e, uint64_t target)
{
    e->t.temps_used = 0;
    bw_emit(&e->t, BW_UOP_LINK);
    e->fixups[e->fixups_count++] = (struct fixup){e->t.count - 1, target};
}

static void emit_found(struct emission *e, size_t i)
{
    struct found *found = &e->d->found[i];
    struct bw_translator *t = &e->t;
    t->pc = found->pc;
    t->inst = found->bytes ? &found->inst : NULL;
    e->starts[i] = t->count;
    if (!found->bytes) {
        t->refused = false;
        t->half = 0;
        struct bw_uop *uop = bw_emit(t, BW_UOP_FAULT);
        uop->a = found->unmapped ? BW_ISA_MEMORY_FAULT
                 : found->far    ? BW_ISA_UNSUPPORTED
                                 : BW_ISA_ILLEGAL_INSTRUCTION;
        uop->b = found->far                            ? BW_REASON_DISTANCE
                 : found->unmapped && found->available ? BW_REASON_CUT
                                                       : BW_REASON_ENCODING;
        uop->d = found->unmapped ? found->available : 0;
        uop->imm = found->pc;
        t->ordinal++;
        return;
    }
    size_t before = t->count;
    uint64_t ignored;
    t->is_target = bw_map_get(&e->d->targets, found->pc, &ignored);
    bw_translate(t);
    if (branch_source(&found->inst) >= 0 && t->count == before + 1 && !t->refused)
        e->fixups[e->fixups_count++] = (struct fixup){before, branch_target(&found->inst, found->pc)};
    bool adjacent = i + 1 < e->d->count && e->d->found[i + 1].pc == found->pc + found->bytes;
    if (!adjacent && !ends_flow(found->inst.op))
        emit_link(e, found->pc + found->bytes);
}

static int resolve_fixups(struct emission *e, struct bw_block *block)
{
    for (size_t i = 0; i < e->fixups_count; i++) {
        uint64_t target;
        if (!bw_map_get(&e->t.program->uops, e->fixups[i].target, &target))
            return -ENOMEM; /* visited but not emitted: only when a limit stopped the search */
        struct bw_uop *uop = &block->uops[e->fixups[i].uop];
        uop->target = (const struct bw_uop *)(uintptr_t)target;
        bool is_link = uop->run == e->t.handlers[BW_UOP_LINK];
        uop->g = (int32_t)(uop->ordinal + (is_link ? 0 : 1) - uop->target->ordinal);
    }
    return 0;
}

static int emit_block(struct emission *e)
{
    struct bw_program *program = e->t.program;
    for (size_t i = 0; i < e->d->count; i++)
        emit_found(e, i);
    if (e->t.failed)
        return -ENOMEM;
    struct bw_block *block = malloc(sizeof *block + e->t.count * sizeof block->uops[0]);
    if (!block)
        return -ENOMEM;
    block->count = e->t.count;
    memcpy(block->uops, e->t.uops, e->t.count * sizeof block->uops[0]);
    block->next = program->blocks;
    program->blocks = block;
    program->ordinal_next = e->t.ordinal;
    for (size_t i = 0; i < e->d->count; i++) {
        int rc = bw_map_set(&program->uops, e->d->found[i].pc, (uintptr_t)&block->uops[e->starts[i]]);
        if (rc)
            return rc;
    }
    return resolve_fixups(e, block);
}

static int emit_all(struct bw_isa_pool *pool, struct discovery *d)
{
    enum { UOPS_INITIAL = 1024 };
    struct emission e = {.t = {.handlers = pool->handlers,
                               .code = d->program->code,
                               .program = d->program,
                               .ordinal = d->program->ordinal_next,
                               .capacity = UOPS_INITIAL},
                         .d = d};
    e.t.uops = malloc(UOPS_INITIAL * sizeof *e.t.uops);
    e.fixups = malloc(2 * d->count * sizeof *e.fixups);
    e.starts = malloc(d->count * sizeof *e.starts);
    int rc = e.t.uops && e.fixups && e.starts ? emit_block(&e) : -ENOMEM;
    free(e.t.uops);
    free(e.fixups);
    free(e.starts);
    return rc;
}

/* Translates what is reachable from pc and not translated yet. */
static int translate_from(struct bw_isa_pool *pool, struct bw_worker *worker, struct bw_program *program,
                          uint64_t pc)
{
    struct discovery d = {.worker = worker, .program = program};
    visit_later(&d, pc);
    while (d.pending_count && !d.failed)
        visit(&d, d.pending[--d.pending_count]);
    int rc = d.failed ? -ENOMEM : 0;
    if (!rc && d.count) {
        qsort(d.found, d.count, sizeof *d.found, by_pc);
        rc = remember_all(&d);
        if (!rc)
            rc = emit_all(pool, &d);
    }
    free(d.found);
    free(d.pending);
    bw_map_free(&d.seen);
    bw_map_free(&d.targets);
    return rc;
}

static struct bw_program *program_for(struct bw_code *code, uint32_t mode)
{
    mode &= BW_MODE_KEY;
    for (struct bw_program *program = code->programs; program; program = program->next) {
        if (program->mode == mode)
            return program;
    }
    struct bw_program *program = calloc(1, sizeof *program);
    if (!program)
        return NULL;
    program->code = code;
    program->mode = mode;
    program->next = code->programs;
    code->programs = program;
    return program;
}

static const struct bw_uop *find_uop(struct bw_isa_pool *pool, struct bw_worker *worker,
                                     struct bw_program *program, uint64_t pc)
{
    uint64_t uop;
    if (bw_map_get(&program->uops, pc, &uop))
        return (const struct bw_uop *)(uintptr_t)uop;
    if (translate_from(pool, worker, program, pc) || !bw_map_get(&program->uops, pc, &uop))
        return NULL;
    return (const struct bw_uop *)(uintptr_t)uop;
}

const struct bw_uop *bw_code_find(struct bw_isa_pool *pool, struct bw_worker *worker, struct bw_code *code,
                                  uint32_t mode, uint64_t pc, struct bw_program **program)
{
    const struct bw_uop *uop = NULL;
    pthread_mutex_lock(&pool->code_lock);
    *program = program_for(code, mode);
    if (*program)
        uop = find_uop(pool, worker, *program, pc);
    pthread_mutex_unlock(&pool->code_lock);
    return uop;
}

static bool is_unchanged(struct bw_worker *worker, const struct bw_code_bytes *bytes)
{
    for (uint64_t done = 0; done < bytes->wanted_bytes;) {
        uint64_t start, valid;
        const void *host =
            worker->memory.resolve(worker->memory.user, bytes->va + done, BW_ISA_EXECUTE, &start, &valid);
        if (done == bytes->size_bytes)
            return !host || !valid; /* nothing was mapped from here on */
        if (!host || !valid)
            return false;
        uint64_t step = valid < bytes->size_bytes - done ? valid : bytes->size_bytes - done;
        if (memcmp(host, bytes->bytes + done, step))
            return false;
        done += step;
    }
    return true;
}

bool bw_code_is_current(struct bw_worker *worker, const struct bw_code *code)
{
    for (const struct bw_code_bytes *bytes = code->bytes; bytes; bytes = bytes->next) {
        if (!is_unchanged(worker, bytes))
            return false;
    }
    return true;
}

void bw_code_free(struct bw_code *code)
{
    while (code->programs) {
        struct bw_program *program = code->programs;
        code->programs = program->next;
        while (program->blocks) {
            struct bw_block *block = program->blocks;
            program->blocks = block->next;
            free(block);
        }
        bw_map_free(&program->uops);
        free(program);
    }
    while (code->bytes) {
        struct bw_code_bytes *bytes = code->bytes;
        code->bytes = bytes->next;
        free(bytes);
    }
    bw_map_free(&code->known_bytes);
    bw_arena_free(&code->arena);
    free(code->constants);
    free(code);
}

static void drop_code(struct bw_isa_pool *pool, struct bw_code **link)
{
    struct bw_code *code = *link;
    *link = code->next;
    pool->codes_count--;
    bw_code_free(code);
}

/* Frees what is stale, and the oldest beyond the limit. */
static void trim_codes(struct bw_isa_pool *pool)
{
    unsigned kept = 0;
    for (struct bw_code **link = &pool->codes; *link;) {
        if ((*link)->stale || kept >= BW_POOL_CODES_MAX - 1) {
            drop_code(pool, link);
        } else {
            kept++;
            link = &(*link)->next;
        }
    }
}

static struct bw_code *find_code(struct bw_isa_pool *pool, uint64_t entry_va, uint32_t wave_size,
                                 uint32_t vgpr_count)
{
    for (struct bw_code **link = &pool->codes; *link; link = &(*link)->next) {
        struct bw_code *code = *link;
        if (code->entry_va != entry_va || code->wave_size != wave_size || code->vgpr_count != vgpr_count)
            continue;
        *link = code->next; /* to the front: the list is in order of use */
        code->next = pool->codes;
        pool->codes = code;
        return code;
    }
    return NULL;
}

static struct bw_code *new_code(struct bw_isa_pool *pool, uint64_t entry_va, uint32_t wave_size,
                                uint32_t vgpr_count)
{
    struct bw_code *code = calloc(1, sizeof *code);
    if (!code)
        return NULL;
    code->id = ++pool->code_id_next;
    code->entry_va = entry_va;
    code->wave_size = wave_size;
    code->vgpr_count = vgpr_count;
    code->next = pool->codes;
    pool->codes = code;
    pool->codes_count++;
    return code;
}

int bw_code_get(struct bw_isa_pool *pool, struct bw_worker *worker, uint64_t entry_va, uint32_t wave_size,
                uint32_t vgpr_count, uint32_t mode, struct bw_program **program, const struct bw_uop **uop)
{
    trim_codes(pool);
    struct bw_code *code = find_code(pool, entry_va, wave_size, vgpr_count);
    if (code && !bw_code_is_current(worker, code)) {
        drop_code(pool, &pool->codes); /* find_code has put it to the front */
        code = NULL;
    }
    if (!code)
        code = new_code(pool, entry_va, wave_size, vgpr_count);
    if (!code)
        return -ENOMEM;
    code->constants_limit = 0; /* no wave runs: the table may grow */
    *program = program_for(code, mode);
    *uop = *program ? find_uop(pool, worker, *program, entry_va) : NULL;
    return *uop ? 0 : -ENOMEM;
}

void bw_wave_fill_constants(struct bw_wave *wave, struct bw_code *code)
{
    if (wave->code_id != code->id) {
        wave->code_id = code->id;
        wave->constants_filled = 0;
    }
    uint32_t count = code->constants_count;
    for (uint32_t i = wave->constants_filled; i < count; i++) {
        uint32_t *slot = BW_AT(uint32_t, wave, bw_code_constant_offset(code, i));
        for (unsigned lane = 0; lane < BW_LANES; lane++)
            slot[lane] = (uint32_t)(code->constants[i] >> (lane & 1 ? 32 : 0));
    }
    wave->constants_filled = count;
}
