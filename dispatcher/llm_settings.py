"""The group of settings for a language model's advice; read in `dispatcher.settings`."""

from typing import Annotated

from pydantic import Field, SecretStr, model_validator

from dispatcher.setting_group import Count, EndpointUrl, Group, Share, has_scheme


class LlmSettings(Group):
    """Advice where the rules are unsure (`docs/operations.md`, A language model's advice).

    Empty `url` means none. `url` is the whole address of an endpoint that speaks OpenAI's chat completions,
    `max_tokens` the most that a reply may have. At most `calls` run at once and `tokens_per_minute` are
    used, in each replica; what goes beyond is left to the rules. They are unsure where the second
    capability is at most `margin` behind the best, or a text as little below the scope floor, in units of
    the median lead.
    """

    url: EndpointUrl = ""
    key: SecretStr = SecretStr("")
    model: Annotated[str, Field(max_length=512)] = ""
    timeout_s: Annotated[float, Field(gt=0, le=30)] = 2.0
    max_tokens: Annotated[int, Field(ge=64, le=8_192)] = 512
    calls: Annotated[int, Field(ge=1, le=1_024)] = 4
    tokens_per_minute: Count = 60_000
    margin: Share = 0.1

    @model_validator(mode="after")
    def _is_whole_or_off(self) -> "LlmSettings":
        if self.url and not has_scheme(self.url, {"http", "https"}):
            raise ValueError("'url' must read http://host:port/v1/chat/completions, or https://…")
        if bool(self.url) != bool(self.model):
            raise ValueError("'url' and 'model' go together")
        return self
