"""Phone numbers in a text; the only file that knows `phonenumbers`."""

from collections.abc import Iterator

from phonenumbers import Leniency, PhoneNumberFormat, PhoneNumberMatcher, format_number

_REGIONS = {"zh": "CN", "en": "US"}
_MAX_TRIES = 200
"""Candidates looked at in one text; a message of nothing but digits can't hold up the process."""


def find_phones(text: str, language: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and E.164 form of each valid number.

    Numbers without a country code are read as Chinese in a Chinese text, else as American; an
    eleven-digit Chinese mobile number is recognised in either.
    """
    region = _REGIONS.get(language, "US")
    for reading in dict.fromkeys((region, "CN")):
        for match in PhoneNumberMatcher(text, reading, leniency=Leniency.VALID, max_tries=_MAX_TRIES):
            number = format_number(match.number, PhoneNumberFormat.E164)
            if reading == region or number.startswith("+861"):
                yield match.start, match.end, number
