"""Which messages an agent may be asked past the gateway."""

import pytest

from dispatcher.sdk.direct_task import wish_of
from dispatcher.sdk.known_routes import Wish
from dispatcher.sdk.request_answer import ChatOptions


@pytest.mark.parametrize("options", [ChatOptions(), ChatOptions(match="strict")])
def test_one_that_names_its_capability(options: ChatOptions) -> None:
    wish = wish_of({"capability": "order.query", "environment": "staging", **options})

    assert wish == Wish(capability="order.query", environment="staging")
    assert wish_of(options) is None


@pytest.mark.parametrize("match", ["loose", "semantic"])
def test_none_that_only_says_what_it_is_like(match: str) -> None:
    assert wish_of({"capability": "order.query", "match": match}) is None
