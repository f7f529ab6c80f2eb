"""How a task gets to its agent and its result back: in-process, RabbitMQ and HTTP behind one protocol."""
