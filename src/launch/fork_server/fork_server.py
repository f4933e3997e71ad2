# SPDX-License-Identifier: Apache-2.0
"""A fork server: runs a Python program up to the first thing in which ranks differ, and forks a process for every rank from there.

    python OPTIONS fork_server.py OUTPUT NAMES script|module|code TARGET ARGUMENTS...

Started by maquette (fork_server.h), which writes this file into its private folder. On descriptor 3 come requests, one for each rank; OUTPUT
is the file in which this process's own output goes, and which every rank's begins with. NAMES are the variables of the environment, with
commas between, in which ranks differ: the program is stopped where it asks for one of them, or for all variables at once, and before it does
what the processes of different ranks do each for themselves: writes or removes a file, opens a connection, asks for the name of its
host, starts a process. Of an installed module that is imported three things are let pass: that it starts a process, to find a library or a
compiler; that it makes the folder of a cache; and that it goes through all variables, to find its own. What the program did until then, which is
mostly to import its libraries, is the same on every rank.

What a rank imports later on, in the first that runs, the server imports as well before it forks the next: modules that are installed, and that ask
for nothing in which ranks differ while they are imported, nor import one that does, nor ask for a variable that the program sets.

A program with threads is not forked, nor one that has used its device (the zero-GPU device ends it), nor one that ends before it asks: this
process ends, and the ranks start by themselves.
"""
import os
import sys

UNFIT = 87  # exit status: nothing can be forked off this program
READY = b"r"
COMMON, IMPORTING, OBSERVED, RANK = range(4)  # what all ranks do; what ranks were seen to import; a rank, the first; a rank

REQUESTS = 3
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
BEFORE = {  # audit events
    "os.exec", "os.fork", "os.forkpty", "os.mkdir", "os.posix_spawn", "os.remove", "os.rename", "os.rmdir", "os.spawn", "os.system",
    "os.truncate", "pty.spawn", "socket.bind", "socket.connect", "socket.getaddrinfo",
    "socket.gethostbyaddr", "socket.gethostbyname", "socket.gethostname", "socket.sendmsg", "socket.sendto", "subprocess.Popen",
    "tempfile.mkdtemp", "tempfile.mkstemp"}
