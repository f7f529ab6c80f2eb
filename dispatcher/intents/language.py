"""Tells Chinese from English, for answers and for reading phone numbers."""

import re

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile("[A-Za-z]+")


def detect_language(text: str) -> str:
    """`zh` where the text has Han characters, at least as many as Latin words; else `en`.

    So "iPhone 15 Pro 有货吗" is Chinese and "where is my 小米 phone" English.
    """
    characters = len(_HAN.findall(text))
    return "zh" if characters and characters >= len(_LATIN_WORD.findall(text)) else "en"
