# SPDX-License-Identifier: Apache-2.0
"""What the first rank imports, and what that asks for: the server imports the same before it forks the next rank."""
import os
import sys

from import_frames import importing, is_installed


class Observer:
    """Of the first rank: which modules it imports, and what they ask for while they are imported."""

    def __init__(self, server):
        self.server = server
        self.before = set(sys.modules)
        self.differing = set(server.stopped_in)  # modules whose import may do something else on another rank, or in the server
        self.environment = {}  # as the server has it, but for what ranks differ in
        self.needs = {}  # module -> modules that it imports while it is imported
        self.going_on = []  # imports that have begun here

    def begin(self):
        import atexit
        import builtins
        self.server.observes()
        self.environment = dict(os.environ._data)
        atexit.register(self.write)
        original = builtins.__import__

        def watched(name, globals=None, locals=None, fromlist=(), level=0):
            by = globals.get("__name__") if globals else None
            if level:
                package = (globals.get("__package__") or "").rsplit(".", level - 1)[0]
                absolute = package + "." + name if name else package
            else:
                absolute = name
            for importer in {by, *self.going_on[-1:]}:
                self.needs.setdefault(importer, set()).update([absolute], (absolute + "." + part for part in fromlist or ()))
            self.going_on.append(absolute)
            try:
                return original(name, globals, locals, fromlist, level)
            finally:
                self.going_on.pop()

        builtins.__import__ = watched

    def asked(self):
        """For what ranks differ in."""
        self.differing |= importing()

    def asked_for(self, key):
        """For a variable: where the program has set it, the server's import would find another."""
        if os.environ._data.get(key) != self.environment.get(key):
            self.differing |= importing()

    def asked_for_all(self):
        """For all variables, as a package does that looks for its own, which begin with its name."""
        now = os.environ._data
        changed = [os.fsdecode(key).lower() for key in {*now, *self.environment} if now.get(key) != self.environment.get(key)]
        self.differing |= {name for name in importing() if any(key.startswith(name.partition(".")[0].lower()) for key in changed)}

    def may_differ(self):
        """Modules whose import may do something else on another rank, and all that import them."""
        found = set(self.differing)
        grown = True
        while grown:
            more = {name for name, needs in self.needs.items() if name not in found and needs & found}
            more |= {name for name in sys.modules if name not in found and name.rpartition(".")[0] in found}
            found |= more
            grown = bool(more)
        return found

    def write(self):
        self.server.observed()
        differ = self.may_differ()
        names = [name for name, module in list(sys.modules.items())
                 if name not in self.before and name not in differ and is_installed(getattr(getattr(module, "__spec__", None), "origin", None))]
        with open(self.server.imports + ".new", "w", encoding="utf-8") as imports:
            imports.write("\n".join(names))
        os.rename(self.server.imports + ".new", self.server.imports)
