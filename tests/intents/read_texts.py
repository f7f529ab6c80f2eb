"""Reads each text of its input, within a limit of CPU seconds: the child process of `test_bounded_reading`.

A text is a JSON string on a line; the answer is an empty line. The kernel ends the process where one text
takes longer: a regular expression that never comes back can't be ended otherwise.
"""

import json
import math
import resource
import sys
from datetime import date

from dispatcher.intents.decompose import read_clauses
from dispatcher.intents.doubt import asks_twice
from dispatcher.intents.filler import is_asking, is_courtesy, is_pointing, is_standing
from dispatcher.intents.follow_up import continuing, topic_of
from dispatcher.intents.option_reply import named_option
from dispatcher.intents.reading import read_text
from dispatcher.intents.reference import is_condition, is_item, is_leaning, refers
from dispatcher.traditional import simplified

CPU_S = 5
"""For each 16,000 characters, or fewer: ten times what the slowest take, phone numbers."""
TODAY = date(2026, 11, 29)


def read(text: str) -> None:
    """All that the text of a message decides, whatever is registered."""
    read_text(text, None, TODAY)
    read_text(text, "zh", TODAY)
    read_clauses(text)
    for judge in (is_courtesy, is_pointing, is_asking, is_standing, is_leaning, is_item, is_condition):
        judge(text)
    refers(text)
    asks_twice(text)
    simplified(text)
    topic_of([text])
    continuing([text], text)
    named_option(text, [])


def main() -> None:
    """Read until the input ends."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    for line in sys.stdin:
        text = json.loads(line)
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = used.ru_utime + used.ru_stime + CPU_S * max(1.0, len(text) / 16_000)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), most))
        read(text)
        print(flush=True)


if __name__ == "__main__":
    main()
