"""What groups of settings are made of."""

import re
from collections.abc import Set as AbstractSet
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer

Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Group(BaseModel):
    """One group of settings; immutable, and unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def has_scheme(url: str, schemes: AbstractSet[str]) -> bool:
    """Whether it is an address with a host, of one of these schemes."""
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _without_user(url: str) -> str:
    if "@" in re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]:
        raise ValueError("must hold no user and password; a key goes into 'key' beside it")
    return url


def _shown(url: str) -> str:
    return re.sub(r"([?#]).*", r"\1**********", url, count=1, flags=re.DOTALL)


EndpointUrl = Annotated[
    str, AfterValidator(_without_user), PlainSerializer(_shown, when_used="json"), Field(repr=False)
]
"""Where something is called. What its query holds (a key, often) is masked where settings are shown."""
