/* One line on standard error that says what takes so long: only on a terminal, only after a second. */
#ifndef BW_TOOLS_PROGRESS_H
#define BW_TOOLS_PROGRESS_H

struct bw_device;
struct bw_progress;

/* device (may be NULL): a mock's wave-instructions are shown as they retire. NULL when nothing will be shown;
 * bw_progress_end takes that. */
struct bw_progress *bw_progress_begin(const char *what, const struct bw_device *device);
void bw_progress_end(struct bw_progress *progress);

#endif
