/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - the page: one document with its style and scripts in it, those of the HTML reports among them, and no data.
 *
 * Its policy forbids all scripts but these two by their hashes, and all connections but to where it came from. Styles of elements are let through:
 * the bars of the reports' tables are drawn with them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ui/assets.h"
#include "cli/ui/internal.h"

bool ui_page_policy(char *out, size_t size)
{
    int n = snprintf(
        out, size,
        "default-src 'none'; script-src '%s' '%s'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        maq_report_html_assets().script_hash, ui_asset_script_hash);
    return n > 0 && (size_t)n < size;
}

char *ui_page(void)
{
    const struct maq_html_assets report = maq_report_html_assets();
    const struct {
        const char *place, *text;
    } parts[] = {{"{{REPORT_STYLE}}", report.style},
                 {"{{STYLE}}", ui_asset_style},
                 {"{{REPORT_SCRIPT}}", report.script},
                 {"{{SCRIPT}}", ui_asset_script},
                 {"{{VERSION}}", maq_version()}};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    const char *at = ui_asset_page;
    for (const char *open; (open = strstr(at, "{{")) != NULL;) {
        size_t i = 0;
        (void)fwrite(at, 1, (size_t)(open - at), out);
        while (i < CLI_COUNT(parts) && strncmp(open, parts[i].place, strlen(parts[i].place)) != 0)
            i++;
        fputs(i < CLI_COUNT(parts) ? parts[i].text : "{{", out);
        at = open + (i < CLI_COUNT(parts) ? strlen(parts[i].place) : 2);
    }
    fputs(at, out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
