"""A folder becomes a data set, or one sentence says why not."""

import pytest

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.tuning.basis.dataset import read_dataset, unregistered
from tests.tuning.sets import agent, request, shop, write


def test_a_folder_is_read_whole_with_the_digest_of_each_file(tmp_path):
    read = read_dataset(shop(tmp_path / "shop"))

    assert list(read.agents) == ["order", "refund", "weather"]
    assert (read.name, len(read.requests), len(read.messages), read.examples) == ("shop", 16, 2, 12)
    assert read.files.keys() == {"shop/agents.jsonl", "shop/eval.jsonl", "shop/multi.jsonl"}
    assert {len(one) for one in read.files.values()} == {16}


def test_another_byte_is_another_digest(tmp_path):
    before = read_dataset(shop(tmp_path)).files
    (tmp_path / "eval.jsonl").write_text('{"text": "x", "agents": []}', encoding="utf-8")
    after = read_dataset(tmp_path).files

    assert {name for name in after if after[name] != before[name]} == {f"{tmp_path.name}/eval.jsonl"}


def test_examples_come_from_the_pool_beside_the_agents_of_another_set(tmp_path):
    agents = shop(tmp_path / "shop") / "agents.jsonl"
    other = write(tmp_path / "other", eval=[request("hm", "Order", parts=["hm"]), request("hi", "refund")])

    read = read_dataset(other, agents=agents, examples=5)

    assert read.agents[Capability("order")].examples[-1] == "one more Order"
    assert [row.text for row in read.messages] == ["hm"]
    assert [row.text for row in read.requests] == ["hi"]
    assert read.files.keys() == {"shop/agents.jsonl", "shop/pool.jsonl", "other/eval.jsonl"}


def test_without_a_pool_an_agent_keeps_what_it_has(tmp_path):
    folder = write(tmp_path, agents=[agent("a&b", ["x", "y" * 600])], eval=[])

    read = read_dataset(folder, examples=9)

    assert read.agents[Capability("a-b")].examples == ("x", "y" * 500)
    assert (read.renamed, read.shortened) == ({"a&b": "a-b"}, 1)


def test_what_is_missing_or_unreadable_is_one_sentence(tmp_path):
    with pytest.raises(RequestError, match="is not a folder"):
        read_dataset(tmp_path / "nowhere")
    with pytest.raises(RequestError, match=r"has no agents\.jsonl; name another set's with --agents"):
        read_dataset(tmp_path)
    with pytest.raises(RequestError, match="nothing' can't be read: No such file"):
        read_dataset(tmp_path, agents=tmp_path / "nothing")
    write(tmp_path, agents=[agent("a")])
    with pytest.raises(RequestError, match=r"eval\.jsonl' can't be read"):
        read_dataset(tmp_path)
    (tmp_path / "eval.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(RequestError, match=r"eval\.jsonl' is not UTF-8"):
        read_dataset(tmp_path)


def test_registered_and_repeated_texts_are_counted_apart(tmp_path):
    rows = [request(text, "a") for text in ("hi", "Hi", "ho", "known")]
    folder = write(tmp_path, agents=[agent("a", ["known"])], eval=rows, multi=[request("hi", "a")])

    read = read_dataset(folder)
    asked = unregistered(read)

    assert (read.texts, asked.texts) == (5, 4)
    assert asked.repeated_texts == 1, "a message is no request"
