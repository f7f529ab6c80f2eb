"""The documentation page, with everything it loads served from here."""

from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import FileResponse, Response

PAGE = "/docs"
DOCUMENT = "/openapi.json"
_SCRIPT = f"{PAGE}/swagger-ui-bundle.js"
_STYLE = f"{PAGE}/swagger-ui.css"
_ICON = f"{PAGE}/favicon.png"
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'"
)


class DocsRoutes:
    """`/docs` and its three files; open, since they hold nothing that is not in the source."""

    def __init__(self, title: str) -> None:
        self._title = title
        self.router = APIRouter(include_in_schema=False)
        self.router.add_api_route(PAGE, self.get_page, methods=["GET"])
        self.router.add_api_route(_SCRIPT, self.get_script, methods=["GET"])
        self.router.add_api_route(_STYLE, self.get_style, methods=["GET"])
        self.router.add_api_route(_ICON, self.get_icon, methods=["GET"])

    async def get_page(self) -> Response:
        """The page; its policy forbids the browser to load anything from elsewhere."""
        page = get_swagger_ui_html(
            openapi_url=DOCUMENT,
            title=self._title,
            swagger_js_url=_SCRIPT,
            swagger_css_url=_STYLE,
            swagger_favicon_url=_ICON,
            swagger_ui_parameters={"validatorUrl": None},
        )
        page.headers["Content-Security-Policy"] = _POLICY
        return page

    async def get_script(self) -> Response:
        """The page's program."""
        return _asset(_SCRIPT)

    async def get_style(self) -> Response:
        """The page's style."""
        return _asset(_STYLE)

    async def get_icon(self) -> Response:
        """The page's icon."""
        return _asset(_ICON)


def _asset(path: str) -> Response:
    name = path.rpartition("/")[2]
    return FileResponse(Path(str(files("fastapi_offline") / "static" / name)))
