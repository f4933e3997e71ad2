/* SPDX-License-Identifier: Apache-2.0 */
/* start.js - the last of the scripts: draws. */
window.maq.start();
