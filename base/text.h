/* Text that grows: printers append to one of these, callers own the string. Not thread safe. */
#ifndef BW_BASE_TEXT_H
#define BW_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

struct bw_text {
    char *data; /* NUL terminated once anything was appended, else NULL */
    size_t length, capacity;
    int failed; /* -ENOMEM once, then nothing more is appended */
};

void bw_text_add(struct bw_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bw_text_add_bytes(struct bw_text *text, const char *data, size_t length);
/* The string, never NULL. */
const char *bw_text_string(const struct bw_text *text);
void bw_text_free(struct bw_text *text);

/* Into room of a fixed size, to_size bytes of at least 4: what does not fit ends with "...", so that half a
 * number is not taken for a number. */
void bw_text_fit(char *to, size_t to_size, const char *format, ...) __attribute__((format(printf, 3, 4)));
void bw_text_fit_v(char *to, size_t to_size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
