# SPDX-License-Identifier: Apache-2.0
"""Has a program stop in front of the first thing in which ranks differ: a variable of the environment, or what each rank does for itself."""
import os
import sys

from import_frames import imports_a_library, seeks_temporary_folder

BEFORE = {  # audit events
    "os.exec", "os.fork", "os.forkpty", "os.mkdir", "os.posix_spawn", "os.remove", "os.rename", "os.rmdir", "os.spawn", "os.system",
    "os.truncate", "pty.spawn", "socket.bind", "socket.connect", "socket.getaddrinfo",
    "socket.gethostbyaddr", "socket.gethostbyname", "socket.gethostname", "socket.sendmsg", "socket.sendto", "subprocess.Popen",
    "tempfile.mkdtemp", "tempfile.mkstemp"}
LET_PASS = {"os.mkdir", "os.posix_spawn", "os.system", "subprocess.Popen"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

Environ = type(os.environ)


class Torch:
    """PyTorch refuses a device after a fork if it was only asked how many there are before: the program is stopped before it asks."""

    ASKS = ("_cuda_getDeviceCount", "_cuda_init")

    def __init__(self, server):
        self.server, self.library, self.own = server, None, {}

    def watch(self):
        """Called when torch.cuda is imported, of which these are functions in C."""
        self.library = sys.modules.get("torch._C")
        for name in self.ASKS:
            function = getattr(self.library, name, None)
            if function and name not in self.own:
                self.own[name] = function
                setattr(self.library, name, self.stopping(function))

    def stopping(self, function):
        def asks(*arguments):
            self.server.stop()
            return function(*arguments)

        return asks

    def leave(self):
        for name, function in self.own.items():
            setattr(self.library, name, function)


def leave_environment():
    """The variables are the program's own again."""
    os.environ.__class__ = os.environb.__class__ = Environ


def watch(server):
    """Has the program stop where it asks for what ranks differ in."""

    class Watched(Environ):
        given = None  # the variable that somebody who goes through all has come to

        def __getitem__(self, key):
            if key is Watched.given:
                pass
            elif key in names:
                server.stop()
            elif server.is_observed():
                server.observer.asked_for(self.encodekey(key))
            return Environ.__getitem__(self, key)

        def __setitem__(self, key, value):
            if key in names:
                server.stop()
            Environ.__setitem__(self, key, value)

        def __delitem__(self, key):
            if key in names:
                server.stop()
            Environ.__delitem__(self, key)

        def __iter__(self):
            if not imports_a_library():
                server.stop()
            elif server.is_observed():
                server.observer.asked_for_all()
            for key in Environ.__iter__(self):
                if not server.is_common() or key not in names:
                    Watched.given = key
                    yield key
            Watched.given = None

        def __len__(self):
            server.stop()
            return Environ.__len__(self)

    names = server.names | {os.fsencode(name) for name in server.names}  # of os.environ and of os.environb
    os.environ.__class__ = os.environb.__class__ = Watched

    def heard(event, arguments):
        if server.is_rank():
            return
        if event == "import":
            if arguments[0] == "torch.cuda":
                server.torch.watch()
            stops = False
        elif event == "open":
            path, _, flags = arguments
            stops = flags & WRITES and isinstance(path, (str, bytes)) and "__pycache__" not in os.fsdecode(path) and path != "/dev/null"
        elif event in ("os.mkdir", "os.rename") and "__pycache__" in str(arguments[0]):
            stops = False
        else:
            stops = event in BEFORE and not (event in LET_PASS and imports_a_library())
        if stops and not seeks_temporary_folder():
            server.stop()

    sys.addaudithook(heard)
