# SPDX-License-Identifier: Apache-2.0
"""The process between maquette and a rank that was forked: what src/launch/program.c is for a program that starts by itself."""
import os

READY = b"r"


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
