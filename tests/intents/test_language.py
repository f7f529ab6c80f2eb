import pytest

from dispatcher.intents.language import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("查快递", "zh"),
        ("iPhone 15 Pro 有货吗", "zh"),
        ("where is my 小米 phone", "en"),
        ("where is my parcel", "en"),
        ("", "en"),
        ("12345?", "en"),
    ],
)
def test_the_language_follows_the_share_of_chinese_characters(text, language):
    assert detect_language(text) == language
