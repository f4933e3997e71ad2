# SPDX-License-Identifier: Apache-2.0
"""SGLang on a machine without a GPU: what it imports and never uses there is replaced by nothing. To be imported before it."""
import importlib.abc
import importlib.machinery
import os
import sys
import types
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# The tree of the same release in Python: the one in Rust is built against one release of torch.
os.environ.setdefault("SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND", "python")


class Nothing(types.ModuleType):
    """A package that is not installed: whatever is imported of it is a class that takes anything."""

    __path__ = []
    __version__ = "0.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (Thing,), {"__module__": self.__name__})
        setattr(self, name, value)
        return value


class ThingKind(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing


class Thing(metaclass=ThingKind):
    def __init__(self, *a, **k):
        pass

    def __call__(self, *a, **k):
        return a[0] if len(a) == 1 and callable(a[0]) else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing()

    def __init_subclass__(cls, **k):
        pass

    def __class_getitem__(cls, item):
        return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, *a):
        from pydantic_core import core_schema
        return core_schema.any_schema()


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last: what nobody else finds and SGLang asks for."""

    def find_spec(self, name, path, target=None):
        top = name.split(".")[0]
        if top == "sglang" or top in sys.stdlib_module_names:
            return None
        if not isinstance(sys.modules.get(top), Nothing):
            frame = sys._getframe(1)
            while frame and "importlib" in frame.f_code.co_filename:
                frame = frame.f_back
            if "." in name or not frame or not frame.f_globals.get("__name__", "").startswith("sglang"):
                return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Nothing(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.append(Absent())
