/* Goal: every instruction that clang emits for the kernels of tests/corpus has a meaning on the emulator:
 * none is left that would end a kernel as "not emulated". */
#include "tests/check.h"

#include <dirent.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/text.h"
#include "mock/isa/pool.h"
#include "mock/isa/translate.h"
#include "tests/unit/mock/isa/exec_kernel.h"

enum { SHOWN_MAX = 100, INSTRUCTIONS_MIN = 20000 };

static bool shown[BW_GFX11_OP_COUNT];
static unsigned long instruction_count, refused_count;

static void check_instruction(struct bw_translator *t, const struct bw_inst *inst, const char *where)
{
    t->inst = inst;
    t->count = 0;
    bw_translate(t);
    instruction_count++;
    if (!t->refused || (t->refusal != BW_ISA_UNSUPPORTED && t->reason != BW_REASON_VGPR_COUNT))
        return;
    refused_count++;
    if (!shown[inst->op]) {
        struct bw_text text = {0};
        bw_inst_print(inst, t->pc, &text);
        printf("\n    %s: refused (reason %u): %s", where, t->reason, bw_text_string(&text));
        bw_text_free(&text);
        shown[inst->op] = true;
    }
}

static void check_code(struct bw_translator *t, const uint8_t *code, uint64_t size_bytes, const char *where)
{
    for (uint64_t at = 0; at < size_bytes;) {
        struct bw_inst inst;
        unsigned bytes = bw_gfx11_decode(code + at, size_bytes - at, &inst);
        t->pc = EXEC_BASE + at;
        if (bytes && inst.op != BW_GFX11_S_CODE_END)
            check_instruction(t, &inst, where);
        at += bytes ? bytes : 4;
    }
}

static void check_object(const struct bw_isa_pool *pool, const char *path, unsigned wave_size)
{
    size_t size;
    uint8_t *file = exec_read_file(path, &size);
    if (!BW_TRUE(file != NULL))
        return;
    struct bw_code code = {.entry_va = EXEC_BASE, .wave_size = wave_size, .vgpr_count = 256};
    struct bw_program program = {
        .code = &code, .mode = BW_MODE_DENORM_32 | BW_MODE_DENORM_16_64 | BW_MODE_DX10_CLAMP | BW_MODE_IEEE};
    struct bw_translator t = {.handlers = pool->handlers, .code = &code, .program = &program, .capacity = 64};
    t.uops = malloc(t.capacity * sizeof *t.uops);
    const Elf64_Ehdr *header = (const void *)file;
    const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type == SHT_PROGBITS && (sections[i].sh_flags & SHF_EXECINSTR))
            check_code(&t, file + sections[i].sh_offset, sections[i].sh_size, path);
    }
    BW_TRUE(!t.failed);
    bw_arena_free(&code.arena);
    free(code.constants);
    free(t.uops);
    free(file);
}

static const struct {
    const char *options;
    unsigned wave_size;
} variants[] = {{"-O0", 32}, {"-O1 -mcumode", 32}, {"-O3", 32}, {"-O2 -mwavefrontsize64", 64}};

static void test_corpus(void)
{
    char directory[] = BW_BUILD_DIR "/exec-corpus-XXXXXX", command[1600], object[512];
    struct bw_isa_pool *pool;
    DIR *corpus = opendir(BW_SOURCE_DIR "/tests/corpus");
    if (!BW_TRUE(corpus && mkdtemp(directory)) || !BW_EQ(bw_isa_pool_create(1, &pool), 0))
        return;
    for (struct dirent *entry; (entry = readdir(corpus));) {
        if (!strstr(entry->d_name, ".cl"))
            continue;
        for (size_t v = 0; v < BW_COUNT_OF(variants); v++) {
            snprintf(object, sizeof object, "%s/%s.%zu.o", directory, entry->d_name, v);
            snprintf(command, sizeof command,
                     "clang-19 -x cl -cl-std=CL2.0 -cl-no-stdinc -target amdgcn-amd-amdhsa -mcpu=gfx1100 "
                     "-nogpulib -c %s "
                     "-Wno-everything " BW_SOURCE_DIR "/tests/corpus/%s -o %s",
                     variants[v].options, entry->d_name, object);
            if (BW_EQ(system(command), 0))
                check_object(pool, object, variants[v].wave_size);
        }
    }
    closedir(corpus);
    bw_isa_pool_destroy(pool);
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    BW_EQ(system(command), 0);
    printf("\n    %lu instructions", instruction_count);
    BW_EQ(refused_count, 0);
    BW_TRUE(instruction_count >= INSTRUCTIONS_MIN);
}

int main(void)
{
    static const struct bw_test tests[] = {{"the corpus is executable", test_corpus}};
    if (!exec_have_compiler()) {
        printf("skipped: no clang-19 with lld\n");
        return BW_TEST_SKIPPED;
    }
    return bw_test_run("isa exec corpus", tests, 1);
}
