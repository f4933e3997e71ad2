#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette ui` as it runs: what its socket refuses, that it ends by Ctrl-C, and its page in a browser, at 400 and 1,600 pixels, in light and dark: no error
on the console, the numbers of --json, an answer at a change, faults beside their places, searches with progress that can be stopped.

The browser is `chromium` (or what CHROMIUM names), driven over a pipe by its DevTools protocol; without one those checks are skipped, and all of them
without libmicrohttpd. Pictures are kept where MAQ_UI_PICTURES says.
maq-test: no sanitizer
maq-test: long
"""
import base64
import concurrent.futures
import fcntl
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import PROGRAM, ROOT, Tap  # noqa: E402

BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIMIT_S = 60
VIEWS = ((400, "dark"), (400, "light"), (1600, "dark"), (1600, "light"))
PICTURES = os.environ.get("MAQ_UI_PICTURES")


class Server:
    """The program, from its start to its end."""

    def __init__(self, *words):
        self.program = subprocess.Popen([PROGRAM, "ui", "--no-browser", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.program.stdout.readline().strip()
        address = urllib.parse.urlsplit(self.address)
        self.port, self.token = address.port, address.fragment

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.program.poll() is None:
            self.end(signal.SIGTERM)

    def end(self, number):
        self.program.send_signal(number)
        try:
            rest, said = self.program.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.program.kill()
            return None, ""
        return self.program.returncode, rest + said

    def raw(self, data):
        """What comes back on a connection, until it is closed or complete."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S) as s:
            try:
                s.sendall(data)
            except OSError:
                pass  # it did not want to read all
            got = b""
            while True:
                try:
                    part = s.recv(65536)
                except OSError:
                    break
                got += part
                head, end, body = got.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                if not part or (end and length and len(body) >= int(length.group(1))):
                    break
            return got

    def ask(self, method, path, body=None, **headers):
        given = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if body is not None:
            given.setdefault("Content-Type", "application/json")
            given.setdefault("Content-Length", str(len(data)))
        lines = "".join(f"{k}: {v}\r\n" for k, v in given.items() if v is not None)
        got = self.raw(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + data)
        status = int(got.split(b" ", 2)[1]) if got.startswith(b"HTTP/") else 0
        return status, got.partition(b"\r\n\r\n")[2]


# --- the socket -----------------------------------------------------------------------------------------------------------

def refused(tap, server):
    """(name, statuses that are right, what is sent); 0: the connection is closed without an answer."""
    host, token = f"Host: 127.0.0.1:{server.port}\r\n", f"Authorization: Bearer {server.token}\r\n"
    post = f"POST /api/answer HTTP/1.1\r\n{host}{token}Content-Type: application/json\r\n"
    cases = [
        ("no request", {0, 400}, "\r\n\r\nhello\r\n\r\n"),
        ("no version", {0, 400, 505}, f"GET /\r\n{host}\r\n"),
        ("a version that is none", {0, 400, 505}, f"GET / HTTP/9.9\r\n{host}\r\n"),
        ("no host", {0, 400, 403}, "GET / HTTP/1.1\r\n\r\n"),
        ("another host", {403}, f"GET /api/session HTTP/1.1\r\nHost: evil.example:{server.port}\r\n{token}\r\n"),
        ("a whole address of another host", {400, 403, 404}, f"GET http://evil.example/api/session HTTP/1.1\r\n{host}{token}\r\n"),
        ("another origin", {403}, f"GET /api/session HTTP/1.1\r\n{host}{token}Origin: http://evil.example\r\n\r\n"),
        ("no token", {401}, f"GET /api/session HTTP/1.1\r\n{host}\r\n"),
        ("a path up", {404}, f"GET /../../../../etc/passwd HTTP/1.1\r\n{host}{token}\r\n"),
        ("a path up in disguise", {404}, f"GET /api/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n{host}{token}\r\n"),
        ("an end in a path", {404}, f"GET /api/session%00.html HTTP/1.1\r\n{host}{token}\r\n"),
        ("a header that does not end", {0, 400, 413, 431}, f"GET / HTTP/1.1\r\n{host}X: {'x' * 100000}\r\n\r\n"),
        ("too many headers", {0, 400, 413, 431}, f"GET / HTTP/1.1\r\n{host}{''.join(f'X{i}: 1{chr(13)}{chr(10)}' for i in range(200))}\r\n"),
        ("a body of a gigabyte, said", {413}, f"{post}Content-Length: 1073741824\r\n\r\n{{"),
        ("a length that is none", {0, 400, 413}, f"{post}Content-Length: -1\r\n\r\n{{}}"),
        ("a body in parts that goes on", {0, 413}, f"{post}Transfer-Encoding: chunked\r\n\r\n" + ("10000\r\n" + "x" * 65536 + "\r\n") * 80),
        ("no JSON", {400}, f"{post}Content-Length: 9\r\n\r\nnot json!"),
    ]
    for name, right, text in cases:
        got = server.raw(text.encode())
        status = int(got.split(b" ", 2)[1]) if got.startswith(b"HTTP/") else 0
        good = status in right and b"root:" not in got
        tap.result(good, f"refused: {name}", "" if good else f"status {status}: {got[:300]!r}")
    status, body = server.ask("GET", "/api/session")
    tap.result(status == 200 and b'"commands"' in body, "and it still answers", f"{status} {body[:200]!r}")


