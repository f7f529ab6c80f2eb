"""What records are made of: the values that each request makes and copies (docs/decisions/0011).

A record is a `Struct` with `frozen=True, kw_only=True`, neither of which a subclass inherits. Its
`__struct_fields__` are the members' names; `asdict` gives them with their values, as they are.
"""

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import asdict

if TYPE_CHECKING:
    # By this name mypy knows the members of what is copied, and their types; of the other it knows nothing.
    from dataclasses import replace
else:
    from msgspec.structs import replace

__all__ = ["Struct", "asdict", "field", "replace"]
