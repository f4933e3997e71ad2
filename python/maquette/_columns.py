# SPDX-License-Identifier: Apache-2.0
"""Documents as objects: records with attributes, tables with columns. Columns of a C array are views of it, not copies."""
from __future__ import annotations

import html
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._native import ffi

ROWS_SHOWN = 20
COLUMNS_SHOWN = 16


class Record(Mapping[str, Any]):
    """A part of a document: its members are attributes and items."""

    def __init__(self, members: Dict[str, Any]) -> None:
        self._members = members

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return wrap(self._members[name])
        except KeyError:
            raise AttributeError(f"there is no {name!r}; there are {', '.join(self._members)}") from None

    def __getitem__(self, name: str) -> Any:
        return wrap(self._members[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._members]

    def __repr__(self) -> str:
        return f"Record({self._members!r})"

    def _repr_html_(self) -> str:
        return figures_html(self._members)


def wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return Table(value)
    return value


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("columns are NumPy arrays: pip install maquette[numpy]") from None
    return numpy


class Field(NamedTuple):
    """A member of the structs of a C array: where it is, and its type as NumPy has it."""

    pointer: Any
    offset: int
    stride: int
    kind: str


_KINDS = {"double": "f8", "float": "f4", "int64_t": "i8", "uint64_t": "u8", "int32_t": "i4", "uint32_t": "u4", "uint16_t": "u2", "uint8_t": "u1",
          "int": "i4", "_Bool": "b1"}


def field(struct: str, pointer: Any, *path: Union[str, int]) -> Field:
    """The field at `path` of the structs that `pointer` points to."""
    member = ffi.typeof(struct)
    for step in path:
        member = dict(member.fields)[step].type if isinstance(step, str) else member.item
    return Field(pointer, ffi.offsetof(struct, *path), ffi.sizeof(struct), _KINDS[member.cname])


class _Memory:
    """C memory for NumPy, and who owns it."""

    def __init__(self, source: Field, n: int, owner: Any) -> None:
        self.owner = owner
        order = "|" if source.kind.endswith("1") else "<" if sys.byteorder == "little" else ">"
        address = int(ffi.cast("uintptr_t", source.pointer)) + source.offset
        self.__array_interface__ = {"version": 3, "typestr": order + source.kind, "shape": (n,), "strides": (source.stride,), "data": (address, True)}


class Table:
    """Rows with named columns. A column is a NumPy array; those of a C array are read-only views of it and keep it alive."""

    def __init__(self, rows: Optional[Sequence[Dict[str, Any]]] = None, *, n: Optional[int] = None, fields: Optional[Mapping[str, Field]] = None,
                 made: Optional[Mapping[str, Callable[[], Any]]] = None, owner: Any = None) -> None:
        self._rows = rows
        self._n = len(rows) if rows is not None else int(n or 0)
        self._paths = _paths(rows) if rows is not None else {}
        self._fields = dict(fields or {})
        self._made = dict(made or {})
        self._owner = owner
        self._cache: Dict[str, Any] = {}

    @property
    def columns(self) -> Tuple[str, ...]:
        """Names of the columns."""
        return tuple(dict.fromkeys([*self._made, *self._paths, *self._fields]))

    def __len__(self) -> int:
        return self._n

    def _column(self, name: str) -> Any:
        if name in self._cache:
            return self._cache[name]
        numpy = _numpy()
        if name in self._fields:
            column = numpy.asarray(_Memory(self._fields[name], self._n, self._owner))
        elif name in self._made:
            column = self._made[name]()
        elif name in self._paths:
            column = _array(numpy, [_at(row, self._paths[name]) for row in self._rows or ()])
        else:
            raise KeyError(name)
        self._cache[name] = column
        return column

    def __getitem__(self, key: Union[str, int]) -> Any:
        if isinstance(key, str):
            return self._column(key)
        at = range(self._n)[key]
        if isinstance(at, range):
            raise TypeError("rows are taken one by one; columns are NumPy arrays, which have slices")
        if self._rows is not None:
            return Record(self._rows[at])
        return Record({name: _scalar(self._column(name)[at]) for name in self.columns})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._column(name)
        except KeyError:
            raise AttributeError(f"there is no column {name!r}; there are {', '.join(self.columns)}") from None

    def __iter__(self) -> Iterator[Record]:
        return (self[i] for i in range(self._n))

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self.columns]

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a table is no array; its columns are: table.column, table['column']")

    def to_dict(self) -> Dict[str, List[Any]]:
        """Lists by the names of the columns: copies."""
        return {name: self._column(name).tolist() for name in self.columns}

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of the same columns, which it does not copy."""
        import pandas
        return pandas.DataFrame({name: self._column(name) for name in self.columns}, index=range(self._n), copy=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._n} rows: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        names = self.columns[:COLUMNS_SHOWN]
        rows = []
        for i in range(min(self._n, ROWS_SHOWN)):
            row = self[i] if self._rows is None else self._rows[i]
            values = [row[name] if self._rows is None else _at(row, self._paths[name]) if name in self._paths else self._column(name)[i]
                      for name in names]
            rows.append("".join(f"<td>{html.escape(shown(name, value))}</td>" for name, value in zip(names, values)))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        more = f"<p>and {self._n - ROWS_SHOWN:,} more rows</p>" if self._n > ROWS_SHOWN else ""
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _paths(rows: Sequence[Dict[str, Any]]) -> Dict[str, Tuple[str, ...]]:
    """Where the value of each column stands in a row. Members of parts are columns, too: by their own name, or, where that is taken, with
    the part's in front."""
    found: Dict[str, Tuple[str, ...]] = {}

    def look(part: Dict[str, Any], before: Tuple[str, ...]) -> None:
        for name, value in part.items():
            path = (*before, name)
            if isinstance(value, dict) and value:
                look(value, path)
            elif found.setdefault(name, path) != path:
                found.setdefault("_".join(path), path)

    for row in rows:
        look({name: value for name, value in row.items() if not isinstance(value, dict)}, ())
    for row in rows:
        look(row, ())
    return found


def _at(row: Any, path: Tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(row, dict):
            return None
        row = row.get(name)
    return row


def _array(numpy: Any, values: List[Any]) -> Any:
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return numpy.array(values, dtype=numpy.bool_)
    if kinds == {int}:
        return numpy.array(values, dtype=numpy.int64)
    if kinds and kinds <= {int, float, type(None)} and kinds != {type(None)}:
        return numpy.array([numpy.nan if value is None else value for value in values], dtype=numpy.float64)
    column = numpy.empty(len(values), dtype=object)
    column[:] = values
    return column


def _scalar(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def shown(name: str, value: Any) -> str:
    """A value for people, with the unit that its name says."""
    value = _scalar(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    if name.endswith("_bytes"):
        return f"{value / 2**30:,.2f} GiB"
    if name.endswith("_s") and not name.endswith("_per_s"):
        for factor, unit in ((86400, "d"), (3600, "h"), (1, "s"), (1e-3, "ms"), (1e-6, "us")):
            if abs(value) >= factor * (2 if factor > 1 else 1):
                return f"{value / factor:,.4g} {unit}"
        return f"{value:.3g} s"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.5g}"


def figures_html(members: Mapping[str, Any]) -> str:
    rows = [(name, value) for name, value in members.items() if not isinstance(value, (dict, list))]
    body = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(shown(name, value))}</td></tr>"
                   for name, value in rows)
    return f"<table><tbody>{body}</tbody></table>"
