/* SPDX-License-Identifier: Apache-2.0 */
/* assets.h - files of assets/ that are part of the program: tools/embed-ui.py writes them at build time. */
#ifndef MAQ_CLI_UI_ASSETS_H
#define MAQ_CLI_UI_ASSETS_H

extern const char *const ui_asset_page; /* page.html, with places for what it is made of: {{STYLE}} */
extern const char *const ui_asset_style;
extern const char *const ui_asset_script;
extern const char *const ui_asset_script_hash;
extern const char *const ui_asset_train_job, *const ui_asset_serve_job;

#endif
