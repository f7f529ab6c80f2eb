"""Where the fields of a handler's input come from, written beside their types.

class Quote(BaseModel):
    amount: Annotated[float | None, From("order.query/amount"), Entity("amount")] = None
"""

from dataclasses import dataclass
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from dispatcher.errors import ConfigurationError


@dataclass(frozen=True, slots=True, init=False)
class From:
    """The field may come from another intent's result: `capability/field`, one or several.

    Equal names alone never link two intents. Becomes `x-from` in the input schema.
    """

    sources: tuple[str, ...]

    def __init__(self, *sources: str) -> None:
        for source in sources:
            capability, slash, output = source.partition("/")
            if not (capability and slash and output):
                raise ConfigurationError(f"From({source!r}) must read 'capability/field'")
        object.__setattr__(self, "sources", sources)

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Add the sources to the field's schema."""
        only = self.sources[0] if len(self.sources) == 1 else list(self.sources)
        return {**handler(core_schema), "x-from": only}


@dataclass(frozen=True, slots=True)
class Entity:
    """The field is filled by an entity of that kind named in the text, e.g. `order_number`.

    Becomes `x-entity` in the input schema.
    """

    kind: str

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Add the kind to the field's schema."""
        return {**handler(core_schema), "x-entity": self.kind}