LET_PASS = {"os.mkdir", "os.posix_spawn", "os.system", "subprocess.Popen"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Server:
    """What this process knows of itself, and later the process of a rank."""

    def __init__(self, output, names):
        self.output, self.names, self.before = output, names, b""
        self.doing = COMMON
        self.stopped_in = set()  # modules whose import was going on where the program was stopped
        self.observer = None
        self.torch = Torch(self)
        self.imports = output + ".imports"  # file of an observer's
        os.set_inheritable(REQUESTS, False)

    def stop(self):
        """Called before anything in which ranks differ. Returns in the processes of ranks."""
        if self.doing == OBSERVED:
            self.observer.asked()
        elif self.doing == IMPORTING:
            os._exit(UNFIT)
        elif self.doing == COMMON:
            self.serve()

    def serve(self):
        self.doing = RANK  # whatever comes in between is our own doing
        self.stopped_in = importing()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if len(os.listdir("/proc/self/task")) > 1:
            os._exit(UNFIT)
        with open(self.output, "rb") as output:
            self.before = output.read()
        import _socket
        requests = _socket.socket(fileno=REQUESTS)
        while True:
            words, descriptors = receive(_socket, requests)
            if not words:
                os._exit(0)
            first, known = self.observer is None, os.path.exists(self.imports)
            if known:
                self.import_what_ranks_import()
            self.observer = self.observer or Observer(self)
            if os.fork() == 0:
                requests.close()
                if keep(descriptors):
                    self.become(words)
                    if first:
                        self.observer.begin()
                    else:
                        self.torch.leave()
                        os.environ.__class__ = os.environb.__class__ = Environ
                    return
            for descriptor in descriptors:
                os.close(descriptor)
            reap()

    def import_what_ranks_import(self):
        import importlib
        with open(self.imports, encoding="utf-8") as imports:
            names = imports.read().split()
        os.remove(self.imports)
        self.doing = IMPORTING
        for name in names:
            importlib.import_module(name)  # what fails here ends this process: ranks start by themselves
        if len(os.listdir("/proc/self/task")) > 1:
            os._exit(UNFIT)
        self.doing = RANK

    def become(self, words):
        """This process is a rank, in front of what it was stopped at."""
        for word in words:
            name, _, value = word.partition("=")
            os.environ[name] = value
        if BLAS_THREADS not in os.environ:
            os.unsetenv(BLAS_THREADS)
        os.write(1, self.before)
        platform = sys.modules.get("platform")
        if getattr(platform, "_uname_cache", None):
            platform._uname_cache = None  # the name of the host is in it


def receive(_socket, requests):
    """The variables of a rank, and the descriptors that its keeper gets."""
    data, ancillary, _, _ = requests.recvmsg(1 << 16, _socket.CMSG_SPACE(12), _socket.MSG_CMSG_CLOEXEC)
    descriptors = [int.from_bytes(content[at:at + 4], sys.byteorder) for _, _, content in ancillary for at in range(0, len(content), 4)]
    return [os.fsdecode(word) for word in data.split(b"\0") if word], descriptors


def reap():
    """Keepers that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def keep(descriptors):
    """Forks the process of a rank, which this is true in, and is its keeper (src/launch/program.c) in between."""
    life, report, output = descriptors
    ready, tell = os.pipe()
    rank = os.fork()
    if rank == 0:
        os.setpgid(0, 0)
        os.close(life)
        os.close(report)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.close(tell)
        os.read(ready, 1)  # until its keeper adopts what it leaves behind
        os.close(ready)
        return True
    try:
        Keeper(rank, life, report, tell).run()
    finally:
        os._exit(0)


class Keeper:
    """Waits for a rank's process and all that it starts, and ends them all when it is told to, or when maquette is gone."""

    def __init__(self, rank, life, report, tell):
        import ctypes
        import select
        import signal
        import struct
        self.rank, self.life, self.report = rank, life, report
        self.select, self.signal, self.struct = select, signal, struct
        self.status = self.peak_bytes = self.cpu_us = 0
        self.ended = self.orphaned = False
        os.setpgid(0, 0)
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals() - {signal.SIGCHLD})
        self.woken, wakes = os.pipe()
        for descriptor in (self.woken, wakes):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        os.write(tell, READY)
        os.close(tell)

    def run(self):
        while self.reap():
            killing = self.ended or self.orphaned
            if killing:
                self.kill_all()
            poll = self.select.poll()
            poll.register(self.woken, self.select.POLLIN)
            if not self.orphaned:
                poll.register(self.life, self.select.POLLIN)
            for descriptor, _ in poll.poll(10 if killing else None):
                if descriptor == self.life:
                    self.hear()
                else:
                    os.read(self.woken, 4096)
        os.write(self.report, self.struct.pack("=iiqq", 0, self.status, self.peak_bytes, self.cpu_us))

    def reap(self):
        """False when nothing is left."""
        try:
            while True:
                pid, status, used = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return True
                self.peak_bytes = max(self.peak_bytes, used.ru_maxrss * 1024)
                self.cpu_us += round((used.ru_utime + used.ru_stime) * 1e6)
                if pid == self.rank:
                    self.status, self.ended = status, True
        except ChildProcessError:
            return False

    def hear(self):
        number = os.read(self.life, 1)
        self.orphaned = not number
        if number:
            self.kill(-self.rank, number[0])

    def kill(self, pid, number):
        try:
            os.kill(pid, number)
        except OSError:
            pass

    def kill_all(self):
        self.kill(-self.rank, self.signal.SIGKILL)
        with open("/proc/thread-self/children", encoding="ascii") as children:
            for pid in children.read().split():
                self.kill(int(pid), self.signal.SIGKILL)


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


Environ = type(os.environ)


