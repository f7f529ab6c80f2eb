"""Tells apart what a clause does: courtesy, pointing at another clause, or asking for something.

Word lists as data. A list too short costs a piece reported as out of scope, one too long a
dropped wish; so the lists hold only words that name no topic.
"""

import re
from collections.abc import Iterator

from dispatcher.intents.reference import plain, refers

_LONGEST = 60
"""Longer clauses are never filler, whatever their words."""

COURTESY_EN = (
    "hi hello hey there dear good morning afternoon evening sir madam team please pls plz thanks thank "
    "you thx ty so very much many a lot in advance great awesome perfect cool nice ok okay sure "
    "alright well oh um uh hmm sorry excuse me bye goodbye cheers appreciate it kindly urgent "
    "urgently asap hurry up hope omg wtf ugh seriously really ridiculous unacceptable terrible awful horrible"
)
"""Greetings, thanks, softeners, urgency, anger: nobody acts on them."""

COURTESY_ZH = (
    "你好 您好 在吗 在不在 有人吗 早上好 下午好 晚上好 请问 请问一下 谢谢 谢谢你 谢谢您 谢谢了 多谢 "
    "非常感谢 十分感谢 太感谢了 感谢 麻烦了 麻烦你了 麻烦您了 辛苦了 辛苦 拜托 拜托了 不好意思 打扰了 "
    "打扰一下 抱歉 急 很急 急用 着急 比较急 好的 好吧 行 嗯 哦 啊 呀 呢 吧 哈 哈哈 亲 客服 老师 再见 "
    "拜拜 尽快 快点 马上 立刻 急急 急死了 急死我了 谢谢啦 感谢啦 麻烦啦 求求了 求求你们 救命 "
    "太慢了 太差了 太差劲了 太坑了 太过分了 太离谱了 气死了 气死我了 烦死了 无语 真无语 "
    "服了 真是服了 受不了了"
)

POINTING_EN = (
    "i i'd i'm i'll i've you he she it it's we they me him her us them my your his its our their this "
    "that that's these those one ones what what's which who where when why how is are was were be "
    "been am do does did done can could would will shall should may might must has have had not if so "
    "but or and then also too just only now again the an to for of on at with from by about as help "
    "know see tell say let like go ahead want need any some here yes no all right check result results"
)
"""Pronouns, auxiliaries, question words: without a noun or a full verb there is no topic."""

POINTING_ZH = (
    "我 你 您 他 她 它 我们 你们 他们 这 那 这个 那个 这些 那些 这样 那样 的 了 吗 是 不 是不是 可以 "
    "可不可以 能 能不能 会 要 想 请 帮 帮我 帮忙 帮个忙 给我 一下 看 看看 查 查查 查一下 问 问问 "
    "问一下 说 处理 解决 怎么 怎么办 怎么样 怎么回事 怎么说 什么 为什么 多少 哪里 哪个 哪些 谁 有 没有 "
    "有没有 都 也 就 还 又 先 再 现在 好 到底 究竟 麻烦 下 告诉 知道 需要 求 给 推荐 建议 结果 一个 一家 去"
)

_OPENERS_EN = (
    "is are am was were do does did can could would will should shall may has have tell show give find get "
    "make let help play book set send call remind check write explain order buy cancel change add remove "
    "look turn open read translate recommend suggest track stop start any anything"
)
"""Auxiliaries and verbs of request; they ask only where they open the clause."""

_QUESTION_EN = "what|what's|whats|which|who|who's|whose|where|where's|wheres|why|how|how's"
_REQUEST_EN = "please|pls|plz|can you|could you"
_ANYWHERE_EN = f"{_QUESTION_EN}|when|{_REQUEST_EN}|want|need|i'd like"
_STANDING_ZH = (
    "吗|呢|怎么|怎样|如何|什么|为何|是否|多[少大高长远久重贵快深宽]|哪|谁|几(?!乎|天前|个)|"
    "能不能|可不可以|有没有|是不是|会不会|要不要|帮|给我|(?<!申)请|"
    "查|订(?!单|的)|讲|告诉|写|推荐|介绍|播放|打开|关掉|提醒|翻译"
)
_ANYWHERE_ZH = rf"{_STANDING_ZH}|(?<![重主])要|想"


def _any_of(words: str) -> str:
    return "|".join(sorted(map(re.escape, words.split()), key=len, reverse=True))


_MARKS = frozenset("?？")
_COURTESY = frozenset(COURTESY_EN.split())
_POINTING = frozenset(POINTING_EN.split()) | _COURTESY
_COURTESY_HAN = frozenset(COURTESY_ZH.split())
_POINTING_HAN = frozenset(POINTING_ZH.split()) | _COURTESY_HAN
_LONGEST_HAN = max(map(len, _POINTING_HAN))
_OPENING = r"^(?:(?:and|so|but|please|pls|kindly|then|also)\s+){0,3}"
_OPENER = rf"(?:{_any_of(_OPENERS_EN)})\b"
_ASKING = re.compile(rf"{_OPENING}{_OPENER}|\b(?:{_ANYWHERE_EN})\b|{_ANYWHERE_ZH}")
_STANDING = re.compile(
    rf"{_OPENING}(?:{_OPENER}|(?:{_QUESTION_EN}|when (?={_OPENER}))\b)"
    rf"|\b(?:{_REQUEST_EN})\b|{_STANDING_ZH}"
)
_ENGLISH_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_HAN = re.compile("[\u3400-\u9fff]")


def is_courtesy(clause: str) -> bool:
    """Only greetings, thanks, urgency: "hi there", "急用", "太感谢了"."""
    return _consists_of(clause, _COURTESY, _COURTESY_HAN)


def is_pointing(clause: str) -> bool:
    """Names no topic of its own: "can you help", "what is it now", "请帮我查一下"."""
    return _consists_of(clause, _POINTING, _POINTING_HAN)


def is_asking(clause: str, mark: str = "") -> bool:
    """Reads like a wish; `mark` is the character after the clause."""
    return mark in _MARKS or _ASKING.search(plain(clause)) is not None


def is_standing(clause: str, mark: str = "") -> bool:
    """A question or request that needs no other clause: it refers to none and continues none.

    A desire is none ("I want to open a shop"): often it only says why the next clause asks.
    """
    asks = mark in _MARKS or _STANDING.search(plain(clause)) is not None
    return asks and not refers(clause)


def _consists_of(clause: str, english: frozenset[str], chinese: frozenset[str]) -> bool:
    if len(clause) > _LONGEST:
        return False
    if _HAN.search(clause):
        return _is_chain(plain(clause), chinese)
    found = _ENGLISH_WORD.findall(plain(clause))
    return bool(found) and all(word in english for word in found)


def _is_chain(text: str, words: frozenset[str]) -> bool:
    """Whether words of these and marks make up the whole text, however it is cut.

    The places that a chain reaches are counted once each: a pattern that repeats alternatives tries every
    way to cut "哈哈哈哈", and their number doubles with each character.
    """
    reached = {0}
    for at in range(len(text)):
        if at in reached:
            reached |= {at + length for length in _lengths(text, at, words)}
    return len(text) in reached


def _lengths(text: str, at: int, words: frozenset[str]) -> Iterator[int]:
    """Of the words that begin here; a mark is a word of one character."""
    if not (text[at].isalnum() or text[at] == "_"):
        yield 1
    for length in range(1, min(_LONGEST_HAN, len(text) - at) + 1):
        if text[at : at + length] in words:
            yield length
