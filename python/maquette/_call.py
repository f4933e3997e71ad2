# SPDX-License-Identifier: Apache-2.0
"""Calls of the library: the words of a command line in, results and diagnostics out."""
from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._native import ffi, lib

Job = Union[str, "os.PathLike[str]", Mapping[str, Any], None]
CommandLine = Union[str, Sequence[str], None]


class Diagnostic(NamedTuple):
    """Something that maquette has to say, with its place where it has one: `line` and `column` count from 1."""

    severity: str
    code: str
    message: str
    hint: Optional[str]
    file: Optional[str]
    line: int
    column: int


class Error(Exception):
    """A command that failed. `diagnostics` are all that is wrong, with their places; as text they stand under each other."""

    def __init__(self, status: str, exit_status: int, diagnostics: Sequence[Diagnostic], text: str) -> None:
        super().__init__(text)
        self.status = status
        self.exit_status = exit_status
        self.diagnostics = tuple(diagnostics)

    def __reduce__(self) -> Any:
        return type(self), (self.status, self.exit_status, self.diagnostics, self.args[0])


class UsageError(Error, TypeError):
    """An option that there is not, or a value that it does not take."""


class InputError(Error, ValueError):
    """A job that is wrong."""


def text_of(pointer: Any) -> str:
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else ""


def _slice(value: Any) -> str:
    return ffi.buffer(value.ptr, value.len)[:].decode("utf-8", "replace") if value.len else ""


def new_diag() -> Any:
    diag = lib.maq_diag_new()
    if diag == ffi.NULL:
        raise MemoryError
    return ffi.gc(diag, lib.maq_diag_free)


def diagnostics(diag: Any) -> List[Diagnostic]:
    found = []
    for i in range(lib.maq_diag_count(diag)):
        item = lib.maq_diag_at(diag, i)
        place = lib.maq_diag_place(diag, item.at)
        found.append(Diagnostic(
            severity=("error", "warning", "note")[item.severity], code=f"MAQ{item.code:04d}", message=_slice(item.msg),
            hint=_slice(item.hint) or None, file=text_of(place.name) if place.line else None, line=place.line,
            column=place.column))
    return found


def error(status: int, diag: Any) -> Error:
    formatted = lib.maq_diag_format(diag, 0, False)
    text = text_of(formatted).rstrip("\n")
    lib.free(formatted)
    name = text_of(lib.maq_status_text(status))
    kind = {lib.MAQ_USAGE: UsageError, lib.MAQ_BAD_INPUT: InputError}.get(status, Error)
    if status == lib.MAQ_NO_MEMORY and not text:
        raise MemoryError
    return kind(name, lib.maq_status_exit_code(status), diagnostics(diag), text or name)


class Option(NamedTuple):
    """An option of a command, as `maquette COMMAND --help-all` has it."""

    name: str
    aliases: Tuple[str, ...]
    value: str
    default: str
    doc: str
    words: Tuple[str, ...]
    flag: bool
    mapping: bool


@lru_cache(maxsize=None)
def options(command: str) -> Tuple[Option, ...]:
    """The options that a command takes as keywords."""
    row = ffi.new("struct cli_call_option *")
    found: List[Option] = []
    while lib.cli_call_option(row, command.encode(), len(found)):
        words: List[str] = []
        while row.words and row.words[len(words)]:
            words.append(text_of(row.words[len(words)]))
        aliases = [name.replace("-", "_") for name in text_of(row.aliases).split("|") if name]
        found.append(Option(
            name=text_of(row.name).replace("-", "_"), aliases=tuple(aliases), value=text_of(row.value), default=text_of(row.otherwise),
            doc=text_of(row.doc), words=tuple(words),
            flag=bool(row.flag), mapping=bool(row.list)))
    return tuple(found)


@lru_cache(maxsize=None)
def _by_name(command: str) -> Dict[str, Option]:
    return {name: option for option in options(command) for name in (option.name, *option.aliases)}


def json_text(value: Any) -> str:
    import json
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy
        return value.tolist()
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} has no form in a document")


