from dispatcher.intents.antecedent import MAX_CHARACTERS, with_antecedents
from dispatcher.intents.plan import EntityKind, Piece


def _pieces(message: str, *texts: str) -> list[Piece]:
    return [
        Piece(text=text, start=message.index(text), end=message.index(text) + len(text)) for text in texts
    ]


def _antecedents(message: str, *texts: str) -> list[str | None]:
    found = with_antecedents(message, _pieces(message, *texts))
    for piece in found:
        one = piece.antecedent
        assert one is None or (one.kind is EntityKind.ANTECEDENT and one.text == one.value)
        assert one is None or message[one.start : one.end] == one.text
    return [piece.antecedent.text if piece.antecedent else None for piece in found]


def test_what_refers_knows_what_it_refers_to():
    message = "耳机坏了能修吗？不能修就给我退款"

    assert _antecedents(message, "耳机坏了能修吗", "不能修就给我退款") == [None, "耳机坏了能修吗"]


def test_what_stands_by_itself_has_no_antecedent():
    message = "where is my parcel, and any discount today"

    assert _antecedents(message, "where is my parcel", "any discount today") == [None, None]


def test_an_antecedent_begins_with_the_last_piece_that_stands():
    message = "any discount? where is my parcel, I want to complain and exchange it"
    texts = "any discount", "where is my parcel", "I want to complain", "exchange it"

    assert _antecedents(message, *texts)[-1] == "where is my parcel, I want to complain"


def test_where_none_stands_it_reaches_three_pieces_back():
    message = "one thing bad. my box broke. rude courier. I am angry, exchange it"
    texts = "one thing bad", "my box broke", "rude courier", "I am angry", "exchange it"

    assert _antecedents(message, *texts)[-1] == "my box broke. rude courier. I am angry"


def test_of_a_long_antecedent_the_end_is_taken():
    message = f"where is my {'very ' * 100}big parcel, exchange it"

    *_, antecedent = _antecedents(message, message.removesuffix(", exchange it"), "exchange it")

    assert antecedent is not None
    assert len(antecedent) == MAX_CHARACTERS
    assert antecedent.endswith("big parcel")
