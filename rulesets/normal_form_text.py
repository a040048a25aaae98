"""Short texts of normal forms, for the reasons of verdicts."""

from rulesets.scalar import Apply, Atom, Base, Largest, Read, Real, Sum, Term


def shown(term: Term) -> str:
    """Return a short text of a term."""
    text = f"{term.coefficient}"
    for atom, power in term.factors:
        text += f" {brief(atom)}" + (f"^{power}" if power != 1 else "")
    if term.domain:
        text += " where " + ", ".join(sorted(f"{guard} >= 0" for guard in term.domain))
    return text if len(text) < 300 else f"{text[:297]}..."


def brief(atom: Atom) -> str:
    """Return a short text of an atom."""
    match atom:
        case Read(name=name, index=index):
            return f"{name}[{', '.join(map(str, index))}]"
        case Real(size=size):
            return f"({size})"
        case Apply(name=name, arguments=arguments):
            return f"{name}({', '.join(map(text_of, arguments))})"
        case Base(base=base):
            return f"({text_of(base)})"
        case Largest(elements=elements):
            return f"max({', '.join(text_of(each.body) for each in elements)})"


def text_of(one: Sum) -> str:
    """Return a short text of a sum."""
    return " + ".join(shown(term) for term in one.terms) or "0"
