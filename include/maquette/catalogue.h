/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalogue.h - what maquette knows by name: models, devices, fabrics, frameworks, failures of fleets, pipeline
 * schedules; and the words of its options.
 */
#ifndef MAQUETTE_CATALOGUE_H
#define MAQUETTE_CATALOGUE_H

#include "maquette/report.h"

#ifdef __cplusplus
extern "C" {
#endif

enum maq_catalogue_kind {
    MAQ_CATALOGUE_MODELS,
    MAQ_CATALOGUE_GPUS,
    MAQ_CATALOGUE_FABRICS,
    MAQ_CATALOGUE_FRAMEWORKS,
    MAQ_CATALOGUE_FAILURES,
    MAQ_CATALOGUE_SCHEDULES,
    MAQ_CATALOGUE_KIND_COUNT
};
/* "models", "gpus", "fabrics", "frameworks", "failures", "schedules". */
MAQ_API const char *maq_catalogue_kind_name(enum maq_catalogue_kind kind);

/* Names of one kind in order: i from 0 until NULL. Static strings. */
MAQ_API const char *maq_catalogue_name(enum maq_catalogue_kind kind, size_t i);

/*
 * Shows `what`: the name of a kind lists it; the name or alias of an entry shows all that is known of it; a path to a
 * config.json (or its folder) shows the model in it. *out is owned by the caller (free()). Schemas
 * "maquette.models/1", "maquette.model/1", and so on for gpus, fabrics, frameworks, failures and schedules. An unknown name is MAQ_USAGE
 * with a suggestion.
 */
MAQ_API enum maq_status maq_catalogue_show_text(char **out, const char *what, const struct maq_report_opts *opts,
                                                struct maq_diag *diag);
MAQ_API enum maq_status maq_catalogue_show_json(char **out, const char *what, const struct maq_report_opts *opts,
                                                struct maq_diag *diag);

/*
 * The values that an option of maq_job_option() takes, when they are words: "auto", "false", "true", ...; NULL-
 * terminated, static. NULL for numbers and free text.
 */
MAQ_API const char *const *maq_option_words(const char *section, size_t i);

#ifdef __cplusplus
}
#endif
#endif