def value_text(value: Any) -> str:
    """A value as a document or a command line has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        return json_text(value)
    if hasattr(value, "__fspath__"):
        return str(os.fspath(value))
    if hasattr(value, "tolist"):
        return value_text(value.tolist())
    if isinstance(value, Iterable):
        return ",".join(value_text(one) for one in value)
    raise TypeError(f"{type(value).__name__} is no value of an option")


def _words_of(option: Optional[Option], key: str, value: Any) -> List[str]:
    name = "--" + key.replace("_", "-")
    if value is None:
        return []
    if isinstance(value, bool) and (option.flag if option else value):
        return [name] if value else []
    if option and option.mapping:
        if isinstance(value, Mapping):
            lists = option.name != "set"
            return [f"{name}={k}={value_text(v) if lists or isinstance(v, (str, bool, int, float)) else json_text(v)}"
                    for k, v in value.items()]
        return [f"{name}={one}" for one in ([value] if isinstance(value, str) else value)]
    return [f"{name}={value_text(value)}"]


def words(command: str, arguments: Iterable[Any], given: Mapping[str, Any], command_line: CommandLine) -> Tuple[List[str], Optional[str]]:
    """The command line of a call, and the document that stands in it as `-`."""
    line, document = command.split(" "), None
    for argument in arguments:
        if argument is None:
            continue
        if isinstance(argument, Mapping):
            document = json_text(argument)
            line.append("-")
            continue
        if isinstance(argument, str) and "\n" in argument:
            document = argument
            line.append("-")
            continue
        path = os.fspath(argument)
        line.append(path if path == "-" or not path.startswith("-") else os.path.join(".", path))
    for key, value in given.items():
        key = key.rstrip("_")
        line += _words_of(_by_name(command).get(key), key, value)
    if command_line is not None:
        if isinstance(command_line, str):
            import shlex
            command_line = shlex.split(command_line, comments=False)
        line += ["--", *command_line]
    return line, document


def _run(function: Any, line: Sequence[str], document: Optional[str], stop: Any, columns: int, page: bool = False) -> Tuple[Any, List[Diagnostic]]:
    diag, out = new_diag(), ffi.new("struct cli_called **")
    held = [ffi.new("char[]", word.encode("utf-8", "surrogateescape")) for word in line]
    text = ffi.new("char[]", document.encode()) if document is not None else ffi.NULL
    opts = ffi.new("struct cli_call_opts *", {"document": text, "stop": stop, "columns": columns, "unicode": True, "page": page})
    status = function(out, ffi.new("char *[]", held), len(held), opts, diag)
    if out[0] == ffi.NULL:
        raise error(status, diag)
    return ffi.gc(out[0], lib.cli_called_free), diagnostics(diag)


def call(line: Sequence[str], document: Optional[str], columns: int = 0, page: bool = False) -> Tuple[Any, List[Diagnostic]]:
    """Runs a command; other threads go on meanwhile. page: with its report as HTML, where it has one."""
    return _run(lib.cli_call, line, document, ffi.NULL, columns, page)


def call_open(line: Sequence[str], document: Optional[str]) -> Tuple[Any, List[Diagnostic]]:
    """The open job of a command line."""
    return _run(lib.cli_call_open, line, document, ffi.NULL, 0)


def call_search(line: Sequence[str], document: Optional[str], page: bool = False) -> Tuple[Any, List[Diagnostic]]:
    """The same of what may take long: Ctrl-C ends it."""
    if threading.current_thread() is not threading.main_thread():
        return call(line, document, page=page)
    stop = ffi.new("sig_atomic_t *")
    outcome: List[Any] = []
    done = threading.Event()  # a join that was interrupted would not wait a second time (CPython before 3.13)

    def work() -> None:
        try:
            outcome.append(_run(lib.cli_call, line, document, stop, 0, page))
        except BaseException as fault:  # is raised again where the call was made
            outcome.append(fault)
        finally:
            done.set()

    threading.Thread(target=work, name="maquette", daemon=True).start()
    try:
        done.wait()
    except BaseException:
        stop[0] = 1
        done.wait()
        raise
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    result: Tuple[Any, List[Diagnostic]] = outcome[0]
    return result
