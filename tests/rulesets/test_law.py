"""Laws: equations written as rules, with the conditions they need and no others."""

import pytest

from rulesets.equation import Equation
from rulesets.families import EYE, SIZES
from rulesets.ground import Ground, Leaf, node, part
from rulesets.law import float_tag, forms, law, name_of
from rulesets.merge_outputs import merging_laws
from rulesets.size import symbol

M, K = symbol("m"), symbol("k")
X = tuple(Leaf(f"x{n}", (M, K), "x") for n in range(4))
W = tuple(Leaf(f"w{n}", (K, K), "w") for n in range(3))


def concat(axis: int, *parts: Ground) -> Ground:
    """Return a concatenation."""
    return node("Concat", {"axis": axis}, *parts)


def matmul(a: Ground, b: Ground) -> Ground:
    """Return a product."""
    return node("MatMul", {}, a, b)


def texts(lhs: Ground, rhs: Ground) -> tuple[str, ...]:
    """Return the rules of an equation."""
    found = law(Equation(lhs, rhs), "name", SIZES)
    assert found is not None
    return found.texts


def where(text: str) -> list[str]:
    """Return the conditions of a rule's text."""
    (line,) = [line for line in text.splitlines() if line.startswith("where")]
    return line.removeprefix('where = ["').removesuffix('"]').split('", "')


def test_square_matrices_become_any_matrices() -> None:
    """Association was found on square matrices; only ranks remain as conditions."""
    found = texts(matmul(matmul(W[0], W[1]), W[2]), matmul(W[0], matmul(W[1], W[2])))
    assert len(found) == 2
    for text in found:
        assert where(text) == ["rank ?a = 2", "rank ?b = 2", "rank ?c = 2"]


def test_a_sum_must_not_broadcast() -> None:
    """Addition accepts shapes that differ, the law does not: equal sizes are stated."""
    lhs = node("Add", {}, matmul(X[0], W[0]), matmul(X[1], W[0]))
    (forward, backward) = texts(lhs, matmul(node("Add", {}, X[0], X[1]), W[0]))
    assert "dim ?c 0 = (dim ?a 0)" in where(forward)
    assert "dim ?c 1 = (dim ?a 1)" not in where(forward)
    assert "dim ?b 1 = (dim ?a 1)" in where(backward)


def test_equal_parts_are_a_condition() -> None:
    """Sums of concatenations come apart only where the parts have equal sizes."""
    lhs = node("Add", {}, concat(0, X[0], X[1]), concat(0, X[2], X[3]))
    rhs = concat(0, node("Add", {}, X[0], X[2]), node("Add", {}, X[1], X[3]))
    assert "dim ?c 0 = (dim ?a 0)" in where(texts(lhs, rhs)[0])


def test_a_split_on_the_left_is_matched_by_its_sizes() -> None:
    """The parts are variables with a condition; the way back would not end."""
    (text,) = texts(part(0, (M, K), 1, concat(0, X[0], W[0])), W[0])
    assert "parts=[?p0, ?p1]" in text
    assert "?p0 = (dim ?a 0)" in where(text)


def test_identity_matrices_have_the_size_they_need() -> None:
    """The size of an Eye on the left is a variable that must equal an axis."""
    (text,) = texts(matmul(X[0], EYE), X[0])
    assert "(Eye[dtype=?t, size=?p0])" in text
    assert "?p0 = (dim ?a 1)" in where(text)


def test_composite_axes_are_axes() -> None:
    """A leaf that stood for a concatenation is a matrix like any other."""
    wide = Leaf("y0", (M + M, K), "y")
    (text,) = texts(node("Relu", {}, node("Relu", {}, wide)), node("Relu", {}, wide))
    assert where(text) == ["rank ?a = 2"]


def test_channels_of_groups_are_a_product() -> None:
    """What an operator divides by stays a product: its factors are those of the kernel."""
    sizes = {name: symbol(name) for name in "bckhw"}
    b, c, k, h, w = sizes.values()
    image = Leaf("x0", (b, c * 2, h, w), "x")
    kernel = Leaf("w0", (2, k, c, 1, 1), "w")
    flat = node("Reshape", {"shape": (k * 2, c, 1, 1)}, kernel)
    window = {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "group": 2}
    lhs = node("Conv", window, node("Relu", {}, image), flat)
    env = {"b": 2, "c": 3, "k": 4, "h": 5, "w": 6}
    found = law(Equation(lhs, node("Conv", window, image, flat)), "name", env)
    assert found is not None
    assert "dim ?a 1 = (* 2 (dim ?b 2))" in where(found.texts[0])


def test_a_factor_is_learnt_from_its_multiple() -> None:
    """A size that only an attribute knows, as twice its value, is half of that."""
    n = symbol("n")
    lhs = node("Relu", {}, node("Reshape", {"shape": (n * 2, K)}, Leaf("y0", (n * K * 2,))))
    rhs = node("Reshape", {"shape": (n * 2, K)}, Leaf("y0", (n * K * 2,)))
    found = law(Equation(lhs, rhs), "name", {**SIZES, "n": 5})
    assert found is not None
    assert "?p0 = (* 2 (// ?p0 2))" in where(found.texts[0])


def test_a_cast_to_the_own_type_is_one_to_any() -> None:
    """The generator's tensors have one type; the law is about the type of its tensor."""
    (forward,) = texts(node("Cast", {"to": "float32"}, X[0]), X[0])
    assert "lhs = '(Cast[to=?t] ?a)'" in forward
    assert "dtype ?a = ?t" in where(forward)


