"""What groups of settings are made of."""

from collections.abc import Set as AbstractSet
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

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
