from dispatcher.dispatch.seen_keys import SeenKeys
from dispatcher.identifiers import CallerId

SHOP, BANK = CallerId("shop"), CallerId("bank")


def test_a_key_is_known_from_its_second_use_on_and_to_its_caller_alone():
    seen = SeenKeys()

    assert [seen.add(SHOP, "k"), seen.add(SHOP, "k"), seen.add(BANK, "k")] == [False, True, False]


def test_the_key_used_longest_ago_is_forgotten_first():
    seen = SeenKeys(limit=2)
    for key in ("a", "b", "a", "c"):
        seen.add(SHOP, key)

    assert [seen.add(SHOP, key) for key in ("a", "b")] == [True, False]
