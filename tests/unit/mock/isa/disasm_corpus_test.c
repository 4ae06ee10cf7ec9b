/* Everything that clang emits for the kernels of tests/corpus, at every optimisation level, in wave32 and
 * wave64, for gfx1100 and gfx1201, decodes with the length and the text of LLVM's disassembler. Prints how
 * many operations of the tables the corpus reaches. */
#include "tests/check.h"

#if BW_HAVE_LLVM
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "base/text.h"
#include "mock/isa/inst.h"
#include "tests/unit/mock/isa/llvm_oracle.h"

#define CLANG "clang-19"
#define FLAGS "-x cl -cl-std=CL2.0 -cl-no-stdinc -target amdgcn-amd-amdhsa -nogpulib"

enum { PATH_BYTES = 1024, SHOWN_MAX = 10, OPS_MAX = 2048 };

struct target {
    const char *cpu;
    const struct bw_generation *generation;
    const char *left_out; /* a source with builtins that it does not have */
    unsigned op_count, ops_reached_min, instructions_min;
};
static const struct target targets[] = {
    {"gfx1100", &bw_gfx11, NULL, BW_GFX11_OP_COUNT, 450, 100000},
    {"gfx1201", &bw_gfx12, "hardware.cl", BW_GFX12_OP_COUNT, 300, 30000},
};
_Static_assert((int)BW_GFX11_OP_COUNT <= OPS_MAX && (int)BW_GFX12_OP_COUNT <= OPS_MAX, "reached");

static LLVMDisasmContextRef llvm;
static const struct target *target;
static bool reached[OPS_MAX];
static unsigned long instruction_count;
static unsigned wrong_count;

static const char *const variants[] = {
    "-O0",          "-O1",          "-O2",
    "-O3",          "-O0 -mcumode", "-O1 -mcumode",
    "-O2 -mcumode", "-O3 -mcumode", "-O2 -mwavefrontsize64",
};

static unsigned check_instruction(const uint8_t *code, uint64_t left_bytes, uint64_t pc, const char *where)
{
    char expected[512];
    struct bw_inst inst;
    struct bw_text text = {0};
    unsigned llvm_bytes = oracle_print(llvm, code, left_bytes, expected, sizeof expected);
    unsigned bytes = bw_inst_decode(target->generation, code, left_bytes, &inst);
    if (bytes) {
        bw_inst_print(&inst, pc, &text);
        reached[inst.op] = true;
        if (inst.format == BW_GFX11_VOPD)
            reached[inst.y.op] = true;
    }
    if ((bytes != llvm_bytes || strcmp(bw_text_string(&text), expected) != 0) && wrong_count++ < SHOWN_MAX) {
        printf("\n    %s at 0x%" PRIx64 "\n", where, pc);
        BW_EQ(bytes, llvm_bytes);
        BW_STR(bw_text_string(&text), expected);
    }
    bw_text_free(&text);
    instruction_count++;
    return llvm_bytes;
}

/* Walks the executable sections of an object file. */
static void check_object(const uint8_t *file, uint64_t file_bytes, const char *where)
{
    const Elf64_Ehdr *header = (const void *)file;
    unsigned sections = 0;
    if (!BW_TRUE(file_bytes > sizeof *header && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0))
        return;
    const Elf64_Shdr *section = (const void *)(file + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (section[i].sh_type != SHT_PROGBITS || !(section[i].sh_flags & SHF_EXECINSTR))
            continue;
        const uint8_t *code = file + section[i].sh_offset;
        unsigned step;
        for (uint64_t at = 0; at < section[i].sh_size; at += step) {
            step = check_instruction(code + at, section[i].sh_size - at, at, where);
            if (!BW_TRUE(step > 0))
                return;
        }
        sections += section[i].sh_size > 0;
    }
    BW_TRUE(sections > 0);
}

