"""What understands messages is put together with one set of rules for splitting."""

from contextlib import AsyncExitStack
from pathlib import Path

from dispatcher.assembly.parts import build_parts
from dispatcher.assembly.understanding import open_planner
from dispatcher.intents.llm_decomposer import LlmDecomposer
from dispatcher.intents.segment import DecomposeRules
from dispatcher.llm_settings import LlmSettings
from dispatcher.settings import EncoderSettings, Settings


async def test_pieces_that_a_model_cut_are_ranked_by_as_much_text_as_the_rules_own(tmp_path: Path):
    llm = LlmSettings(url="http://127.0.0.1:9/v1/chat/completions", model="m")
    settings = Settings(data_dir=tmp_path, encoder=EncoderSettings(name="hashing"), llm=llm)

    async with AsyncExitStack() as stack:
        parts = await build_parts(settings, stack)
        planner = await stack.enter_async_context(open_planner(parts))

    assert isinstance(planner.decomposer, LlmDecomposer)
    assert planner.decomposer.ranked_characters == DecomposeRules().ranked_characters
