# SPDX-License-Identifier: Apache-2.0
"""A fork server: runs a Python program up to the first thing in which ranks differ, and forks a process for every rank from there.

    python OPTIONS fork_server.py OUTPUT NAMES script|module|code TARGET ARGUMENTS...

Started by maquette (fork_server.h), which writes this file and those beside it into a folder of its private one. On descriptor 3 come requests, one for each rank; OUTPUT
is the file in which this process's own output goes, and which every rank's begins with. NAMES are the variables of the environment, with
commas between, in which ranks differ: the program is stopped where it asks for one of them, or for all variables at once, and before it does
what the processes of different ranks do each for themselves: writes or removes a file, opens a connection, asks for the name of its
host, starts a process. Of an installed module that is imported three things are let pass: that it starts a process, to find a library or a
compiler; that it makes the folder of a cache; and that it goes through all variables, to find its own. What the program did until then, which is
mostly to import its libraries, is the same on every rank.

What a rank imports later on, in the first that runs, the server imports as well before it forks the next: modules that are installed, and that ask
for nothing in which ranks differ while they are imported, nor import one that does, nor ask for a variable that the program has set by then.

A program with threads is not forked, nor one that has used its device (the zero-GPU device ends it), nor one that ends before it asks: this
process ends, and the ranks start by themselves.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = ("garbage_collector", "import_frames", "import_observer", "keeper", "rank_dependence", "run_program")

writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
from garbage_collector import freeze, watch_collector
from import_frames import importing
from import_observer import Observer
from keeper import keep
from rank_dependence import Torch, leave_environment, watch
from run_program import RUN
for module in OURS:
    del sys.modules[module]  # the program may have modules of these names
sys.dont_write_bytecode = writes

UNFIT = 87  # exit status: nothing can be forked off this program
COMMON, IMPORTING, OBSERVED, RANK = range(4)  # what all ranks do; what ranks were seen to import; a rank, the first; a rank

REQUESTS = 3
BLAS_THREADS = "OPENBLAS_NUM_THREADS"


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

    def is_rank(self):
        return self.doing == RANK

    def is_observed(self):
        return self.doing == OBSERVED

    def is_common(self):
        """What is done now all ranks do, or were seen to do."""
        return self.doing in (COMMON, IMPORTING)

    def observes(self):
        self.doing = OBSERVED

    def observed(self):
        self.doing = RANK

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
            freeze()
            if os.fork() == 0:
                requests.close()
                if keep(descriptors):
                    self.become(words)
                    if first:
                        self.observer.begin()
                    else:
                        self.torch.leave()
                        leave_environment()
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


def main():
    output, names, kind, target, *arguments = sys.argv[1:]
    server = Server(output, set(names.split(",")))
    if BLAS_THREADS not in os.environ:
        os.putenv(BLAS_THREADS, "1")  # one that is loaded with threads of its own, as numpy's is, cannot be forked
    keep_alive.append(sys.modules["__main__"])
    watch(server)
    watch_collector()
    try:
        RUN[kind](target, arguments)
    except SystemExit:
        if server.doing == COMMON:
            os._exit(UNFIT)
        raise
    except BaseException:
        if server.doing == COMMON:
            os._exit(UNFIT)
        of, error, trace = sys.exc_info()
        while trace and os.path.dirname(trace.tb_frame.f_code.co_filename) == HERE:
            trace = trace.tb_next  # frames of ours are not the program's
        sys.excepthook(of, error.with_traceback(trace), trace)
        sys.exit(130 if of is KeyboardInterrupt else 1)
    if server.doing == COMMON:
        os._exit(UNFIT)


keep_alive = []  # this module's own names, once another is __main__
main()