def listens_here_alone(tap, server):
    """Its socket in the kernel's table has the loopback address."""
    wanted = f":{server.port:04X}"
    rows = [line.split() for name in ("/proc/net/tcp", "/proc/net/tcp6") if os.path.exists(name) for line in pathlib.Path(name).read_text().splitlines()[1:]]
    local = {row[1] for row in rows if row[1].endswith(wanted) and row[3] == "0A"}
    tap.result(local == {f"0100007F{wanted}"}, "it listens on 127.0.0.1 alone", str(local))


def at_once(tap, server):
    """Different jobs at the same time: each gets its own answer, the same as alone."""
    def one(tp):
        status, body = server.ask("POST", "/api/answer", {"command": "train", "document": "model: llama-3.1-8b\ncluster: h100-sxm:8\nworkload: {gbs: 64}\n",
                                                           "options": {"tensor_model_parallel_size": str(tp)}})
        return status, body
    alone = {tp: one(tp) for tp in (1, 2, 4, 8)}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: (2 ** (i % 4), one(2 ** (i % 4))), range(32)))
    wrong = [tp for tp, answer in found if answer[0] != 200 or answer != alone[tp]]
    tap.result(not wrong and len(set(alone.values())) == 4, "32 requests at once", str(wrong))


def ends(tap):
    for number in (signal.SIGINT, signal.SIGTERM):
        with Server() as server:
            status, said = server.end(number)
        tap.result(status == 0 and not said, f"it ends by {number.name}", f"{status} {said}")
    with Server() as server:  # while a search of hours runs
        server.ask("POST", "/api/runs", {"command": "plan", "document": (ROOT / "examples/llama3-405b-16k.yaml").read_text(encoding="utf-8"),
                                         "options": {"free": True, "full": True}})
        began = server.ask("GET", "/api/runs/1")
        status, said = server.end(signal.SIGINT)
    tap.result(b'"running"' in began[1] and status == 0, "and while a search runs", f"{began} {status} {said}")
    with Server() as server:
        again = subprocess.run([PROGRAM, "ui", "--no-browser", "--port", str(server.port)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    tap.result(again.returncode == 4 and "MAQ1812" in again.stderr, "a port that is taken", again.stderr)


# --- the browser ----------------------------------------------------------------------------------------------------------

class Browser:
    """Chromium over a pipe: a page, what it says, what it answers."""

    def __init__(self, folder):
        mine, theirs = os.pipe(), os.pipe()  # commands: theirs to read; answers: mine to read
        reads, writes = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (theirs[0], mine[1]))
        args = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={folder}",
                "--remote-debugging-pipe", "about:blank"]
        self.program = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", *args], pass_fds=(reads, writes),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (theirs[0], mine[1], reads, writes):
            os.close(fd)
        self.into, self.out_of, self.held, self.number, self.said, self.session = theirs[1], mine[0], b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def close(self):
        self.program.kill()
        self.program.wait()
        os.close(self.into)
        os.close(self.out_of)

    def message(self):
        end = time.monotonic() + LIMIT_S
        while b"\0" not in self.held:
            if not select.select([self.out_of], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            part = os.read(self.out_of, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self.held += part
        text, self.held = self.held.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.into, json.dumps(asked).encode() + b"\0")
        while True:
            got = self.message()
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]
            if got.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded") or (
                    got.get("method") == "Runtime.consoleAPICalled" and got["params"]["type"] in ("error", "warning", "assert")):
                self.said.append(json.dumps(got["params"])[:500])

    def value(self, script):
        got = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(f"{script[:80]}: {json.dumps(got['exceptionDetails'])[:400]}")
        return got["result"].get("value")

    def wait(self, script):
        end = time.monotonic() + LIMIT_S
        while not self.value(script):
            if time.monotonic() > end:
                raise TimeoutError(f"it does not come to be: {script}")
            time.sleep(0.02)

    def view(self, width, theme, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def open(self, address):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)

    def picture(self, name):
        if not PICTURES:
            return
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        (pathlib.Path(PICTURES) / f"{name}.png").write_bytes(base64.b64decode(data))

    def press(self, key, code=0, **more):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)


