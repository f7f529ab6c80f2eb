"""Bodies that `POST /v1/chat` refuses, with the status and code it answers; one table for every test.

Each row holds the marker `MARK` somewhere, so that a test can see that nothing is repeated.
"""

from dataclasses import dataclass

MARK = "zq7marker"


@dataclass(frozen=True, slots=True, kw_only=True)
class BadInput:
    """One body that must be refused in the same way whatever stands behind the gateway."""

    name: str
    raw: bytes
    status: int = 422
    code: str = "malformed_json"
    content_type: str | None = "application/json"
    encoding: str | None = None


def _message(inner: str) -> bytes:
    return f'{{"message": "{MARK}", {inner}}}'.encode()


def _nested(levels: int, opening: str, closing: str) -> bytes:
    """A body whose deepest container is at level `levels`, the body itself being level 1."""
    inside = levels - 2
    return _message(f'"context": {{"x": {opening * inside}1{closing * inside}}}')


_MEDIA = "unsupported_media_type"
_PLAIN = f'{{"message": "{MARK}"}}'

BAD_INPUTS: tuple[BadInput, ...] = (
    BadInput(name="no bytes", raw=b""),
    BadInput(name="cut off", raw=f'{{"message": "{MARK}'.encode()),
    BadInput(name="two documents", raw=(_PLAIN * 2).encode()),
    BadInput(name="trailing comma", raw=f'{{"message": "{MARK}",}}'.encode()),
    BadInput(name="single quotes", raw=f"{{'message': '{MARK}'}}".encode()),
    BadInput(name="array", raw=f'["{MARK}"]'.encode()),
    BadInput(name="string", raw=f'"{MARK}"'.encode()),
    BadInput(name="null", raw=b"null"),
    BadInput(name="byte order mark", raw=b"\xef\xbb\xbf" + _PLAIN.encode()),
    BadInput(name="invalid UTF-8", raw=f'{{"message": "{MARK}'.encode() + b'\xff"}'),
    BadInput(name="surrogate in UTF-8", raw=f'{{"message": "{MARK}'.encode() + b'\xed\xa0\x80"}'),
    BadInput(name="overlong UTF-8", raw=f'{{"message": "{MARK}'.encode() + b'\xc0\x80"}'),
    BadInput(name="UTF-16", raw=_PLAIN.encode("utf-16")),
    BadInput(name="UTF-16 without mark", raw=_PLAIN.encode("utf-16-le")),
    BadInput(name="UTF-32", raw=_PLAIN.encode("utf-32")),
    BadInput(name="raw NUL", raw=f'{{"message": "{MARK}\x00"}}'.encode()),
    BadInput(name="raw newline in text", raw=f'{{"message": "{MARK}\n"}}'.encode()),
    BadInput(name="escaped NUL", raw=f'{{"message": "{MARK}\\u0000"}}'.encode(), code="unusable_text"),
    BadInput(name="NUL in context", raw=_message('"context": {"x": ["\\u0000"]}'), code="unusable_text"),
    BadInput(name="NUL in a name", raw=_message('"context": {"\\u0000": 1}'), code="unusable_text"),
    BadInput(name="NUL in an id", raw=_message('"user_id": "u\\u0000"'), code="unusable_text"),
    BadInput(name="high surrogate", raw=f'{{"message": "{MARK}\\ud800"}}'.encode(), code="unusable_text"),
    BadInput(name="low surrogate", raw=_message('"session_id": "\\udc00"'), code="unusable_text"),
    BadInput(name="swapped pair", raw=_message('"context": {"\\udc00\\ud800": 1}'), code="unusable_text"),
    BadInput(name="NaN", raw=_message('"context": {"x": NaN}'), code="unusable_number"),
    BadInput(name="Infinity", raw=_message('"context": {"x": Infinity}'), code="unusable_number"),
    BadInput(name="minus Infinity", raw=_message('"wait_s": -Infinity'), code="unusable_number"),
    BadInput(name="1e999", raw=_message('"context": {"x": 1e999}'), code="unusable_number"),
    BadInput(name="1e999 seconds", raw=_message('"wait_s": 1e999'), code="unusable_number"),
    BadInput(name="integer of 65 bits", raw=_message(f'"context": {{"x": {2**63}}}'), code="unusable_number"),
    BadInput(name="integer of 5000 digits", raw=_message(f'"wait_s": {"9" * 5000}'), code="unusable_number"),
    BadInput(name="name given twice", raw=_message('"message": "again"'), code="duplicate_name"),
    BadInput(
        name="inner name given twice", raw=_message('"context": {"x": 1, "x": 2}'), code="duplicate_name"
    ),
    BadInput(name="arrays to level 33", raw=_nested(33, "[", "]"), code="too_deep"),
    BadInput(name="objects to level 33", raw=_nested(33, '{"x": ', "}"), code="too_deep"),
    BadInput(name="depth of 100 levels", raw=_nested(100, "[", "]"), code="too_deep"),
    BadInput(name="depth of 30000 levels", raw=_nested(30_000, "[", "]")),
    BadInput(name="no message", raw=f'{{"user_id": "{MARK}"}}'.encode(), code="invalid_body"),
    BadInput(name="message null", raw=b'{"message": null}', code="invalid_body"),
    BadInput(name="message a number", raw=b'{"message": 5}', code="invalid_body"),
    BadInput(name="empty message", raw=b'{"message": ""}', code="invalid_body"),
    BadInput(name="blank message", raw=b'{"message": " \\t\\n\\u3000\\u00a0"}', code="invalid_body"),
    BadInput(
        name="invisible message", raw=b'{"message": "\\u0001\\u200b\\ufeff\\u202e"}', code="invalid_body"
    ),
    BadInput(name="unknown field", raw=_message(f'"{MARK}": 1'), code="invalid_body"),
    BadInput(name="mass assignment", raw=_message('"is_admin": true'), code="invalid_body"),
    BadInput(name="context a list", raw=_message('"context": [1]'), code="invalid_body"),
    BadInput(name="negative wait", raw=_message('"wait_s": -1'), code="invalid_body"),
    BadInput(name="wait over the limit", raw=_message('"wait_s": 300.5'), code="invalid_body"),
    BadInput(name="wait as text", raw=_message('"wait_s": "5"'), code="invalid_body"),
    BadInput(name="wait as truth", raw=_message('"wait_s": true'), code="invalid_body"),
    BadInput(name="empty session", raw=_message('"session_id": ""'), code="invalid_body"),
    BadInput(name="long user", raw=_message(f'"user_id": "{"u" * 129}"'), code="invalid_body"),
    BadInput(name="language of words", raw=_message('"language": "the king\'s"'), code="invalid_body"),
    BadInput(name="wildcard capability", raw=_message('"capability": "order.*"'), code="invalid_body"),
    BadInput(name="capability in capitals", raw=_message('"capability": "Order.query"'), code="invalid_body"),
    BadInput(name="full-width capability", raw=_message('"capability": "ｏrder"'), code="invalid_body"),
    BadInput(name="capability, new line", raw=_message('"capability": "order\\n"'), code="invalid_body"),
    BadInput(name="long environment", raw=_message(f'"environment": "{"e" * 65}"'), code="invalid_body"),
    BadInput(name="over 64 KiB", raw=_message(f'"x": "{"u" * 65_536}"'), status=413, code="body_too_large"),
    BadInput(name="over 64 KiB, not JSON", raw=MARK.encode() * 10_000, status=413, code="body_too_large"),
    BadInput(name="no content type", raw=_PLAIN.encode(), status=415, code=_MEDIA, content_type=None),
    BadInput(name="text", raw=_PLAIN.encode(), status=415, code=_MEDIA, content_type="text/plain"),
    BadInput(
        name="a form",
        raw=f"message={MARK}".encode(),
        status=415,
        code=_MEDIA,
        content_type="application/x-www-form-urlencoded",
    ),
    BadInput(
        name="UTF-16, declared",
        raw=_PLAIN.encode("utf-16"),
        status=415,
        code=_MEDIA,
        content_type="application/json; charset=utf-16",
    ),
    BadInput(name="compressed", raw=_PLAIN.encode(), status=415, code=_MEDIA, encoding="gzip"),
)
