"""Nothing grows past what one can read at a sitting."""

from tests.architecture import size


def test_no_module_is_longer_than_the_limit():
    too_long = [piece for piece in size.modules() if piece.length > size.MODULE_LIMIT]

    assert not too_long, "split by noun, or redesign the room"


def test_no_function_is_longer_than_the_limit():
    too_long = [piece for piece in size.functions() if piece.length > size.FUNCTION_LIMIT]

    assert not too_long, "name the steps"
