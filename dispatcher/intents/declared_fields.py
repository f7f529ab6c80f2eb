"""The input fields of registered capabilities, each schema read once."""

from collections.abc import Iterable, Mapping

from dispatcher.identifiers import Capability
from dispatcher.intents.input_field import InputField, input_fields
from dispatcher.registry.repository import CapabilityContract

Contracts = Mapping[Capability, CapabilityContract]


class DeclaredFields:
    """Reads a schema when it is first asked for, and all of them anew for another mapping of contracts.

    So a mapping that was given must not change: the registry's never does.
    """

    def __init__(self) -> None:
        self._contracts: Contracts = {}
        self._fields: dict[Capability, tuple[InputField, ...]] = {}

    def of(
        self, contracts: Contracts, wanted: Iterable[Capability | None]
    ) -> dict[Capability, tuple[InputField, ...]]:
        """The fields of the wanted ones alone, as far as `contracts` has them."""
        if contracts is not self._contracts:
            self._contracts, self._fields = contracts, {}
        return {name: self._read(name) for name in wanted if name is not None and name in contracts}

    def _read(self, name: Capability) -> tuple[InputField, ...]:
        fields = self._fields.get(name)
        if fields is None:
            fields = self._fields[name] = input_fields(self._contracts[name].input_schema)
        return fields
