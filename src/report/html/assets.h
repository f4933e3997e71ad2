/* SPDX-License-Identifier: Apache-2.0 */
/* assets.h - what every page carries, made at build time by tools/embed-html.py. */
#ifndef MAQ_REPORT_HTML_ASSETS_H
#define MAQ_REPORT_HTML_ASSETS_H

extern const char *const maq__html_style;       /* assets/page.css */
extern const char *const maq__html_script;      /* Chart.js and the scripts beside it */
extern const char *const maq__html_script_hash; /* "sha256-..." of it, for the Content-Security-Policy */

#endif
