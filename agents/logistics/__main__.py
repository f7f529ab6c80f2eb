"""Run the agent alone: `python -m agents.logistics --broker amqp://guest:guest@127.0.0.1/`."""

from agents.logistics import agent
from dispatcher.sdk import run

if __name__ == "__main__":
    run(agent)
