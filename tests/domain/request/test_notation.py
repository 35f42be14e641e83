"""Feature expressions of users, multiplied out as Slurm evaluates them."""

import pytest

from bridge.domain.request import notation


@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("a|b&c", [("a", "c"), ("b", "c")]),
        ("a&(b|c)", [("a", "b"), ("a", "c")]),
        ("[a|b]", [("a",), ("b",)]),
    ],
)
def test_an_expression_is_multiplied_out_from_left_to_right(
    text: str, products: list[notation.Product]
) -> None:
    assert products == notation.products(text)


@pytest.mark.parametrize("text", ["a]", "(a", "a&(b|c", ")"])
def test_an_expression_with_a_bracket_missing_is_not(text: str) -> None:
    assert notation.products(text) is None