class Observer:
    """Of the first rank: which modules it imports, and what they ask for while they are imported."""

    def __init__(self, server):
        self.server = server
        self.before = set(sys.modules)
        self.differing = set(server.stopped_in)  # modules that ask for what ranks differ in
        self.asked_by = {}  # variable -> modules; None: all variables
        self.set = set()  # variables that the program sets, other than in such imports
        self.needs = {}  # module -> modules that it imports while it is imported
        self.going_on = []  # imports that have begun here

    def begin(self):
        import atexit
        import builtins
        self.server.doing = OBSERVED
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

    def asked(self, variable=""):
        """For what ranks differ in, or for a variable."""
        modules = importing()
        if variable == "":
            self.differing |= modules
        elif modules:
            self.asked_by.setdefault(variable, set()).update(modules)

    def may_differ(self):
        """Modules whose import may do something else on another rank, and all that import them."""
        found = set(self.differing)
        for variable in self.set | ({None} if self.set else set()):
            found |= self.asked_by.get(variable, set())
        grown = True
        while grown:
            more = {name for name, needs in self.needs.items() if name not in found and needs & found}
            more |= {name for name in sys.modules if name not in found and name.rpartition(".")[0] in found}
            found |= more
            grown = bool(more)
        return found

    def write(self):
        self.server.doing = RANK
        differ = self.may_differ()
        names = [name for name, module in list(sys.modules.items())
                 if name not in self.before and name not in differ and is_installed(getattr(getattr(module, "__spec__", None), "origin", None))]
        with open(self.server.imports + ".new", "w", encoding="utf-8") as imports:
            imports.write("\n".join(names))
        os.rename(self.server.imports + ".new", self.server.imports)


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


def watch(server):
    """Has the program stop where it asks for what ranks differ in."""

    class Watched(Environ):
        def __getitem__(self, key):
            if key in names:
                server.stop()
            elif server.doing == OBSERVED:
                server.observer.asked(os.fsdecode(key))
            return Environ.__getitem__(self, key)

        def __setitem__(self, key, value):
            if key in names:
                server.stop()
            elif server.doing == OBSERVED and not imports_a_library():
                server.observer.set.add(os.fsdecode(key))
            Environ.__setitem__(self, key, value)

        def __delitem__(self, key):
            if key in names:
                server.stop()
            elif server.doing == OBSERVED and not imports_a_library():
                server.observer.set.add(os.fsdecode(key))
            Environ.__delitem__(self, key)

        def __iter__(self):
            if not imports_a_library():
                server.stop()
            elif server.doing == OBSERVED:
                server.observer.asked(None)
            return (key for key in Environ.__iter__(self) if server.doing not in (COMMON, IMPORTING) or key not in names)

        def __len__(self):
            server.stop()
            return Environ.__len__(self)

    names = server.names | {os.fsencode(name) for name in server.names}  # of os.environ and of os.environb
    os.environ.__class__ = os.environb.__class__ = Watched

    def heard(event, arguments):
        if server.doing == RANK:
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


def main():
    output, names, kind, target, *arguments = sys.argv[1:]
    server = Server(output, set(names.split(",")))
    run = {"script": run_script, "module": run_module, "code": run_code}[kind]
    if BLAS_THREADS not in os.environ:
        os.putenv(BLAS_THREADS, "1")  # one that is loaded with threads of its own, as numpy's is, cannot be forked
    keep_alive.append(sys.modules["__main__"])
    watch(server)
    try:
        run(target, arguments)
    except SystemExit:
        if server.doing == COMMON:
            os._exit(UNFIT)
        raise
    except BaseException:
        if server.doing == COMMON:
            os._exit(UNFIT)
        kind, error, trace = sys.exc_info()
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next  # frames of ours are not the program's
        sys.excepthook(kind, error.with_traceback(trace), trace)
        sys.exit(130 if kind is KeyboardInterrupt else 1)
    if server.doing == COMMON:
        os._exit(UNFIT)


keep_alive = []  # this module's own names, once another is __main__
main()
