# SPDX-License-Identifier: Apache-2.0
"""Whose code asks: which modules are being imported, by the frames above."""
import os
import sys


def is_installed(path):
    path = path or ""
    return "/site-packages/" in path or "/dist-packages/" in path or path.startswith(os.path.dirname(os.__file__) + "/")


def importing():
    """Modules whose import is going on."""
    frame, names = sys._getframe(1), set()
    while frame:
        if frame.f_code.co_name == "<module>":
            names.add(frame.f_globals.get("__name__"))
        frame = frame.f_back
    return names - {"__main__", None}


def imports_a_library():
    """Whether it is the import of an installed module that asks."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return is_installed(frame.f_code.co_filename if frame else "")


def seeks_temporary_folder():
    """Whether it is the module tempfile that asks, which tries which folder can be written to."""
    frame = sys._getframe(2)
    for _ in range(4):
        if frame and frame.f_code.co_name == "_get_default_tempdir":
            return True
        frame = frame.f_back if frame else None
    return False
