"""Everything this package raises on purpose.

    ExtractionError
    ├── GraphError            an e-graph that cannot be
    │   ├── CostError         a negative or NaN cost
    │   ├── MissingRootError  no roots, or a root that no e-node belongs to
    │   └── UnderivableRootError  a root from which every path is a cycle
    ├── FormatError           a file that is not an e-graph: what and where
    ├── ChoiceError           a choice that is not a derivation of the roots
    │   ├── IncompleteChoiceError  a reachable e-class without a chosen e-node
    │   ├── WrongClassError   an e-node chosen for an e-class it is not in
    │   └── CyclicChoiceError an e-class that needs itself
    ├── TooWideError          elimination would take too long; never leaves the package
    └── UnknownMethodError    an extractor nobody registered

Each text says in one line what was asked, what was found and what is possible.
"""


class ExtractionError(ValueError):
    """Base of every error of this package."""


class GraphError(ExtractionError):
    """An e-graph from which nothing can be extracted."""


class CostError(GraphError):
    """A cost that is negative or not a number."""


class MissingRootError(GraphError):
    """No roots at all, or a root e-class that has no e-node."""


class UnderivableRootError(GraphError):
    """A root e-class without any finite, acyclic derivation."""


class FormatError(ExtractionError):
    """A file that is not a serialized e-graph; the text says what and where."""


class ChoiceError(ExtractionError):
    """A choice that does not derive the roots."""


class IncompleteChoiceError(ChoiceError):
    """An e-class is reachable through the choice but has no chosen e-node."""


class WrongClassError(ChoiceError):
    """The e-node chosen for an e-class is missing, unusable or of another e-class."""


class CyclicChoiceError(ChoiceError):
    """Some e-class needs itself through the chosen e-nodes."""


class UnknownMethodError(ExtractionError):
    """The registry has no extractor of that name."""


class TooWideError(ExtractionError):
    """Elimination would take too long; solvers are asked instead."""
