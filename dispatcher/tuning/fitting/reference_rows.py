"""Makes the reference rows that ship with an encoder, from public registries of several sizes.

`python -m dispatcher.tuning.fitting.reference_rows DATA_FOLDER > dispatcher/routing/reference/ENCODER.json`

Of each public set and size, sub-registries are drawn, with 3 or 5 examples per capability. Inside are
their left-out examples; outside are the background utterances (two fifths of the weight) and requests
of the other sets (three fifths). Sets and draws weigh the same.

What is refused of the requests of these very sets, and the calibration error there, is therefore not of
unseen data: `--without SET` makes the rows that such a figure is to be measured with (docs/tuning.md).
"""

import argparse
import json
import random
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.background import background_texts, contrast_of
from dispatcher.routing.calibration import heights, observe
from dispatcher.routing.embedder import Embedder, Vectors
from dispatcher.routing.leave_one_out import Registered
from dispatcher.routing.prototype import DeclaredTexts, build_prototype
from dispatcher.routing.prototype_store import arrange
from dispatcher.routing.reference import BINS, LOW, WIDTH, histogram
from dispatcher.routing.slots import Key
from dispatcher.routing.use_encoder import UseEncoder

SOURCES = {
    "hwu64": "xliuhw/NLU-Evaluation-Data, CC BY 4.0",
    "banking77": "PolyAI-LDN/task-specific-datasets banking_data, CC BY 4.0",
    "crosswoz": "thu-coai/CrossWOZ, Apache-2.0",
    "metatool": "HowieHwong/MetaTool, MIT",
}
SIZES = (1, 2, 4, 8, 16, 32, 64)
EXAMPLES = (3, 5)
DRAWS = 16
STRANGERS = 60
"""Requests taken from each other set, for each draw."""
STRANGERS_SHARE = 0.6
SEED = 20260101

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSet:
    """One public registry and requests to it."""

    agents: Sequence[Row]
    requests: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The encoder with its background, and the requests of all sets, encoded."""

    encoder: Embedder
    background: Vectors
    requests: Mapping[str, Vectors]
    declared: Mapping[str, Vectors]
    """The vector of each text that an agent of any set declares."""


def main(folder: Path, without: Collection[str] = ()) -> dict[str, Any]:
    """The whole document; takes about a minute. Nothing of the sets in `without` is read."""
    encoder = UseEncoder()
    sources = {name: source for name, source in SOURCES.items() if name not in without}
    sets = {name: _read(folder / name) for name in sources}
    bench = Bench(
        encoder=encoder,
        background=encoder.encode(background_texts()),
        requests={name: _encode(encoder, one.requests) for name, one in sets.items()},
        declared=_declared(encoder, [agent for one in sets.values() for agent in one.agents]),
    )
    chance = random.Random(SEED)  # noqa: S311 - draws samples, keeps no secret
    return {
        "encoder": encoder.encoder_id,
        "made_from": {
            "sources": sources,
            "draws_per_set_and_size": DRAWS,
            "examples_per_capability": EXAMPLES,
            "strangers_share_of_outside": STRANGERS_SHARE,
            "seed": SEED,
        },
        "heights": {"low": LOW, "width": WIDTH, "bins": BINS},
        "sizes": {str(size): _size(size, sets, bench, chance) for size in SIZES},
    }


def _encode(encoder: Embedder, texts: Sequence[str]) -> Vectors:
    # In pieces: an encoder's memory grows with its batch.
    return np.concatenate([encoder.encode(texts[at : at + 64]) for at in range(0, len(texts), 64)])


def _declared(encoder: Embedder, agents: Sequence[Row]) -> dict[str, Vectors]:
    texts = [text for agent in agents for text in _texts(agent, max(EXAMPLES)).all]
    return dict(zip(texts, _encode(encoder, texts), strict=True))


def _texts(agent: Row, examples: int) -> DeclaredTexts:
    descriptions = tuple(text for text in (agent["desc_en"], agent["desc_zh"]) if text)
    return DeclaredTexts(descriptions=descriptions, examples=tuple(agent["examples"][:examples]))


def _read(folder: Path) -> PublicSet:
    lines = (folder / "eval.jsonl").read_text(encoding="utf-8").splitlines()
    agents = (folder / "agents.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    chosen = random.Random(SEED).sample(texts, min(len(texts), 600))  # noqa: S311 - as above
    return PublicSet(agents=[json.loads(line) for line in agents], requests=chosen)


def _size(
    size: int, sets: Mapping[str, PublicSet], bench: Bench, chance: random.Random
) -> dict[str, list[float]]:
    tables = [
        _draw(name, one, bench, (size, EXAMPLES[draw % len(EXAMPLES)], chance))
        for name, one in sets.items()
        if len(one.agents) >= size
        for draw in range(DRAWS)
    ]
    return {
        column: [round(sum(values) / len(tables), 6) for values in zip(*rows, strict=True)]
        for column, rows in zip(("right", "wrong", "outside"), zip(*tables, strict=True), strict=True)
    }


def _draw(
    name: str, chosen: PublicSet, bench: Bench, sample: tuple[int, int, random.Random]
) -> tuple[list[float], list[float], list[float]]:
    """Shares by height of one sub-registry: right, wrong, outside."""
    size, examples, chance = sample
    registry = _register(chance.sample(list(chosen.agents), size), examples, bench)
    observed = observe(registry, bench.background)
    inside, outside = observed.inside, observed.outside
    if inside is None:
        raise ValueError(f"{name} has no examples")
    zero, span = heights(observed)
    strangers = list(_strangers(name, registry, bench, chance))
    parts = [
        histogram((inside.score - zero) / span, inside.weight * kind / inside.weight.sum())
        for kind in (inside.right, ~inside.right)
    ]
    nobody = histogram((outside.score - zero) / span, outside.weight / outside.weight.sum())
    far = sum(
        histogram((scores - zero) / span, np.full(len(scores), 1 / (len(scores) * len(strangers))))
        for scores in strangers
    )
    mixed = (1 - STRANGERS_SHARE) * nobody + STRANGERS_SHARE * far
    return parts[0].tolist(), parts[1].tolist(), mixed.tolist()


def _strangers(name: str, registry: Registered, bench: Bench, chance: random.Random) -> Iterator[Any]:
    """The contrastive scores of requests that belong to each other set."""
    for other, vectors in bench.requests.items():
        if other != name:
            sample = vectors[chance.sample(range(len(vectors)), STRANGERS)]
            yield registry.cosines(sample).max(axis=1) - contrast_of(sample, bench.background)


def _register(agents: Sequence[Row], examples: int, bench: Bench) -> Registered:
    prototypes = {}
    for agent in agents:
        key = Key(Capability(agent["id"]), AgentId(agent["id"]))
        texts = _texts(agent, examples)
        vectors = np.stack([bench.declared[text] for text in texts.all])
        prototypes[key] = build_prototype(key, texts, vectors)
    return arrange(prototypes, bench.encoder.dimensions)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dispatcher.tuning.fitting.reference_rows")
    parser.add_argument("folder", type=Path, metavar="DATA_FOLDER")
    parser.add_argument("--without", action="append", default=[], choices=tuple(SOURCES), metavar="SET")
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    made = main(given.folder, given.without)
    sys.stdout.buffer.write(orjson.dumps(made, option=orjson.OPT_APPEND_NEWLINE))
