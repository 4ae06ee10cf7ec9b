/* Assembles AMDGPU machine code text (LLVM's syntax, .amdhsa_ directives included) to an ELF object in
 * memory. */
#ifndef BW_COMPILER_LLVM_ASSEMBLE_H
#define BW_COMPILER_LLVM_ASSEMBLE_H

#include <stdint.h>

#include <bellwire/err.h>

/* arch: one of our device table ("gfx1100"); LLVM itself accepts unknown names silently, so they are refused
 * first (-ENOTSUP). *object is malloc'd, the caller frees it. -EINVAL: the first diagnostic, with its line,
 * stands in err. Thread safe. */
int bw_llvm_assemble(const char *arch, const char *text, uint64_t text_bytes, void **object,
                     uint64_t *object_bytes, struct bw_err *err);

#endif
