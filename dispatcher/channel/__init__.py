"""How a task gets to its agent and its result back: in-process and RabbitMQ behind one protocol."""
