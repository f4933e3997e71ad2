/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - the parts of `maquette show`: lists and details of what the catalogue has. */
#ifndef MAQ_REPORT_SHOW_SHOW_H
#define MAQ_REPORT_SHOW_SHOW_H

#include "maquette/catalogue.h"
#include "report/job_json.h"
#include "report/page.h"

/* Exactly one of page and json is set. Lists may skip nothing: a broken entry is an error. */
struct maq_show {
    struct maq_page *page;
    struct maq_json *json; /* where the members go */
    struct maq_arena *arena;
    struct maq_diag *diag;
};

/* What of an entry was not read at its source, `names` as a device has them: a member of `map`, or a line, where there is any, under a label
 * of that width. */
void maq_show_unverified(struct maq_show *s, struct maq_json map, size_t label, const char *names);

enum maq_status maq_show_models(struct maq_show *s);
enum maq_status maq_show_gpus(struct maq_show *s);
enum maq_status maq_show_fabrics(struct maq_show *s);
enum maq_status maq_show_frameworks(struct maq_show *s);
enum maq_status maq_show_failures(struct maq_show *s);
enum maq_status maq_show_schedules(struct maq_show *s);

/* `name` is a catalogue name or (models) a path. */
enum maq_status maq_show_model(struct maq_show *s, const char *name);
enum maq_status maq_show_gpu(struct maq_show *s, const char *name);
enum maq_status maq_show_fabric(struct maq_show *s, const char *name);
enum maq_status maq_show_framework(struct maq_show *s, const char *name);
enum maq_status maq_show_failure(struct maq_show *s, const char *name);
enum maq_status maq_show_schedule(struct maq_show *s, size_t i);

#endif
