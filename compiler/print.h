/* Text of graphs and programs at every stage, for people and for golden tests. */
#ifndef BW_COMPILER_PRINT_H
#define BW_COMPILER_PRINT_H

#include "base/text.h"
#include "compiler/linear.h"

/* One line per node that the roots reach, sources first: "%7 = ADD f32 [4, 8] %3 %5". */
void bw_print_graph(struct bw_text *text, const struct bw_ir *ir, const bw_node *roots, uint32_t count);
/* That line. */
void bw_print_node(struct bw_text *text, const struct bw_ir *ir, bw_node node);
/* One line per entry of the list, indented by loops. */
void bw_print_linear(struct bw_text *text, const struct bw_linear *linear);

#endif
