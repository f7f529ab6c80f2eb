"""The only room that knows aio-pika: connections, confirmed publish, settlement."""
