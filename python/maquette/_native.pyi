# SPDX-License-Identifier: Apache-2.0
# The extension module that cffi makes of the public headers: all their functions, structs and enumerators.
from typing import Any

ffi: Any
lib: Any
