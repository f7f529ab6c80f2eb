"""Whatever is written over and over, reading it ends: one message must not stop the loop for all.

Nothing is timed. Each text has CPU seconds in another process, many more than it needs; a pattern whose
steps grow with the square or the power of a length uses them up.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from dispatcher.intents.connective import CHINESE, ENGLISH
from dispatcher.intents.filler import COURTESY_EN, COURTESY_ZH, POINTING_EN, POINTING_ZH

WORDS = [
    *f"{COURTESY_ZH} {POINTING_ZH} {COURTESY_EN} {POINTING_EN}".split(),
    *(word for group in (*ENGLISH, *CHINESE) for word in group.words),
    *(
        "如果",
        "的话",
        "订单",
        "order ",
        "order number is ",
        "next ",
        "friday ",
        "周一",
        "3个星期后",
        "may 3 ",
    ),
    *("1", "12", "3月", "2025-", "13812345678 ", "+1 650 253 ", "元", "万", "rmb ", "#", "A-", "９", "訂單"),
    *(" \t\n.,~\"'-_@，。、“「(（’😀　"),
    *(
        "may 3 ",
        "www.",
        "http://",
        "a@",
        "a.",
        "Ab",
        "ab.A",
        "between ",
        "both ",
        "what about ",
        "for ",
        "选项",
    ),
]
UNITS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("".join)
STRETCHES = st.sampled_from([24, 40, 59, 240, 1_000, 16_000])
"""Characters; the rules look closer at short clauses and messages."""


@pytest.fixture(scope="module")
def reads() -> Iterator[Callable[[str], bool]]:
    """Whether a text is read within the limit; a process that was ended is followed by another."""
    with _Reader() as reader:
        yield reader


class _Reader:
    def __enter__(self) -> "_Reader":
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.intents.read_texts"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def __call__(self, text: str) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(text), file=self._process.stdin, flush=True)
        if self._process.stdout.readline():
            return True
        self.__exit__()
        self.__enter__()
        return False


@pytest.mark.timeout(600)
@settings(
    max_examples=30,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    unit=UNITS,
    stretch=STRETCHES,
    tail=st.sampled_from(["", "订，", "x，", "1。", " "]),
    characters=st.just(16_000),
)
@example(unit="哈", stretch=59, tail="订，", characters=60)
@example(unit="看", stretch=40, tail="订，", characters=16_000)
@example(unit="1", stretch=64_000, tail="", characters=64_000)
@example(unit="1", stretch=64_000, tail="~", characters=64_000)
@example(unit="如果，走，", stretch=5, tail="", characters=64_000)
@example(unit="what about a ", stretch=39, tail="", characters=39)
def test_a_text_that_repeats_itself_is_read(reads, unit, stretch, tail, characters):
    part = (unit * stretch)[:stretch] + tail

    assert reads((part * (characters // len(part) + 1))[:characters])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "unit",
    [
        *("1,", "138123456 ", "order ", "a-", "(1", "+1 ", "2025-"),
        *("a, ", "“", "a.", "and ", "a@", "再", "(", "http://", "e.g.", "查 "),
    ],
)
def test_ten_thousand_characters_of_one_unit_are_read(reads, unit):
    assert reads(unit * (10_000 // len(unit)))
