"""A request's header fields, read in one pass, which costs as much as two looks into the framework's own."""

from collections.abc import Iterable, Mapping, Sequence

from starlette.requests import Request

_READ = "dispatcher.fields"
"""Where a request's scope keeps them."""


def header_values(request: Request, name: str) -> Sequence[str]:
    """The values of all fields of this lower-case name, as sent, as Latin-1 text."""
    fields: Mapping[str, Sequence[str]] | None = request.scope.get(_READ)
    if fields is None:
        fields = request.scope[_READ] = _by_name(request.scope["headers"])
    return fields.get(name, ())


def header_value(request: Request, name: str) -> str | None:
    """The first of them; None without any."""
    values = header_values(request, name)
    return values[0] if values else None


def _by_name(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, Sequence[str]]:
    fields: dict[str, list[str]] = {}
    for name, value in headers:
        fields.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return fields