# What is asked of the page.
LOOK = r"""(() => {
  const blank = [...document.querySelectorAll('#shown .plot')].filter(p => ![...p.querySelectorAll('canvas')].some(c => {
    if (c.width === 0 || c.height === 0) return false;
    const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {willReadFrequently: true});
    copy.drawImage(c, 0, 0);
    const d = copy.getImageData(0, 0, c.width, c.height).data;
    for (let i = 3; i < d.length; i += 4) if (d[i]) return true;
    return false;
  })).map(p => p.id);
  return {blank, plots: document.querySelectorAll('#shown .plot').length, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
          paper: getComputedStyle(document.body).backgroundColor, cards: [...document.querySelectorAll('#shown .cards .value')].map(e => e.textContent),
          rows: document.querySelectorAll('#shown #memory tbody tr').length, line: document.getElementById('line').textContent,
          unnamed: [...document.querySelectorAll('.ui :is(input, select, textarea)')].filter(e => !(e.labels && e.labels.length) && !e.getAttribute('aria-label')).length};
})()"""
DRAWN = "(document.documentElement.dataset.drawing || '0') === '0'"
ANSWERED = "Number((document.documentElement || {dataset: {}}).dataset.answered || 0)"


def typed(browser, field, text):
    """Into the field of an option, as a person would: what it then has."""
    browser.value(f"(() => {{ const e = document.querySelector('[data-name=\"{field}\"] :is(input, select, textarea)'); e.value = {json.dumps(text)};"
                  " e.dispatchEvent(new Event(e.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true})); })()")


def change(browser, do):
    """Does something that the program answers, and waits for that."""
    before = browser.value(ANSWERED)
    do()
    browser.wait(f"{ANSWERED} > {before}")
    browser.wait(DRAWN)


def command_line(*words):
    run = subprocess.run([PROGRAM, *words, "--json"], capture_output=True, text=True, check=False, cwd=ROOT)
    return json.loads(run.stdout)


JOB = str(ROOT / "src/cli/ui/assets/train.yaml")


def headline(document):
    s, b = document["step_time_s"], document["stages"][document["worst_memory_stage"]]["memory"]["total_bytes"]
    gib = b / 2**30
    return [f"{s:.4g} s", f'MFU {100 * document["mfu"]:.1f} %', f"{gib:.1f} GiB" if gib < 99.95 else f"{gib:.0f} GiB"]


def shows(document, cards):
    return [text for text in headline(document) if text not in cards]


def looks(tap, browser, server):
    document = command_line("train", JOB)
    for width, theme in VIEWS:
        browser.view(width, theme)
        if theme == "dark":  # the other is what it turns to
            browser.open(server.address)
            browser.wait(f"{ANSWERED} > 0")
        browser.wait(DRAWN)
        found = browser.value(LOOK)
        dark = sum(int(x) for x in re.findall(r"\d+", found["paper"])[:3]) < 384
        faults = [f"charts are missing: {found['blank']}"] * bool(found["blank"] or found["plots"] < 4)
        faults += [f"{found['wide']} px wider than the window"] * (found["wide"] > 0) + [f"colours are not {theme}"] * (dark != (theme == "dark"))
        faults += [f"not in the headline: {text}" for text in shows(document, found["cards"])]
        faults += ["a stage has no memory"] * (found["rows"] < 1) + [f"{found['unnamed']} fields without a label"] * (found["unnamed"] > 0)
        tap.result(not faults, f"the page at {width} px, {theme}", "\n".join(faults + [str(found["cards"])]))
        browser.picture(f"train-{width}-{theme}")
    tap.result(server.token not in browser.value("location.href + document.documentElement.outerHTML"), "the token is not in the page, nor in its address")


