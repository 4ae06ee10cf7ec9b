/* One line on standard error that says what takes so long: only on a terminal, only after a second. */
#ifndef BW_TOOLS_PROGRESS_H
#define BW_TOOLS_PROGRESS_H

#include <stdio.h>

struct bw_device;
struct bw_progress;

/* device (may be NULL): a mock's wave-instructions are shown as they retire. NULL when nothing will be shown;
 * bw_progress_end takes that. */
struct bw_progress *bw_progress_begin(const char *what, const struct bw_device *device);
void bw_progress_end(struct bw_progress *progress);
/* A stream to print a table to while the line is shown: the line makes room for each of its rows on standard
 * output. The caller ends it with fclose, before bw_progress_end. NULL: no memory. */
FILE *bw_progress_table(struct bw_progress *progress);

#endif
