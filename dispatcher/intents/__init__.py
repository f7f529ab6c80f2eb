"""From text to plan: clauses, intents, entities and the data that flows between them."""
