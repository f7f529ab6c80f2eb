"""What a result was made with, so that two of them can be compared."""

import hashlib
from importlib.metadata import version
from pathlib import Path

import dispatcher
from dispatcher.tuning.basis.dataset import Dataset
from dispatcher.tuning.basis.product import Product

_SOURCES = frozenset({".py", ".json", ".txt"})


def versions(product: Product, dataset: Dataset) -> dict[str, object]:
    """Encoder, index, code, and each file of data that was read."""
    return {
        "encoder": product.embedder.encoder_id,
        "index": product.index,
        "code": code_version(),
        "data": dict(dataset.files),
    }


def code_version() -> str:
    """The package's version and the SHA-256 (hex, first 16 characters) of its files as they are now."""
    root = Path(dispatcher.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.suffix in _SOURCES):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{version('agent-reach-dispatcher')}+{digest.hexdigest()[:16]}"
