"""Why an operator stopped: the rows it was working on and the user's own traceback."""

from dataclasses import asdict, dataclass

from penstock.engines.spark.places import Places, read_json, write_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An operator's function raised on rows [first, end) of a topic."""

    topic: str
    first: int
    end: int
    trace: str

    def text(self, operator: str) -> str:
        """Say it to a person."""
        rows = (
            f"row {self.first}"
            if self.end == self.first + 1
            else f"rows {self.first} to {self.end - 1}"
        )
        return f"{operator} failed on {rows} of topic {self.topic}:\n{self.trace}"


def tell(places: Places, operator: str, failure: Failure) -> None:
    """Leave word for the driver."""
    write_json(places.error(operator), asdict(failure))


def hear(places: Places, operator: str) -> Failure | None:
    """Read what a task left; None if there is nothing."""
    data = read_json(places.error(operator), "remove it")
    return Failure(**data) if data else None


def forget(places: Places, operator: str) -> None:
    """A new start: nothing has failed yet."""
    places.error(operator).unlink(missing_ok=True)
