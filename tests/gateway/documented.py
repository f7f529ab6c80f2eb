"""Holds a response to what is published about it."""

import re

ALWAYS_SENT = frozenset({"content-type", "content-length"})


def check_problem(response):
    """An error is a problem with all its standard members."""
    if response.status_code < 400:
        return
    problem = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["status"] == response.status_code
    assert problem["type"] == f"urn:agent-reach-dispatcher:problem:{problem['code']}"
    assert problem["title"]
    assert problem["detail"]


def check_documented(document, method, path, response):
    """Status and headers of a documented operation are in the OpenAPI document."""
    operation = _path_item(document, path).get(method.lower())
    if operation is not None:
        documented = operation["responses"].get(str(response.status_code))
        assert documented is not None, response.text
        named = {name.lower() for name in documented.get("headers", {})}
        assert set(response.headers) - ALWAYS_SENT <= named


def _path_item(document, path):
    """The entry for a path; a literal one wins over a pattern."""
    for template, item in sorted(document["paths"].items(), key=lambda pair: "{" in pair[0]):
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return item
    return {}
