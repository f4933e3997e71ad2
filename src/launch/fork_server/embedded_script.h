/* SPDX-License-Identifier: Apache-2.0 */
/* embedded_script.h - fork_server.py, as text of the program. */
#ifndef MAQ_LAUNCH_FORK_SERVER_EMBEDDED_SCRIPT_H
#define MAQ_LAUNCH_FORK_SERVER_EMBEDDED_SCRIPT_H

extern const char *const maq__fork_server_script;

#endif
