/* What --profile FILE does, wherever it is an option. */
#ifndef BW_TOOLS_PROFILE_H
#define BW_TOOLS_PROFILE_H

#include <stdio.h>

#include <bellwire/profile.h>

struct cJSON;

/* Makes the report, which needs the profiles as long as it lives, and writes the trace to the file: the
 * report is there also where the file cannot be written. */
int bw_tool_profile_take(const struct bw_profile *const *profiles, uint32_t count, const char *path,
                         struct bw_profile_report **report, struct bw_err *err);
/* Tables: kernels, queues, the longest gaps; nothing when there are no calls. prefix: of every line. */
void bw_tool_profile_print(const struct bw_profile_report *report, FILE *out, const char *prefix);
/* Adds "profile" to the document. */
void bw_tool_profile_json(const struct bw_profile_report *report, struct cJSON *document);

#endif
