/* LLVM's disassembler (LLVM-C) and its assembler (the llvm-mc program) as oracles. */
#ifndef BW_TESTS_LLVM_ORACLE_H
#define BW_TESTS_LLVM_ORACLE_H

#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LLVM_MC "llvm-mc-19"

static inline LLVMDisasmContextRef oracle_open(const char *cpu)
{
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    return LLVMCreateDisasmCPU("amdgcn-amd-amdhsa", cpu, NULL, 0, NULL, NULL);
}

/* Length in bytes, 0 when LLVM refuses; text without its leading tab. */
static inline unsigned oracle_print(LLVMDisasmContextRef context, const void *code, uint64_t code_bytes,
                                    char *text, size_t text_size)
{
    uint8_t copy[16];
    uint64_t bytes = code_bytes < sizeof copy ? code_bytes : sizeof copy;
    memcpy(copy, code, bytes);
    text[0] = 0;
    unsigned length = (unsigned)LLVMDisasmInstruction(context, copy, bytes, 0, text, text_size);
    size_t blanks = strspn(text, "\t ");
    memmove(text, text + blanks, strlen(text + blanks) + 1);
    return length;
}

/* What the assembler makes of one line. */
struct oracle_encoding {
    unsigned bytes; /* 0: refused */
    uint8_t code[16];
};

static inline void oracle_parse_encoding(const char *hex, struct oracle_encoding *encoding)
{
    encoding->bytes = 0;
    while (encoding->bytes < sizeof encoding->code &&
           sscanf(hex, "0x%2hhx", &encoding->code[encoding->bytes]) == 1) {
        encoding->bytes++;
        hex += strlen("0x00");
        if (*hex == ',')
            hex++;
    }
}

/* Reads llvm-mc's two kinds of lines: errors name a source line, encodings come in source order. */
static inline int oracle_read(FILE *pipe, const char *path, struct oracle_encoding *encodings, size_t count)
{
    char line[1024];
    bool *refused = calloc(count + 1, sizeof *refused);
    struct oracle_encoding *found = calloc(count + 1, sizeof *found);
    size_t found_count = 0, at = 0;
    if (!refused || !found)
        return -1;
    while (fgets(line, sizeof line, pipe)) {
        const char *encoding = strstr(line, "encoding: ["), *after = line + strlen(path);
        size_t number, column;
        if (encoding && found_count < count)
            oracle_parse_encoding(encoding + strlen("encoding: ["), &found[found_count++]);
        else if (strncmp(line, path, strlen(path)) == 0 &&
                 sscanf(after, ":%zu:%zu: error", &number, &column) == 2 && strstr(line, ": error:") &&
                 number <= count)
            refused[number - 1] = true;
    }
    size_t accepted = 0;
    for (size_t i = 0; i < count; i++) {
        accepted += !refused[i];
        encodings[i] = refused[i] || at == found_count ? (struct oracle_encoding){0} : found[at++];
    }
    free(refused);
    free(found);
    return accepted == found_count ? 0 : -1; /* no line was lost */
}

/* Assembles each text (one instruction per line): 0, or -1 when llvm-mc cannot be run. Signals wait: stdio
 * takes an interrupted read for the end (tests/check.h, BW_TEST_TIMER), and it is not what is tested. */
static inline int oracle_assemble(const char *cpu, const char *const *texts, size_t count,
                                  struct oracle_encoding *encodings)
{
    char path[512], command[2400];
    snprintf(path, sizeof path, "%s/oracle.%d.s", BW_BUILD_DIR, (int)getpid());
    FILE *source = fopen(path, "w");
    if (!source)
        return -1;
    for (size_t i = 0; i < count; i++)
        fprintf(source, "%s\n", texts[i]);
    fclose(source);
    /* what it says first, then what it made: together they cut each other's lines */
    snprintf(command, sizeof command,
             LLVM_MC " --triple=amdgcn-amd-amdhsa --mcpu=%s --show-encoding '%s' 2>&1 >'%s.out'; cat "
                     "'%s.out'; rm -f '%s.out'",
             cpu, path, path, path, path);
    sigset_t alarm, before;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, &before);
    FILE *pipe = popen(command, "r");
    int rc = pipe ? oracle_read(pipe, path, encodings, count) : -1;
    if (pipe)
        pclose(pipe);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    unlink(path);
    return rc;
}

#endif
