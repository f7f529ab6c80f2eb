"""The gateway over stub parts."""

import pytest

from tests.gateway.stubs import Api


@pytest.fixture
def api() -> Api:
    """A fresh application with nothing in it."""
    return Api()