def answers(tap, browser):
    time.sleep(1.6)  # a reader has seen the answer before
    change(browser, lambda: typed(browser, "tensor_model_parallel_size", "4"))
    found = browser.value(LOOK)
    missing = shows(command_line("train", JOB, "--tp", "4"), found["cards"])
    tap.result(not missing and found["line"] == "maquette train job.yaml --tensor-model-parallel-size 4", "a change is answered", f"{missing} {found}")
    print("# " + browser.value("document.getElementById('took').textContent") + ", in the browser on this machine")
    browser.wait("document.querySelector('#changed li') !== null")
    said = browser.value("document.getElementById('changed').textContent")
    tap.result("step" in said.lower() and "%" in said, "and what changed is said", said[:300])
    browser.value("document.querySelector('#changed details').open = true")
    browser.wait("document.querySelectorAll('#changed canvas').length > 0")
    browser.picture("changed")
    # Many changes at once: the last one counts.
    for text in ("1", "2", "8", "2"):
        typed(browser, "tensor_model_parallel_size", text)
    browser.wait("document.getElementById('line').textContent.endsWith(' 2')")
    browser.wait(DRAWN)
    tap.result(not shows(command_line("train", JOB, "--tp", "2"), browser.value(LOOK)["cards"]), "the newest change wins")
    change(browser, lambda: typed(browser, "tensor_model_parallel_size", ""))


def set_document(browser, text):
    browser.value(f"(() => {{ const e = document.getElementById('document'); e.value = {json.dumps(text)}; e.dispatchEvent(new Event('input', {{bubbles: true}})); }})()")


def faults(tap, browser):
    good = pathlib.Path(JOB).read_text(encoding="utf-8")
    change(browser, lambda: set_document(browser, good.replace("micro_batch_size", "mikro_batch_size")))
    found = browser.value("""({text: document.getElementById('findings').textContent, marks: [...document.querySelectorAll('#lines .bad')].map(e => e.textContent),
                               stale: document.body.classList.contains('stale'), shown: document.querySelectorAll('#shown .card').length})""")
    line = 1 + good[:good.index("micro_batch_size")].count("\n")
    right = "MAQ1021" in found["text"] and "micro_batch_size" in found["text"] and found["marks"] == [str(line)] and found["stale"] and found["shown"] > 0
    tap.result(right, "a fault of the job, beside its line", str(found))
    browser.picture("fault")
    browser.value("document.querySelector('#findings button').click()")
    at = browser.value("[document.activeElement.id, document.activeElement.selectionStart]")
    tap.result(at == ["document", good.index("micro_batch_size")], "and a way to it", str(at))
    change(browser, lambda: set_document(browser, good))
    change(browser, lambda: typed(browser, "cluster", "h1000:8"))
    said = browser.value("(document.querySelector('[data-name=cluster] .fault') || {}).textContent")
    tap.result("MAQ1200" in str(said) and "did you mean" in str(said), "a fault of an option, beside its field", str(said))
    change(browser, lambda: typed(browser, "cluster", "<b>&'\""))
    tap.result(browser.value("document.querySelectorAll('#edit b').length") == 0, "what a user wrote is no markup")
    change(browser, lambda: typed(browser, "cluster", ""))
    tap.result(browser.value("document.querySelectorAll('.fault, #findings li.error').length") == 0, "and nothing is left of it")


def taken_away(tap, browser):
    browser.value("""(() => { window.saved = []; const make = URL.createObjectURL;
        URL.createObjectURL = blob => { blob.text().then(t => window.saved.push(t)); return make(blob); };
        addEventListener('click', e => e.target.tagName === 'A' && e.target.download && e.preventDefault(), true); })()""")
    change(browser, lambda: typed(browser, "micro_batch_size", "2"))
    browser.value("document.getElementById('save-job').click()")
    browser.wait("window.saved.length > 0")
    browser.value("document.getElementById('save-report').click()")
    browser.wait("window.saved.length > 1")
    job, report = browser.value("window.saved")
    tap.result("micro_batch_size: 2" in job and "llama-3.1-70b" in job, "the job file has the option", job)
    with tempfile.TemporaryDirectory(prefix="maq-test-") as folder:
        shutil.copy(JOB, pathlib.Path(folder) / "job.yaml")
        subprocess.run([PROGRAM, "train", "job.yaml", "--micro-batch-size", "2", "--html", "own.html"], cwd=folder, stdout=subprocess.DEVNULL, check=False)
        own = (pathlib.Path(folder) / "own.html").read_text(encoding="utf-8")
    tap.result(own == report, "and the report is that of the command line, to the byte", f"{len(own)} and {len(report)} bytes")
    change(browser, lambda: typed(browser, "micro_batch_size", ""))


