/* What went wrong: every fallible function returns 0 or -errno and fills an optional struct bw_err. */
#ifndef BW_ERR_H
#define BW_ERR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One failure, in words and figures. A caller that wants only the code passes NULL.
 * Ownership: plain memory of the caller, no pointers inside, may be copied. */
struct bw_err {
    int code;            /* -errno, 0 when nothing failed */
    char subsystem[16];  /* "kfd", "elf", "onnx", ... */
    char device[48];     /* device name, or empty */
    char what[256];      /* register, packet, path, node: the thing that failed */
    char expected[64];   /* may be empty */
    char observed[96];   /* may be empty */
    uint64_t elapsed_ns; /* time waited, 0 when not a wait */
    char hint[1024];     /* what to do about it, or what there is to choose from; or empty */
};

/* Fills *err (when not NULL) and returns code, so that `return bw_fail(err, -EINVAL, "elf", "section %u",
 * i);` reads well. code must be negative. Text that does not fit is cut and ends in
 * "...". Clears the other fields. */
int bw_fail(struct bw_err *err, int code, const char *subsystem, const char *what_format, ...)
    __attribute__((format(printf, 4, 5)));

/* Add detail to a failure already recorded; each tolerates err == NULL. */
void bw_err_expected(struct bw_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bw_err_observed(struct bw_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bw_err_hint(struct bw_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bw_err_device(struct bw_err *err, const char *device);
/* Puts words in front of what failed: the file, the lane. */
void bw_err_prefix(struct bw_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One line: "elf: section 7: expected 64-bit, observed 32-bit (EINVAL). hint", escaped (bw_text_escape), so
 * that it may go to a terminal whatever the names in it. Returns the length that the whole line needs, like
 * snprintf. err == NULL or code == 0 gives "no error". */
int bw_err_format(const struct bw_err *err, char *text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif
