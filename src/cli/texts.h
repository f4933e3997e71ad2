/* SPDX-License-Identifier: Apache-2.0 */
/* texts.h - texts of docs/ that are part of the program: tools/pages/embed_texts.py writes them at build time. */
#ifndef MAQ_CLI_TEXTS_H
#define MAQ_CLI_TEXTS_H

#include <stddef.h>
#include <stdint.h>

/* JSON Schemas of documents, "train": the files of docs/schemas, deflated (zlib), since they are a hundred kilobytes otherwise. NULL at the end. */
struct cli_schema {
    const char *name;
    size_t len, n_deflated; /* bytes of the text and of the next */
    const unsigned char *deflated;
};
extern const struct cli_schema cli_schemas[];

/* Rows of docs/diagnostics.md by code; 0 at the end. */
struct cli_code {
    uint16_t code;
    const char *area, *what, *remedy;
};
extern const struct cli_code cli_codes[];

#endif
