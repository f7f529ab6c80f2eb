"""Tells which clauses need another one to be understood, by their words alone (pure).

A pronoun, a condition, a bare "how long", a noun with "the": what is meant was said before. The
lists are short on purpose: what they miss stays a piece of its own.
"""

import re

from dispatcher.traditional import simplified

_PRONOUN_EN = r"it|its|it's|them|they|they're|their|this|that|these|those|ones?|he|him|she|her|his|same"
_PRONOUN_ZH = "它|(?<![其吉])他|她|这|那(?=[个些款件种家位里边])|该|其(?![实余中次])"
_REFERENCE = re.compile(
    rf"\b(?:{_PRONOUN_EN}|nearby)\b|(?<!is )(?<!are )\bthere\b"
    r"|^(?:(?:and|but)\s+)?(?:or|if|for|with|without|because|since)\b"
    rf"|{_PRONOUN_ZH}|别的|周边|附近|^(?:如果|要是|或者?|还是|会不会|是不是|是否|要不要)"
)
"""Words whose meaning another clause gives, and words that continue one."""

_PRONOUN = re.compile(rf"\b(?:{_PRONOUN_EN})\b")
_POINTED_ZH = re.compile(
    f"^(?:(?:请|帮我|给我|麻烦|再|就|那|顺便){{0,3}}.{{0,4}}(?:{_PRONOUN_ZH}).{{0,5}}$|(?:不|没|能|可以)[^就]{{0,6}}(?:就|的话))"
    "|^(?:如果|要是)?(?:不行|不能|没有|可以)的?话?"
    "|^(?:大概|大约|一般|还|需|需要|得|要|那|又|都|请问|想问){0,3}"
    "(?:多久|多少钱|多长时间|什么时候|几天|怎么[弄办收算]).{0,3}$"
)
_CONTENT_WORDS = 2
"""Beside a pronoun; a clause with more says itself what it is about."""
ATTRIBUTES_EN = (
    "kind kinds type types sort sorts size sizes color colour amount total price cost costs fee fees rest "
    "status reason difference deadline answer result limit"
)
"""Properties: what has them was named before."""
FUNCTION_WORDS_EN = (
    "a an the i i'd i'm i've you we me us my your our what what's which who where when why how much many "
    "long soon far often is are was were be been am do does did can could would will shall should may must "
    "has have had get got if so but or and then also too just only now again to for of on at with from by "
    "about as in out up off back help know see tell find say let give show make need want like any some "
    "here please pls plz usually typically still ever yet not no there"
)
"""Words of which none says what a clause is about."""
_ATTRIBUTES = frozenset(ATTRIBUTES_EN.split())
_FUNCTION_WORDS = frozenset(FUNCTION_WORDS_EN.split())
_ENGLISH_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_HAN = re.compile("[\u3400-\u9fff]")

_CONDITION = re.compile(
    r"^(?:(?:and|but|so|or|then)\s+)?(?:if|unless|once|since|because|although|though|in case|as soon as)\b"
    r"|^(?:on|for|with|regarding|about|concerning|in|at|as for)(?:\s[\w'-]+){1,4}$"
    "|^(?:那|但|但是)?(?:如果|要是|假如|假使|倘若|万一|一旦|若(?!干)|因为|由于|虽然|关于|对于)|的话$"
)
_CONSEQUENCE = re.compile(
    r"\b(?:can|could|will|would|should|do|does|how|what|where|please)\s+(?:i|you|we|my|it|the|is|are|much|long)\b"
    "|就|怎么|如何|吗|能不能|可不可以|多久|多少|帮|给我|请"
)
"""A condition that holds such words says what is wanted as well."""


def plain(clause: str) -> str:
    """As word lists have it: small letters, simplified characters, one kind of apostrophe; same length."""
    lowered = clause.lower()
    return simplified(lowered if len(lowered) == len(clause) else clause).replace("’", "'")


def refers(clause: str) -> bool:
    """Holds a word whose meaning another clause may give, or continues one."""
    return _REFERENCE.search(plain(clause)) is not None


def is_leaning(clause: str) -> bool:
    """Means little without what was said before: "exchange it", "不能修就退款", "what are the fees"."""
    words = plain(clause)
    if _HAN.search(words):
        return _POINTED_ZH.search(words) is not None
    found = _ENGLISH_WORD.findall(words)
    content = [word for word in found if word not in _FUNCTION_WORDS and not _PRONOUN.fullmatch(word)]
    if len(content) == len(found):
        return False
    if _PRONOUN.search(words):
        return len(content) <= _CONTENT_WORDS
    return all(word in _ATTRIBUTES for word in content)


def is_item(clause: str) -> bool:
    """As short as a thing in a list: at most two words, or four Han characters."""
    words = len(_ENGLISH_WORD.findall(plain(clause)))
    return len(_HAN.findall(clause)) <= 2 * (2 - words)


def is_condition(clause: str) -> bool:
    """Says when, why or for what another clause holds, and no more: "如果没货", "on my new card"."""
    words = plain(clause)
    return _CONDITION.search(words) is not None and _CONSEQUENCE.search(words) is None
