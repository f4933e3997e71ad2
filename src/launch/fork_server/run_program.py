# SPDX-License-Identifier: Apache-2.0
"""Runs a program in this process as the interpreter would: a script, a module, or text."""
import os
import sys


def run_script(path, arguments):
    """As `python path arguments` does."""
    import importlib.machinery
    import types
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    path = os.path.abspath(path)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None,
                         __loader__=importlib.machinery.SourceFileLoader("__main__", path))
    sys.modules["__main__"] = main
    with open(path, "rb") as text:
        code = compile(text.read(), path, "exec")
    exec(code, main.__dict__)


def run_code(text, arguments):
    """As `python -c text arguments` does."""
    import types
    sys.argv = ["-c", *arguments]
    sys.path[0] = ""
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__)
    sys.modules["__main__"] = main
    exec(compile(text, "<string>", "exec"), main.__dict__)


def run_module(name, arguments):
    """As `python -m name arguments` does."""
    import runpy
    import types
    sys.argv = ["-m", *arguments]
    sys.path[0] = os.getcwd()
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__)
    sys.modules["__main__"] = main
    runpy._run_module_as_main(name)


RUN = {"script": run_script, "module": run_module, "code": run_code}
