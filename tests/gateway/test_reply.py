from enum import StrEnum
from types import MappingProxyType

import pytest

from dispatcher.gateway.reply import encode


class Colour(StrEnum):
    RED = "red"


def test_the_dispatchers_own_values_become_json():
    content = {"set": frozenset({2, 1}), "map": MappingProxyType({"a": Colour.RED}), "nan": float("nan")}

    assert encode(content) == b'{"set":[1,2],"map":{"a":"red"},"nan":null}'


def test_a_value_of_another_kind_is_an_error():
    with pytest.raises(TypeError):
        encode(object())