def test_a_rule_that_never_ends_is_not_written() -> None:
    """X = transpose(transpose(x)) is written in one direction only."""
    twice = node("Transpose", {"perm": (1, 0)}, node("Transpose", {"perm": (1, 0)}, X[0]))
    assert len(texts(twice, X[0])) == 1


def test_names_tell_both_sides_and_are_unique() -> None:
    """A taken name gets a number."""
    equation = Equation(matmul(node("Relu", {}, X[0]), W[0]), X[0])
    assert name_of(equation, ()) == "matmul-relu-is-same"
    assert name_of(equation, ["matmul-relu-is-same"]) == "matmul-relu-is-same-2"


@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
def test_two_outputs_make_a_merging_rule(axis: int) -> None:
    """Both parts of a product with a concatenation become a rule with two roots."""
    if axis == 1:
        whole = matmul(X[0], concat(1, W[0], W[1]))
        small = matmul(X[0], W[0]), matmul(X[0], W[1])
        parts = (K, K)
    else:
        whole = matmul(concat(0, X[0], X[1]), W[0])
        small = matmul(X[0], W[0]), matmul(X[1], W[0])
        parts = (M, M)
    equations = [
        Equation(part(axis, parts, index, whole), one) for index, one in enumerate(small)
    ]
    (found,) = merging_laws(equations, (), SIZES)
    (rule,) = found.rules
    assert len(rule.lhs) == 2
    assert f"Concat[axis={axis}]" in found.texts[0]
    assert not any("dim" in each for each in where(found.texts[0]))


def test_one_output_alone_merges_nothing() -> None:
    """Without the second part there is no rule."""
    whole = matmul(X[0], concat(1, W[0], W[1]))
    assert not merging_laws(
        [Equation(part(1, (K, K), 0, whole), matmul(X[0], W[0]))], (), SIZES
    )


def widest(lhs: Ground, rhs: Ground) -> str:
    """Return the widest form of the forward rule."""
    return forms(Equation(lhs, rhs), "name", SIZES)[0][0][0]


def test_one_axis_becomes_any_axis_at_any_rank() -> None:
    """Sums of concatenations: whole shapes are equal, the axis is a variable."""
    lhs = node("Add", {}, concat(0, X[0], X[1]), concat(0, X[2], X[3]))
    rhs = concat(0, node("Add", {}, X[0], X[2]), node("Add", {}, X[1], X[3]))
    text = widest(lhs, rhs)
    assert "Concat[axis=?i] (Add ?a ?c)" in text
    assert where(text) == ["shape ?c = (shape ?a)", "shape ?d = (shape ?b)"]
    assert "i = 0" in text


def test_two_axes_stay_two_axes() -> None:
    """The interchange of two concatenations has no such form."""
    lhs = concat(0, concat(1, X[0], X[1]), concat(1, X[2], X[3]))
    rhs = concat(1, concat(0, X[0], X[2]), concat(0, X[1], X[3]))
    assert "?i" not in widest(lhs, rhs)


def test_windows_become_a_bundle() -> None:
    """Linearity of convolution holds for all strides, pads, dilations and kernels."""
    window = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
    image = Leaf("x0", (M, K, symbol("h"), symbol("w")), "x")
    kernels = [Leaf(f"w{n}", (K, K, 3, 3), "w") for n in range(2)]
    lhs = node("Conv", window, image, node("Add", {}, *kernels))
    rhs = node("Add", {}, *(node("Conv", window, image, each) for each in kernels))
    env = {**SIZES, "h": 4, "w": 5}
    text = forms(Equation(lhs, rhs), "name", env)[0][0][0]
    assert "(Conv[..k] ?a (Add ?b ?c))" in text
    assert "k = { dilations = [1, 1], pads = [1, 1, 1, 1], strides = [1, 1] }" in text
    assert not any("= 3" in each for each in where(text))


def test_a_symmetric_law_is_one_rule() -> None:
    """Sums in the two orders x, y, z and x, z, y are one law."""
    lhs = node("Add", {}, node("Add", {}, X[0], X[1]), X[2])
    rhs = node("Add", {}, node("Add", {}, X[0], X[2]), X[1])
    assert len(forms(Equation(lhs, rhs), "name", SIZES)) == 1


@pytest.mark.parametrize(
    ("lhs", "rhs", "tag"),
    [
        (node("Relu", {}, node("Relu", {}, X[0])), node("Relu", {}, X[0]), "exact"),
        (matmul(concat(0, X[0], X[1]), W[0]), concat(0, matmul(X[0], W[0]), X[1]), "not"),
        (matmul(matmul(W[0], W[1]), W[2]), matmul(W[0], matmul(W[1], W[2])), "not"),
    ],
    ids=["never rounds", "another path", "two products"],
)
def test_the_float_tag_says_what_rounds(lhs: Ground, rhs: Ground, tag: str) -> None:
    """Exact if every element sees one and the same rounding operation."""
    assert (float_tag(Equation(lhs, rhs)) == "exact") == (tag == "exact")


def test_constants_are_not_brought_in() -> None:
    """A sum with a product could always be one product with an identity: not a rule."""
    lhs = matmul(X[0], node("Add", {}, EYE, W[0]))
    rhs = node("Add", {}, X[0], matmul(X[0], W[0]))
    assert len(forms(Equation(lhs, rhs), "name", SIZES)) == 1


def test_sizes_off_the_axis_are_stated() -> None:
    """What a concatenation does not force is said for all axes but one."""
    rhs = node("Add", {}, concat(0, X[0], X[1]), concat(0, X[2], X[3]))
    lhs = concat(0, node("Add", {}, X[0], X[2]), node("Add", {}, X[1], X[3]))
    assert "set (shape ?c) ?i 0 = (set (shape ?a) ?i 0)" in where(widest(lhs, rhs))
