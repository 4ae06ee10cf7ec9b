/* Foreign text for a terminal or a log: names in files, paths, what a driver says. */
#ifndef BW_TEXT_H
#define BW_TEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes text[0, text_bytes) to `to` with everything made visible that would act on a terminal or hide there:
 * control characters ("\n", "\x1b", "\u0085"), marks that turn the direction of writing or are invisible
 * ("\u202e"), and bytes that are no UTF-8 ("\xff"). All else stays as it is. Ends with NUL when to_bytes > 0
 * and never cuts a character or an escape in two. Returns the length that the whole needs, like snprintf. */
size_t bw_text_escape(const char *text, size_t text_bytes, char *to, size_t to_bytes);
/* The same for a text of several lines: newlines and tabs stay. */
size_t bw_text_escape_lines(const char *text, size_t text_bytes, char *to, size_t to_bytes);
/* The same for a whole JSON document, whose control characters below 0x20 are escaped already: what is still
 * in its strings becomes "\u0085"; bytes that are no UTF-8, which JSON cannot hold, become "\ufffd". */
size_t bw_text_escape_json(const char *text, size_t text_bytes, char *to, size_t to_bytes);

#ifdef __cplusplus
}
#endif
#endif
