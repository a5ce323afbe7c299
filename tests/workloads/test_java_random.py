"""Java's generator, against values printed by Java 17."""

import statistics

import pytest

from penstock.workloads.java_random import JavaRandom


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (42, [0.7275636800328681, 0.6832234717598454, 0.30871945533265976]),
        (1066, [0.6358324072309738, 0.2966852690099261, 0.29327904551214046]),
        (0, [0.730967787376657, 0.24053641567148587, 0.6374174253501083]),
        (-1, [0.26894263088050496, 0.012269981921235296, 0.6620844841121951]),
        (123456789012345, [0.6691460388561377, 0.864083895223539, 0.8815593546533792]),
    ],
)
def test_doubles_are_those_of_java(seed: int, expected: list[float]) -> None:
    random = JavaRandom(seed)
    assert [random.next_double() for _ in range(3)] == expected


def test_the_hundred_thousandth_double_is_that_of_java() -> None:
    random = JavaRandom(1066)
    assert [random.next_double() for _ in range(100_000)][-1] == 0.03829729579014585


def test_normal_numbers_are_those_of_java() -> None:
    random = JavaRandom(42)
    drawn = [random.next_gaussian() for _ in range(3)]
    assert drawn == pytest.approx(
        [1.1419053154730547, 0.9194079489827879, -0.9498666368908959], rel=1e-14
    )


def test_normal_numbers_have_mean_0_and_deviation_1() -> None:
    random = JavaRandom(7)
    drawn = [random.next_gaussian() for _ in range(20_000)]
    assert statistics.fmean(drawn) == pytest.approx(0, abs=0.03)
    assert statistics.stdev(drawn) == pytest.approx(1, abs=0.03)
