"""Symbolic sizes."""

import pickle
from random import Random

import pytest

from rulesets.errors import SizeError
from rulesets.size import (
    Poly,
    Size,
    broadcast_sizes,
    ceil_div,
    divide,
    evaluate,
    floor_div,
    product,
    provably_different,
    provably_nonnegative,
    provably_positive,
    substitute,
    symbol,
    symbols,
    total,
)

N, M, H = symbol("n"), symbol("m"), symbol("h")
SEEDS = range(200)


def random_size(rng: Random, depth: int = 3) -> Size:
    """Return a random size over n, m, h."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice((N, M, H, rng.randint(-4, 6)))
    one, other = random_size(rng, depth - 1), random_size(rng, depth - 1)
    made: list[Size] = [one + other, one - other, one * other]
    made.append(floor_div(one, rng.randint(1, 6)))
    return rng.choice(made)


def random_values(rng: Random) -> dict[str, int]:
    """Return values for n, m, h."""
    return {name: rng.randint(0, 9) for name in "nmh"}


@pytest.mark.parametrize("seed", SEEDS)
def test_arithmetic_agrees_with_integers(seed: int) -> None:
    """Sums, products and quotients of sizes evaluate as those of their values."""
    rng = Random(seed)
    one, other, number = random_size(rng), random_size(rng), rng.randint(1, 7)
    values = random_values(rng)
    a, b = evaluate(one, values), evaluate(other, values)
    assert evaluate(one + other, values) == a + b
    assert evaluate(one - other, values) == a - b
    assert evaluate(one * other, values) == a * b
    assert evaluate(floor_div(one, number), values) == a // number
    assert evaluate(ceil_div(one, number), values) == -(-a // number)


@pytest.mark.parametrize("seed", SEEDS)
def test_canonical_form_ignores_the_order_of_computation(seed: int) -> None:
    """Commuted and re-associated sums and products are structurally equal."""
    rng = Random(seed)
    a, b, c = (random_size(rng, 2) for _ in range(3))
    assert (a + b) + c == c + (b + a)
    assert (a * b) * c == c * (b * a)
    assert a * (b + c) == c * a + b * a
    assert hash((a + b) * c) == hash(c * b + c * a)
    assert a - a == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_division_undoes_multiplication(seed: int) -> None:
    """A product divided by a factor is the other factor; a quotient times divisor fits."""
    rng = Random(seed)
    one, other = random_size(rng, 2), random_size(rng, 2)
    if other != 0:
        assert divide(one * other, other) == one
    quotient = divide(one, other)
    assert quotient is None or quotient * other == one


@pytest.mark.parametrize("seed", SEEDS)
def test_provable_facts_hold(seed: int) -> None:
    """What is said to differ, be positive or not negative does so for all values."""
    rng = Random(seed)
    one, other = random_size(rng), random_size(rng)
    for _ in range(10):
        values = random_values(rng)
        a, b = evaluate(one, values), evaluate(other, values)
        assert not (provably_different(one, other) and a == b)
        assert not (provably_positive(one) and a < 1)
        assert not (provably_nonnegative(one) and a < 0)


@pytest.mark.parametrize("seed", range(50))
def test_substitution_agrees_with_evaluation(seed: int) -> None:
    """Evaluating after substituting is evaluating with the values substituted."""
    rng = Random(seed)
    size, new = random_size(rng), random_size(rng, 1)
    values = random_values(rng)
    expected = evaluate(size, {**values, "n": evaluate(new, values)})
    assert evaluate(substitute(size, {"n": new}), values) == expected


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (N * 4 + 2, "4*n + 2"),
        (N - 1, "n - 1"),
        (-N, "-n"),
        (N * N + M, "n^2 + m"),
        (floor_div(N + 1, 2) - 1, "((n + 1)//2) - 1"),
        (floor_div(N - 1, 2) + 1, "((n + 1)//2)"),
        (broadcast_sizes((N, M)), "broadcast(m, n)"),
    ],
    ids=str,
)
def test_text(size: Size, text: str) -> None:
    """Sizes read as polynomials, high degrees first and the constant last."""
    assert str(size) == text


def test_constants_are_ints() -> None:
    """A polynomial whose symbols cancel is an int."""
    assert type(N - N + 3) is int
    assert type(floor_div(N * 4 + 5, 4) - N) is int


def test_quotients_are_canonical() -> None:
    """Whole parts leave a quotient, common factors cancel, nested quotients join."""
    assert floor_div(N * 6 + 7, 3) == N * 2 + 2
    assert floor_div(N * 2 + 3, 4) == floor_div(N + 1, 2)
    assert floor_div(floor_div(N, 2), 3) == floor_div(N, 6)
    assert floor_div(floor_div(N + 1, 2) + 1, 2) == floor_div(N + 3, 4)


def test_convolutions_in_a_row_give_one_quotient() -> None:
    """Two 3x3 windows with padding 1 and stride 2 keep a size readable."""
    once = floor_div(H + 2 - 3, 2) + 1
    twice = floor_div(once + 2 - 3, 2) + 1
    assert str(twice) == "((h + 3)//4)"


def test_divide_finds_the_rest_of_a_reshape() -> None:
    """Elements divided by known sizes give the size asked by -1, or nothing."""
    assert divide(N * 12 * 64, N * 12) == 64
    assert divide(N * M * 6, M * 2) == N * 3
    assert divide(N * N + N * 2 + 1, N + 1) == N + 1
    assert divide(N * 6, 4) is None
    assert divide(N, M) is None
    assert divide(N, 0) is None
    assert divide(6, N) is None
    assert divide(0, N) == 0


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (3, 4, True),
        (3, 3, False),
        (N, N + 1, True),
        (N, M, False),
        (N * 2, M * 2 + 1, True),
        (N + 2, 1, True),
        (N, 1, False),
    ],
    ids=str,
)
def test_provably_different(one: Size, other: Size, expected: bool) -> None:
    """Sizes differ if a constant, a sign or a remainder says so."""
    assert provably_different(one, other) is expected
    assert provably_different(other, one) is expected


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((1, 1), 1),
        ((1, 5), 5),
        ((N, 1), N),
        ((N, N), N),
        ((N, 5), 5),
        ((4, 5), None),
        ((0, 1), 0),
        ((N + 2, 1), N + 2),
        ((N * 2 + 6, 5), None),
    ],
    ids=str,
)
def test_broadcast_sizes(sizes: tuple[Size, ...], expected: Size | None) -> None:
    """A number other than 1 decides; what cannot fit gives nothing."""
    assert broadcast_sizes(sizes) == expected


def test_unknown_broadcast_is_one_canonical_atom() -> None:
    """Nested broadcasts of unrelated sizes join, in any order, and evaluate."""
    one = broadcast_sizes((N, M))
    assert one is not None
    assert broadcast_sizes((H, one)) == broadcast_sizes((M, H, N, 1))
    assert [
        evaluate(one, {"n": a, "m": b}) for a, b in ((1, 7), (7, 1), (7, 7), (0, 1))
    ] == [
        7,
        7,
        7,
        0,
    ]
    assert substitute(one, {"n": 1}) == M
    with pytest.raises(SizeError, match="no longer broadcast"):
        substitute(one, {"n": 2, "m": 3})


def test_symbols_are_found_inside_atoms() -> None:
    """Symbols in quotients and broadcasts count."""
    joined = broadcast_sizes((N, M))
    assert joined is not None
    assert symbols(joined + floor_div(H, 2)) == {"n", "m", "h"}
    assert symbols(3) == frozenset()


def test_sum_and_product() -> None:
    """The empty sum is 0, the empty product 1."""
    assert (total(()), product(())) == (0, 1)
    assert (total((N, 1, N)), product((N, 2))) == (N * 2 + 1, N * 2)


def test_missing_value_is_an_error() -> None:
    """Evaluation names the symbol that has no value."""
    with pytest.raises(SizeError, match="'m' has no value; those given: n"):
        evaluate(N + M, {"n": 1})


def test_divisor_must_be_positive() -> None:
    """A quotient by zero is refused."""
    with pytest.raises(SizeError, match="a divisor is at least 1"):
        floor_div(N, 0)


def test_pickled_polynomial_is_equal() -> None:
    """A polynomial survives the way to another process."""
    size = floor_div(N * M + 1, 2)
    assert isinstance(size, Poly)
    again = pickle.loads(pickle.dumps(size))
    assert again == size
    assert hash(again) == hash(size)
