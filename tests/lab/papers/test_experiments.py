"""The published experiments: every file is read, and every cell can be run."""

import pytest

from penstock.cli.commands.reproduce import BACKENDS
from penstock.errors import InputError
from penstock.lab.papers.experiments import (
    PAPERS,
    check_experiments,
    load_experiments,
    parse_experiments,
    simulate_curves,
)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_cell_of_every_paper_can_be_run(paper: str) -> None:
    published = load_experiments(paper)
    check_experiments(published)
    assert len(published.seeds) >= 10
    assert len(published.figures) >= 2


def test_there_are_at_least_sixty_claims_and_none_twice() -> None:
    claims = [claim.id for paper in PAPERS for claim in load_experiments(paper).claims]
    assert len(claims) == len(set(claims))
    assert len(claims) >= 60


def test_a_figure_is_curves_over_minutes() -> None:
    cell = load_experiments("thesis").cells["q1-ds2-120"]
    curves = simulate_curves(cell, ("offered", "replicas"))
    minutes = [minute for minute, _ in curves["offered"]]
    assert minutes[0] == 0.25
    assert minutes[-1] == 140
    assert 10 <= max(value for _, value in curves["replicas"]) <= 15


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"cels": {}}, "unknown field"),
        ({"cells": {"a": {"polcy": "ds2"}}}, "unknown field"),
        ({"figures": [{"id": "f", "title": "t", "cells": ["z"], "panels": []}]}, "no cell 'z'"),
        ({"figures": [{"id": "f", "title": "t", "cells": [], "panels": ["w"]}]}, "unknown panel"),
    ],
)
def test_a_mistake_in_the_file_is_named(change: dict, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse_experiments({"paper": "p", "title": "t", "source": "s"} | change)


def test_an_unknown_paper_gets_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        load_experiments("thesys")
    assert caught.value.hint == "did you mean 'thesis'?"


def test_a_paper_of_another_backend_is_read_checked_and_has_its_claims() -> None:
    published = load_experiments("decentralized", backends=BACKENDS)
    check_experiments(published)
    assert published.backend is BACKENDS["decentralized"]
    assert len(published.seeds) == 50
    assert len({claim.id for claim in published.claims}) == len(published.claims) >= 20
    assert [claim.id for claim in published.claims if not claim.why] == []


def test_a_paper_of_another_backend_needs_it() -> None:
    with pytest.raises(InputError, match="unknown paper 'decentralized'"):
        load_experiments("decentralized")


def test_cells_of_another_backend_are_checked_and_have_no_figures() -> None:
    head = {"paper": "p", "title": "t", "source": "s"}
    backend = BACKENDS["decentralized"]
    with pytest.raises(InputError, match="unknown field"):
        parse_experiments(head | {"cells": {"a": {"operator": 3}}}, backend)
    with pytest.raises(InputError, match="operators: must be at least 2"):
        parse_experiments(head | {"cells": {"a": {"operators": 1}}}, backend)
    with pytest.raises(InputError, match="only runs of the simulator"):
        parse_experiments(head | {"figures": []}, backend)
