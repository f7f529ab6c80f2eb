import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.traditional import simplified


@pytest.mark.parametrize(
    ("traditional", "expected"),
    [
        ("另外幫我查一下快遞到哪了，順便開發票", "另外帮我查一下快递到哪了，顺便开发票"),
        ("還有、並且、然後", "还有、并且、然后"),
        ("简体 and English", "简体 and English"),
        ("plain", "plain"),
    ],
)
def test_traditional_characters_are_read_as_simplified_ones(traditional, expected):
    assert simplified(traditional) == expected


@given(st.text())
def test_offsets_hold_and_once_is_enough(text):
    read = simplified(text)

    assert len(read) == len(text)
    assert simplified(read) == read
    assert [a for a, b in zip(text, read, strict=True) if a != b and unicodedata.category(a) != "Lo"] == []
