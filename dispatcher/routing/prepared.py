"""A text as routing reads it, declared or asked: one form for the encoder and the word index (pure).

Else a word that is declared in traditional characters, full-width letters or decomposed accents would
not be found by who asks for it in the others.
"""

import unicodedata

from dispatcher.traditional import simplified

MAX_CHARACTERS = 512
"""Longer texts are cut here; a registered description has at most 500."""


def prepared(text: str) -> str:
    """NFKC, simplified characters, single spaces, at most MAX_CHARACTERS."""
    folded = text if text.isascii() else simplified(unicodedata.normalize("NFKC", text))
    return " ".join(folded.split())[:MAX_CHARACTERS].rstrip()