def runs(tap, browser):
    browser.value("document.querySelector('#tabs button').focus()")
    browser.press("ArrowRight", 39)
    browser.wait("document.querySelector('#tabs [aria-selected=true]').textContent === 'plan' && document.activeElement.textContent === 'plan'")
    typed(browser, "model", "llama-3.1-8b")
    typed(browser, "cluster", "h100-sxm:8")
    browser.value("document.getElementById('every').open = true")
    browser.wait("document.querySelector('#all .field') !== null")
    browser.value("document.getElementById('seek').value = 'free'; document.getElementById('seek').dispatchEvent(new Event('input'))")
    browser.value("document.querySelector('#all [data-name=free] input').click()")
    browser.press("Enter", 13, modifiers=2)
    browser.wait("document.getElementById('use-plan') !== null")
    tap.result("best" in browser.value("document.getElementById('shown').textContent").lower(), "a search, begun and shown by keys")
    browser.picture("plan")
    change(browser, lambda: browser.value("document.getElementById('use-plan').click()"))
    found = browser.value(LOOK)
    tap.result(found["line"] == "maquette train job.yaml" and len(found["cards"]) >= 4 and not browser.value("document.querySelectorAll('.fault, #findings li.error').length"),
               "its plan becomes the job", str(found))
    # One that takes long: progress, and an end before it is done.
    set_document(browser, (ROOT / "examples/llama3-405b-16k.yaml").read_text(encoding="utf-8"))
    browser.value("[...document.querySelectorAll('#tabs button')][1].click()")
    browser.value("document.getElementById('clear').click()")
    typed(browser, "model", "llama-3.1-405b")
    browser.value("document.getElementById('seek').value = ''; document.getElementById('seek').dispatchEvent(new Event('input'))")
    for name in ("free", "full"):
        browser.value(f"document.querySelector('#all [data-name={name}] input').click()")
    browser.value("document.getElementById('go').click()")
    browser.wait("/cells|plans|bounds/.test(document.getElementById('progress').textContent)")
    browser.picture("progress")
    browser.value("document.getElementById('stop').click()")
    browser.wait("document.getElementById('go').disabled === false")
    tap.result(browser.value("document.getElementById('stop').hidden"), "a long search says how far it is, and is stopped")
    browser.value("[...document.querySelectorAll('#tabs button')][2].click()")
    browser.value("document.getElementById('go').click()")
    browser.wait("document.querySelectorAll('#shown .plot canvas').length > 2")
    browser.wait(DRAWN)
    found = browser.value(LOOK)
    own = command_line("serve", str(ROOT / "src/cli/ui/assets/serve.yaml"))
    ttft = f'{own["latency"]["ttft_s"]["mean"] * 1e3:.2f}'
    tap.result(ttft in browser.value("document.getElementById('shown').textContent") and not found["blank"] and found["wide"] <= 0, "a deployment", f"{ttft} {found}")
    browser.picture("serve")


def closed(tap, browser, server):
    tap.result(not browser.said, "nothing on the console", "\n".join(browser.said))
    browser.value("(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); })()")
    tap.result(browser.value("window.ran === undefined"), "a script that is not the page's does not run")
    browser.value("fetch('http://localhost:" + str(server.port) + "/').then(() => { window.left = 1; }, () => { window.left = 0; })")
    tap.result(browser.value("window.left === 0"), "nor does a connection to elsewhere")
    browser.open(f"http://127.0.0.1:{server.port}/#wrong")
    browser.wait("/token/.test((document.getElementById('took') || {}).textContent)")
    tap.result(True, "a page with another token says so")


def main():
    tap = Tap()
    probe = subprocess.run(["timeout", "--preserve-status", "--signal", "INT", "1", PROGRAM, "ui", "--no-browser"], capture_output=True, text=True, check=False)
    if probe.returncode != 0 and "libmicrohttpd" in probe.stderr:
        tap.skip("maquette ui", "built without libmicrohttpd")
        return tap.done()
    with Server() as server:
        listens_here_alone(tap, server)
        refused(tap, server)
        at_once(tap, server)
    ends(tap)
    if not BROWSER:
        tap.skip("browser", "no chromium")
        return tap.done()
    with Server() as server, tempfile.TemporaryDirectory(prefix="maq-test-", ignore_cleanup_errors=True) as folder:
        browser = Browser(folder)
        try:
            looks(tap, browser, server)
            answers(tap, browser)
            faults(tap, browser)
            taken_away(tap, browser)
            runs(tap, browser)
            closed(tap, browser, server)
        except (TimeoutError, EOFError, RuntimeError) as error:
            tap.result(False, "the browser", f"{error}\n" + "\n".join(browser.said))
        finally:
            browser.close()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
