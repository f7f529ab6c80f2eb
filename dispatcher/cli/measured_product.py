"""What is measured or fitted: the product's own routing, as the settings have it."""

from dispatcher.assembly import rules
from dispatcher.routing.embedder import Embedder
from dispatcher.settings import Settings
from dispatcher.tuning.basis.product import Product, product_of


def measured_product(settings: Settings, embedder: Embedder) -> Product:
    """Routing with these settings and this encoder."""
    return product_of(
        embedder,
        rules.routing_rules(settings),
        index=settings.routing.index,
        batch_size=settings.encoder.batch_size,
    )
