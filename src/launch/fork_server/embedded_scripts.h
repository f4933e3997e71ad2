/* SPDX-License-Identifier: Apache-2.0 */
/* embedded_scripts.h - fork_server.py and the files beside it, as texts of the program. */
#ifndef MAQ_LAUNCH_FORK_SERVER_EMBEDDED_SCRIPTS_H
#define MAQ_LAUNCH_FORK_SERVER_EMBEDDED_SCRIPTS_H

struct maq_embedded_text {
    const char *name, *text;
};
extern const struct maq_embedded_text maq__fork_server_script[]; /* ended by a name that is NULL */

#endif
