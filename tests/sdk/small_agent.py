from pydantic import BaseModel

from dispatcher.sdk import Agent, NeedsInput, Reply, TaskView, run

agent = Agent("weather")


class Place(BaseModel):
    city: str | None = None


class Weather(BaseModel):
    celsius: float


@agent.handler(
    "weather.now",
    description=["查询天气", "Tells the weather right now"],
    examples=["今天热不热", "will I need a coat", "how warm is it in Hangzhou"],
    idempotent=True,
)
def weather(place: Place, task: TaskView) -> Reply[Weather]:
    if place.city is None:
        raise NeedsInput("哪个城市？" if task.is_chinese else "In which city?", ("city",))
    return Reply(text=f"{place.city}: 21 °C", data=Weather(celsius=21.0))


if __name__ == "__main__":
    run(agent)
