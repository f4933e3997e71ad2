#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# commit.sh: which state of the source this is, for reports: the file .commit where source-tree.sh left one, else what git says.
cd "$(dirname "$0")/../.." && cat .commit 2>/dev/null || git describe --always --dirty --abbrev=12