static void check_file(const char *path, const char *where)
{
    struct stat status;
    int fd = open(path, O_RDONLY);
    if (!BW_TRUE(fd >= 0 && fstat(fd, &status) == 0))
        return;
    void *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (!BW_TRUE(file != MAP_FAILED))
        return;
    check_object(file, (uint64_t)status.st_size, where);
    munmap(file, (size_t)status.st_size);
}

static void object_path(char *path, size_t variant)
{
    snprintf(path, PATH_BYTES, "%s/corpus.%d.%zu.o", BW_BUILD_DIR, (int)getpid(), variant);
}

/* Starts one compilation; its exit status is in the pipe that pclose ends. */
static FILE *compile(const char *name, size_t variant)
{
    char object[PATH_BYTES], command[4 * PATH_BYTES];
    object_path(object, variant);
    snprintf(command, sizeof command, CLANG " " FLAGS " -mcpu=%s %s -c '%s/tests/corpus/%s' -o '%s'",
             target->cpu, variants[variant], BW_SOURCE_DIR, name, object);
    return popen(command, "r");
}

static void check_source(const char *name)
{
    enum { VARIANT_COUNT = BW_COUNT_OF(variants), AT_ONCE = 2 };
    FILE *compilers[VARIANT_COUNT] = {NULL};
    size_t started = 0;
    for (size_t i = 0; i < VARIANT_COUNT; i++) {
        char object[PATH_BYTES], where[PATH_BYTES];
        for (; started < VARIANT_COUNT && started < i + AT_ONCE; started++)
            compilers[started] = compile(name, started);
        object_path(object, i);
        snprintf(where, sizeof where, "%s %s", name, variants[i]);
        if (BW_TRUE(compilers[i] != NULL) && BW_EQ(pclose(compilers[i]), 0))
            check_file(object, where);
        unlink(object);
    }
}

static void check_corpus(void)
{
    DIR *folder = opendir(BW_SOURCE_DIR "/tests/corpus");
    unsigned sources = 0;
    if (!BW_TRUE(folder != NULL))
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        if (length > 3 && strcmp(entry->d_name + length - 3, ".cl") == 0 &&
            !(target->left_out && strcmp(entry->d_name, target->left_out) == 0)) {
            check_source(entry->d_name);
            sources++;
        }
    }
    closedir(folder);
    unsigned ops = 0;
    for (unsigned i = 0; i < target->op_count; i++)
        ops += reached[i];
    printf("\n    %s: %u sources, %zu variants: %lu instructions, %u of %u operations\n", target->cpu,
           sources, BW_COUNT_OF(variants), instruction_count, ops, target->op_count);
    if (getenv("BW_VERBOSE")) {
        for (unsigned i = 0; i < target->op_count; i++) {
            if (!reached[i])
                printf("      not reached: %s\n", target->generation->ops[i].name);
        }
    }
    BW_EQ(wrong_count, 0);
    BW_TRUE(sources > 0);
    BW_TRUE(ops >= target->ops_reached_min);
    BW_TRUE(instruction_count >= target->instructions_min);
}

static void test_corpus(void)
{
    for (size_t i = 0; i < BW_COUNT_OF(targets); i++) {
        target = &targets[i];
        memset(reached, 0, sizeof reached);
        instruction_count = wrong_count = 0;
        llvm = oracle_open(target->cpu);
        if (!BW_TRUE(llvm != NULL))
            return;
        check_corpus();
        LLVMDisasmDispose(llvm);
    }
}

int main(void)
{
    static const struct bw_test tests[] = {{"corpus", test_corpus}};
    if (system(CLANG " --version > /dev/null 2>&1") != 0) {
        puts("skipped: " CLANG " is not installed");
        return BW_TEST_SKIPPED;
    }
    return bw_test_run("isa.disasm_corpus", tests, BW_COUNT_OF(tests));
}

#else
int main(void)
{
    puts("skipped: built without LLVM");
    return BW_TEST_SKIPPED;
}
#endif
