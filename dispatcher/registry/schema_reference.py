"""Follows the references inside a JSON Schema; the one reading of them for contracts and for input (pure)."""

from collections.abc import Mapping

MAX_REFERENCES = 16
"""Of a longer chain the end is not looked at, which ends cycles."""


def followed(node: object, root: Mapping[str, object]) -> Mapping[str, object]:
    """The schema with what its local `$ref`s name; what stands beside a reference wins.

    So `{"$ref": "#/$defs/Price", "description": "..."}` is a price with a description of its own. What a
    reference to nowhere, to another document or in a circle names is an empty schema; so is what is none.
    """
    if not isinstance(node, Mapping):
        return {}
    if "$ref" not in node:
        return node
    merged: dict[str, object] = {}
    for _ in range(MAX_REFERENCES):
        if not isinstance(node, Mapping):
            break
        merged = {**node, **merged}
        if "$ref" not in node:
            break
        node = _named(node["$ref"], root)
    del merged["$ref"]
    return merged


def _named(reference: object, root: Mapping[str, object]) -> object:
    """The node that a JSON pointer (RFC 6901) into this document names; None for any other reference."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    node: object = root
    for part in reference.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, Mapping) else None
    return node
